/** All playback sessions of an engine: starting, joining, finding, ending. Section 3.1 of the HTTP API, B7, B8, B12. */
import { ChunkBuffers } from "../bytes/chunk-buffers.ts";
import { deadline, withSignal } from "../bytes/deadline.ts";
import { chooseFile, defaultFile } from "../content/file-choice.ts";
import type { Resolver } from "../content/resolve.ts";
import type { StreamSelector } from "../content/selector.ts";
import { type AnyMetainfo, isLive } from "../transport/live.ts";
import type { Metainfo } from "../transport/types.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { AudioEncoder, AudioTranscoding } from "../media/transcode/types.ts";
import type { Clock, Logger } from "../ports.ts";
import type { LiveSwarms, LiveTarget } from "../live/swarm/live-source.ts";
import type { SwarmLease, SwarmManager } from "../swarm/types.ts";
import { nextFile } from "./next-file.ts";
import { Presentations } from "./presentations.ts";
import { PlaybackSession } from "./session.ts";
import { LiveSession } from "./live/live-session.ts";
import type { LiveStream } from "./live/live-stream.ts";
import { LiveStreams, type LiveWindowMaker } from "./live/live-streams.ts";
import type { OutputKind, SessionBaseParts, SessionIdentity } from "./session-base.ts";

/** Sessions at once; each is small, but readers and swarms behind them are not. */
const MAX_SESSIONS = 500;
/** Without activity a session ends after this. */
const ACTIVITY_TIMEOUT_MS = 60_000;
/** The same for clients that promise to call stop (`use_api_stop=1`). */
const API_STOP_TIMEOUT_MS = 3_600_000;

/** A session of either kind: `kind` tells. */
export type AnySession = PlaybackSession | LiveSession;

/** What a start waits for, as it is told when it takes too long. */
interface Attempt {
  reason: () => string;
}

/** What a start needs; the HTTP layer has parsed and typed it. */
export interface StartRequest {
  readonly selector: StreamSelector;
  readonly output: OutputKind;
  readonly fileIndex: number | undefined;
  readonly pid: string | undefined;
  /** Address of the caller. */
  readonly clientHost: string;
  readonly callerIsLocal: boolean;
  readonly preferredAudioLanguage: string | null;
  /** Which audio is made into AAC; null: none. */
  readonly transcode: AudioTranscoding | null;
  readonly clientSessionId: number;
  readonly useApiStop: boolean;
  readonly stopNotifications: boolean;
  /** Ends a running session of the same key first. */
  readonly forceRestart: boolean;
  /** Each new read of a file session ends the ones before. Default: any number read at once (B8). */
  readonly singleReader?: boolean;
  /** Files that the default one is taken from; null or absent: all. */
  readonly selectedIndexes?: readonly number[] | null;
  /** Files that may be played next; their beginning is fetched ahead. Null or absent: not known. */
  readonly nextIndexes?: readonly number[] | null;
  /** The caller gave up. */
  readonly signal: AbortSignal;
}

/** What the sessions stand on. */
export interface SessionsParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly swarms: SwarmManager;
  readonly live: LiveSwarms;
  /** How much of a broadcast is kept for its players. */
  readonly liveWindow: LiveWindowMaker;
  readonly resolver: Resolver;
  readonly startTimeoutMs: number;
  /** Makes AAC; null: nothing does. */
  readonly audioEncoder: AudioEncoder | null;
  /** The metadata of a stream that is being started is known now. */
  readonly onMetadata: (metainfo: AnyMetainfo) => void;
}

/** See the module. */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #byKey = new Map<string, AnySession>();
  readonly #byId = new Map<string, AnySession>();
  /** All sessions share it: few chunks wait to be used again, however many players there are. */
  readonly #buffers = new ChunkBuffers();
  readonly #presentations: Presentations;
  readonly #live: LiveStreams;
  readonly #closing = new AbortController();

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#presentations = new Presentations(parts.audioEncoder);
    this.#live = new LiveStreams(parts.live, parts.clock, parts.liveWindow);
  }

  /** Running sessions. */
  list(): readonly AnySession[] {
    return [...this.#byId.values()];
  }

  /** The session of a control or playback URL; the segment alone is the secret, the infohash must fit it. */
  find(infohashHex: string, id: string): AnySession | null {
    const session = this.#byId.get(id);
    return session !== undefined && session.identity.infohashHex === infohashHex ? session : null;
  }

  /** The HLS session that a segment URL belongs to: the client's own first, then any on that file. */
  findForSegment(
    infohashHex: string,
    fileIndex: number | undefined,
    preferredAudioLanguage: string | null,
    transcode: AudioTranscoding | null,
    clientHost: string,
  ): AnySession | null {
    let found: AnySession | null = null;
    for (const session of this.#byId.values()) {
      const { identity } = session;
      if (identity.infohashHex !== infohashHex || identity.output !== "hls") continue;
      if (session.preferredAudioLanguage !== preferredAudioLanguage) continue;
      if (session.kind === "file") {
        if (fileIndex === undefined ? !session.isDefaultFile : identity.fileIndex !== fileIndex) continue;
        if (!sameTranscoding(session.transcode, transcode)) continue;
      }
      if (identity.client === clientHost) return session;
      found ??= session;
    }
    return found;
  }

  /**
   * Starts or joins a session. Rejects with the resolver's and media's errors, `start_timeout` (the message says what
   * was missing), `too_busy`, or `aborted`.
   */
  async start(request: StartRequest): Promise<AnySession> {
    const { clock, startTimeoutMs } = this.#parts;
    let lease: SwarmLease | null = null;
    const attempt: Attempt = { reason: () => "no answer to the selector" };
    const late = deadline(clock, startTimeoutMs, AbortSignal.any([request.signal, this.#closing.signal]), () => {
      return new MillraceError("start_timeout", `start timeout: ${attempt.reason()}`);
    });
    try {
      const { metainfo: told, ...named } = await withSignal(
        this.#parts.resolver.resolve(request.selector, { callerIsLocal: request.callerIsLocal, signal: late.signal }),
        late.signal,
      );
      const { magnet } = named;
      const running = () => magnet === undefined ? null : this.#parts.live.running(magnet.infohashHex);
      let metainfo = told ?? running();
      if (metainfo === null || !isLive(metainfo)) {
        const joined = lease = this.#parts.swarms.acquire({ ...named, ...(metainfo && { metainfo }) });
        attempt.reason = () => joined.swarm.status().peers === 0 ? "no_peers" : "no_metadata";
        metainfo = await joined.swarm.metadata(late.signal).catch((error) => {
          // A broadcast that was joined meanwhile by what is known elsewhere took the place of the swarm.
          const live = running();
          if (live === null) throw error;
          return live;
        });
      }
      this.#parts.onMetadata(metainfo);
      if (isLive(metainfo)) {
        return await this.#startLive({ ...named, metainfo }, request, attempt, late.signal);
      }
      const held = lease!;
      lease = null;
      attempt.reason = () => held.swarm.status().peers === 0 ? "no_peers" : "no_data";
      return await this.#startFile(held, metainfo, magnet?.selectOnly, request, late.signal);
    } finally {
      late.cancel();
      lease?.release();
    }
  }

  /** Of a torrent: its file is opened first. The lease goes back unless a new session keeps it. */
  async #startFile(
    lease: SwarmLease,
    metainfo: Metainfo,
    selectOnly: readonly number[] | null | undefined,
    request: StartRequest,
    signal: AbortSignal,
  ): Promise<PlaybackSession> {
    let kept = false;
    try {
      const file = chooseFile(metainfo, request.fileIndex, request.selectedIndexes ?? selectOnly);
      const { identity, key } = identify(metainfo.infohashHex, file.index, request.output, request);
      if (request.forceRestart) this.#byKey.get(key)?.stop("restarted");
      const running = this.#joinFile(key, request);
      if (running !== null) return running;
      const presentation = request.output === "file" ? null : await this.#presentations.open({
        swarm: lease.swarm,
        file,
        preferredAudioLanguage: request.preferredAudioLanguage,
        transcode: request.transcode,
      }, signal);
      const meanwhile = this.#joinFile(key, request);
      if (meanwhile !== null) return meanwhile;
      const session = new PlaybackSession({
        ...this.#common(identity, key, request),
        lease,
        buffers: this.#buffers,
        file,
        isDefaultFile: isDefault(metainfo, file.index),
        presentation,
        transcode: request.transcode,
        nextFile: nextFile(metainfo, file, request.nextIndexes ?? []),
      });
      session.singleReader = request.singleReader ?? false;
      kept = true;
      return this.#keep(key, session);
    } finally {
      if (!kept) lease.release();
    }
  }

  /** Of a broadcast: once anything of it arrives. There is one stream, so `file` is its MPEG TS, too. */
  async #startLive(
    target: LiveTarget,
    request: StartRequest,
    attempt: Attempt,
    signal: AbortSignal,
  ): Promise<LiveSession> {
    const output = request.output === "file" ? "ts" : request.output;
    const { identity, key } = identify(target.metainfo.infohashHex, 0, output, request);
    if (request.forceRestart) this.#byKey.get(key)?.stop("restarted");
    const running = this.#joinLive(key, request);
    if (running !== null) return running;
    const lease = this.#live.open(target);
    let kept = false;
    try {
      attempt.reason = () => liveReason(lease.stream);
      await lease.stream.arriving(signal);
      const meanwhile = this.#joinLive(key, request);
      if (meanwhile !== null) return meanwhile;
      const session = new LiveSession({ ...this.#common(identity, key, request), lease });
      kept = true;
      return this.#keep(key, session);
    } finally {
      if (!kept) lease.release();
    }
  }

  /** What sessions of all kinds are made of. Throws `too_busy`. */
  #common(identity: SessionIdentity, key: string, request: StartRequest): SessionBaseParts {
    if (this.#byId.size >= MAX_SESSIONS) {
      throw new MillraceError("too_busy", "too many sessions are running; stop one first");
    }
    const id = newSessionId();
    return {
      id,
      identity,
      clock: this.#parts.clock,
      preferredAudioLanguage: request.preferredAudioLanguage,
      clientSessionId: request.clientSessionId,
      activityTimeoutMs: request.useApiStop ? API_STOP_TIMEOUT_MS : ACTIVITY_TIMEOUT_MS,
      readTimeoutMs: this.#parts.startTimeoutMs,
      stopNotifications: request.stopNotifications,
      onStopped: () => {
        this.#byId.delete(id);
        if (this.#byKey.get(key)?.id === id) this.#byKey.delete(key);
      },
    };
  }

  #keep<T extends AnySession>(key: string, session: T): T {
    this.#byKey.set(key, session);
    this.#byId.set(session.id, session);
    return session;
  }

  /** Whether `close` was called. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Ends all sessions at once and refuses new ones; resolves when nothing of them is left on disk. */
  async close(): Promise<void> {
    this.#closing.abort(new MillraceError("too_busy", "the engine is shutting down"));
    for (const session of this.list()) session.stop("shutdown");
    await this.#live.close();
  }

  #joinFile(key: string, request: StartRequest): PlaybackSession | null {
    const running = this.#byKey.get(key);
    if (running?.kind !== "file" || running.preferredAudioLanguage !== request.preferredAudioLanguage) return null;
    if (!sameTranscoding(running.transcode, request.transcode)) return null;
    running.singleReader = request.singleReader ?? false;
    return rejoin(running, request);
  }

  #joinLive(key: string, request: StartRequest): LiveSession | null {
    const running = this.#byKey.get(key);
    if (running?.kind !== "live" || running.preferredAudioLanguage !== request.preferredAudioLanguage) return null;
    // The broadcaster may have gone on under the same id.
    if (running.stream.ended) return null;
    return rejoin(running, request);
  }
}

function rejoin<T extends AnySession>(running: T, request: StartRequest): T {
  if (request.clientSessionId !== -1) running.clientSessionId = request.clientSessionId;
  running.touch();
  return running;
}

function sameTranscoding(a: AudioTranscoding | null, b: AudioTranscoding | null): boolean {
  return a === b || (a !== null && b !== null && a.mp3 === b.mp3 && a.ac3 === b.ac3);
}

function isDefault(metainfo: Metainfo, index: number): boolean {
  try {
    return defaultFile(metainfo).index === index;
  } catch (error) {
    if (hasCode(error, "no_playable_file")) return false;
    throw error;
  }
}

/** What makes two requests the same session, and the same as text. */
function identify(
  infohashHex: string,
  fileIndex: number,
  output: OutputKind,
  request: StartRequest,
): { identity: SessionIdentity; key: string } {
  const client = request.pid ?? request.clientHost;
  const identity = { infohashHex, fileIndex, output, client };
  return { identity, key: JSON.stringify([infohashHex, fileIndex, output, client]) };
}

/** Why nothing of a broadcast arrives. */
function liveReason({ source }: LiveStream): string {
  if (source.status().peers === 0) return "no_peers";
  return source.node.joined ? "no_data" : "not on the air: no peer has anything of the last 30 s";
}

/** 128 random bits as 32 hexadecimal characters. */
function newSessionId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

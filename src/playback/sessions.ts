/** All playback sessions of an engine: starting, joining, finding, ending. B7, B8, B12. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { chooseFile, defaultFile } from "../content/file-choice.ts";
import type { Resolver } from "../content/resolve.ts";
import type { StreamSelector } from "../content/selector.ts";
import type { Metainfo } from "../transport/types.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { AudioEncoder, AudioTranscoding } from "../media/transcode/types.ts";
import type { Clock, Logger } from "../ports.ts";
import type { SwarmLease, SwarmManager } from "../swarm/types.ts";
import { Presentations } from "./presentations.ts";
import { type OutputKind, PlaybackSession, type SessionIdentity } from "./session.ts";

/** Sessions at once; each is small, but readers and swarms behind them are not. */
const MAX_SESSIONS = 500;
/** Without activity a session ends after this. */
export const ACTIVITY_TIMEOUT_MS = 60_000;
/** The same for clients that promise to call stop (`use_api_stop=1`). */
export const API_STOP_TIMEOUT_MS = 3_600_000;

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
  /** The caller gave up. */
  readonly signal: AbortSignal;
}

/** What the sessions stand on. */
export interface SessionsParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly swarms: SwarmManager;
  readonly resolver: Resolver;
  readonly startTimeoutMs: number;
  /** Makes AAC; null: nothing does. */
  readonly audioEncoder: AudioEncoder | null;
  /** The metadata of a stream that is being started is known now. */
  readonly onMetadata: (metainfo: Metainfo) => void;
}

/** See the module. */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #byKey = new Map<string, PlaybackSession>();
  readonly #byId = new Map<string, PlaybackSession>();
  readonly #presentations: Presentations;
  readonly #closing = new AbortController();

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#presentations = new Presentations(parts.audioEncoder);
  }

  /** Running sessions. */
  list(): readonly PlaybackSession[] {
    return [...this.#byId.values()];
  }

  /** The session of a control or playback URL; the segment alone is the secret, the infohash must fit it. */
  find(infohashHex: string, id: string): PlaybackSession | null {
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
  ): PlaybackSession | null {
    let found: PlaybackSession | null = null;
    for (const session of this.#byId.values()) {
      const { identity } = session;
      if (identity.infohashHex !== infohashHex || identity.output !== "hls") continue;
      if (fileIndex === undefined ? !session.isDefaultFile : identity.fileIndex !== fileIndex) continue;
      if (session.preferredAudioLanguage !== preferredAudioLanguage) continue;
      if (!sameTranscoding(session.transcode, transcode)) continue;
      if (identity.client === clientHost) return session;
      found ??= session;
    }
    return found;
  }

  /**
   * Starts or joins a session. Rejects with the resolver's and media's errors, `start_timeout` (the message says what
   * was missing), `too_busy`, or `aborted`.
   */
  async start(request: StartRequest): Promise<PlaybackSession> {
    const { clock, startTimeoutMs } = this.#parts;
    let lease: SwarmLease | null = null;
    let phase = "no answer to the selector";
    const late = deadline(clock, startTimeoutMs, AbortSignal.any([request.signal, this.#closing.signal]), () => {
      return new MillraceError("start_timeout", `start timeout: ${lease === null ? phase : reasonOf(lease, phase)}`);
    });
    try {
      const target = await withSignal(
        this.#parts.resolver.resolve(request.selector, { callerIsLocal: request.callerIsLocal, signal: late.signal }),
        late.signal,
      );
      lease = this.#parts.swarms.acquire(target);
      phase = "no_metadata";
      const metainfo = await lease.swarm.metadata(late.signal);
      this.#parts.onMetadata(metainfo);
      const file = chooseFile(metainfo, request.fileIndex, target.magnet?.selectOnly);
      const identity: SessionIdentity = {
        infohashHex: metainfo.infohashHex,
        fileIndex: file.index,
        output: request.output,
        client: request.pid ?? request.clientHost,
      };
      const key = JSON.stringify([identity.infohashHex, identity.fileIndex, identity.output, identity.client]);
      if (request.forceRestart) this.#byKey.get(key)?.stop("restarted");
      const running = this.#join(key, request);
      if (running !== null) return running;
      phase = "no_data";
      const presentation = request.output === "file" ? null : await this.#presentations.open({
        swarm: lease.swarm,
        file,
        preferredAudioLanguage: request.preferredAudioLanguage,
        transcode: request.transcode,
      }, late.signal);
      const meanwhile = this.#join(key, request);
      if (meanwhile !== null) return meanwhile;
      if (this.#byId.size >= MAX_SESSIONS) {
        throw new MillraceError("too_busy", "too many sessions are running; stop one first");
      }
      const session = new PlaybackSession({
        id: newSessionId(),
        identity,
        clock,
        lease,
        file,
        isDefaultFile: isDefault(metainfo, file.index),
        presentation,
        preferredAudioLanguage: request.preferredAudioLanguage,
        transcode: request.transcode,
        clientSessionId: request.clientSessionId,
        activityTimeoutMs: request.useApiStop ? API_STOP_TIMEOUT_MS : ACTIVITY_TIMEOUT_MS,
        readTimeoutMs: startTimeoutMs,
        stopNotifications: request.stopNotifications,
        onStopped: (stopped) => {
          this.#byId.delete(stopped.id);
          if (this.#byKey.get(key) === stopped) this.#byKey.delete(key);
        },
      });
      lease = null;
      this.#byKey.set(key, session);
      this.#byId.set(session.id, session);
      return session;
    } finally {
      late.cancel();
      lease?.release();
    }
  }

  /** Ends all sessions and refuses new ones. */
  close(): void {
    this.#closing.abort(new MillraceError("too_busy", "the engine is shutting down"));
    for (const session of this.list()) session.stop("shutdown");
  }

  #join(key: string, request: StartRequest): PlaybackSession | null {
    const running = this.#byKey.get(key);
    if (running === undefined || running.preferredAudioLanguage !== request.preferredAudioLanguage) return null;
    if (!sameTranscoding(running.transcode, request.transcode)) return null;
    running.touch();
    return running;
  }
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

function reasonOf(lease: SwarmLease, phase: string): string {
  const status = lease.swarm.status();
  return status.peers === 0 ? "no_peers" : phase;
}

/** 128 random bits as 32 hexadecimal characters. */
function newSessionId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

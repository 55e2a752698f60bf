/** All playback sessions of an engine: starting, joining, finding, ending. Section 3.1 of the HTTP API. */
import { ChunkBuffers } from "../bytes/chunk-buffers.ts";
import { deadline, withSignal } from "../bytes/deadline.ts";
import { faultFields, guardedClock } from "../bytes/guarded-clock.ts";
import { chooseFile, isDefaultFile } from "../content/file-choice.ts";
import { fromPublic, isLive } from "../metainfo/live.ts";
import type { Metainfo } from "../metainfo/types.ts";
import { MillraceError } from "../errors.ts";
import { sameTranscoding } from "../media/model/audio-target.ts";
import type { Lease } from "../swarm/leases.ts";
import type { Swarm } from "../swarm/types.ts";
import { EndedSessions } from "./ended-sessions.ts";
import type { EventLog } from "./events.ts";
import { nextFile } from "./next-file.ts";
import { type OpenedFile, Presentations } from "./presentations.ts";
import { PlaybackSession } from "./session.ts";
import { waitingFor } from "./waiting-for.ts";
import { channelOrigin } from "./channel/channel-selector.ts";
import { LiveSession } from "./live/live-session.ts";
import { liveReason } from "./live/live-reason.ts";
import { broadcastOrigin, LiveStreams, type StreamOrigin } from "./live/live-streams.ts";
import { INACTIVITY, type SessionBaseParts, type SessionIdentity, SHUTDOWN } from "./session-base.ts";
import { SessionLimits } from "./session-limits.ts";
import { type SegmentClient, type SegmentQuery, type SessionRecord, SessionRecords } from "./session-records.ts";
import type { SessionsParts } from "./sessions-parts.ts";
import { SharedOutputs } from "./shared-output.ts";
import { OWN } from "../bytes/shares.ts";
import { SharedTask } from "./shared-task.ts";
import { mayJoin, peerWishes, requireOtherSources } from "./without-peers.ts";
import { activityTimeoutMs, identify, newSessionId, recordOf, requestOf, type StartRequest } from "./start-request.ts";

/** How long an immediate start waits for the container, to report at once a file that its first bytes rule out. */
const FAIL_FAST_MS = 250;

/** A session of either kind, as `kind` says. */
export type AnySession = PlaybackSession | LiveSession;

/** Starts, finds and ends the sessions of one engine. */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #byKey = new Map<string, AnySession>();
  readonly #byId = new Map<string, AnySession>();
  /** Shared by all sessions: few chunks wait to be used again, however many players there are. */
  readonly #shared = new SharedOutputs(new ChunkBuffers());
  readonly #presentations: Presentations;
  readonly #live: LiveStreams;
  readonly #closing = new AbortController();
  readonly #ended: EndedSessions;
  readonly #limits = new SessionLimits();
  readonly #records: SessionRecords;
  /** Sessions that starts on trial made. */
  readonly #trials = new WeakMap<StartRequest, AnySession>();
  /** Sessions that are coming back, by id: a player asks for several segments at once. */
  readonly #returning = new Map<string, SharedTask<AnySession>>();

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#records = parts.records ?? new SessionRecords();
    const { audioEncoder, audioTarget, foreignReader } = parts;
    this.#presentations = new Presentations({ audioEncoder, audioTarget, foreignReader });
    this.#live = new LiveStreams(parts.clock, parts.liveWindow, parts.log);
    this.#ended = new EndedSessions(parts.clock);
  }

  /** Running sessions. */
  list(): readonly AnySession[] {
    return [...this.#byId.values()];
  }

  /** The session of a control or playback URL. Only the segment is secret; the infohash must match it. */
  find(infohashHex: string, id: string): AnySession | null {
    const session = this.#byId.get(id);
    return session !== undefined && session.identity.infohashHex === infohashHex ? session : null;
  }

  /** Events of a running session, or of one that ended within the last 30 s; null: there is none. */
  eventsOf(infohashHex: string, id: string): { readonly log: EventLog; readonly hasEnded: boolean } | null {
    const running = this.find(infohashHex, id);
    const session = running ?? this.#ended.find(infohashHex, id);
    return session === null ? null : { log: session.events, hasEnded: running === null };
  }

  /**
   * The starter of the session with these values, as in `SessionIdentity`, whether it runs or ended by itself;
   * undefined when there is none.
   */
  ownerOf(infohashHex: string, id: string): string | null | undefined {
    const running = this.find(infohashHex, id)?.identity;
    return (running ?? this.#records.find(infohashHex, id) ?? this.#ended.find(infohashHex, id))?.owner;
  }

  /**
   * The session of a playback URL, brought back if it ended by itself; null when there is none. `caller` identifies the
   * caller, which may use the session's segments from now on. Rejects as `start`.
   */
  async open(infohashHex: string, id: string, caller: string, signal: AbortSignal): Promise<AnySession | null> {
    const record = this.#records.find(infohashHex, id);
    if (record !== null) this.#records.addHolder(id, caller);
    const running = this.find(infohashHex, id);
    if (record === null || (running !== null && !(running.kind === "live" && running.hasContinued))) return running;
    running?.stop(INACTIVITY);
    return await this.#bringBack(record, signal);
  }

  /**
   * The HLS session that a segment's URL belongs to: one that has the segment, and of those the client's own first. One
   * that ended by itself is brought back only for a caller that once showed its id, because an infohash is no secret.
   * Null when there is none. Rejects as `start`.
   */
  async openForSegment(
    query: SegmentQuery,
    client: SegmentClient,
    signal: AbortSignal,
  ): Promise<AnySession | null> {
    const running = this.#findForSegment(query, client);
    if (running !== null) return running;
    const record = this.#records.findForSegment(query, client.caller);
    return record === null ? null : await this.#bringBack(record, signal);
  }

  /**
   * A page finds only sessions that it started or showed the id of: the infohash alone would reveal what the user
   * watches.
   */
  #findForSegment(query: SegmentQuery, client: SegmentClient): AnySession | null {
    const { fileIndex } = query;
    let found: AnySession | null = null;
    let foundRank = -1;
    for (const session of this.#byId.values()) {
      const { identity } = session;
      if (identity.infohashHex !== query.infohashHex || identity.output !== "hls" || session.failed) continue;
      if (session.preferredAudioLanguage !== query.preferredAudioLanguage) continue;
      if (session.kind === "file") {
        if (fileIndex === undefined ? !session.isDefaultFile : identity.fileIndex !== fileIndex) continue;
        if (identity.hlsFormat !== query.hlsFormat || !sameTranscoding(session.transcode, query.transcode)) continue;
      }
      if (client.owner !== null && identity.owner !== client.owner) {
        const record = this.#records.find(identity.infohashHex, session.id);
        if (record === null || !record.holders.includes(client.caller)) continue;
      }
      // A broadcast that ended and began again under its id has several windows, each with segments of its own.
      const hasIt = session.kind === "file" || session.segment(query.n) !== null;
      const rank = (hasIt ? 2 : 0) + (identity.client === client.host ? 1 : 0);
      if (rank > foundRank) [found, foundRank] = [session, rank];
    }
    return found;
  }

  async #bringBack(record: SessionRecord, signal: AbortSignal): Promise<AnySession> {
    const { id } = record;
    let task = this.#returning.get(id);
    if (task === undefined || task.abandoned) {
      task = new SharedTask((own) => this.start(requestOf(record, own)));
      this.#returning.set(id, task);
    }
    try {
      return await task.wait(signal);
    } finally {
      if (this.#returning.get(id) === task) this.#returning.delete(id);
    }
  }

  /** Ends a session permanently, including one that already ended by itself. Does nothing if no session has that id. */
  stop(infohashHex: string, id: string, reason: string): void {
    const record = this.#records.find(infohashHex, id);
    if (record !== null) this.#records.forget(id);
    this.find(infohashHex, id)?.stop(reason);
  }

  /**
   * Starts or joins a session. Rejects with the resolver's and media's errors, `start_timeout` (the message says what
   * was missing), `too_busy`, or `aborted`.
   */
  async start(request: StartRequest): Promise<AnySession> {
    const { clock, startTimeoutMs } = this.#parts;
    let lease: Lease<Swarm> | null = null;
    const attempt = { reason: () => "no answer to the selector" };
    const late = deadline(clock, startTimeoutMs, AbortSignal.any([request.signal, this.#closing.signal]), () => {
      return new MillraceError("start_timeout", `start timeout: ${attempt.reason()}`);
    });
    const { selector } = request;
    try {
      if (selector.kind === "channel") {
        const origin = await channelOrigin(this.#parts.channels, selector, request, late.signal);
        return await this.#startLive(origin, request, attempt, late.signal);
      }
      const resolving = this.#parts.resolver.resolve(selector, { ...request, signal: late.signal });
      const { metainfo: told, ...named } = await withSignal(resolving, late.signal);
      const { magnet } = named;
      const running = () => magnet === undefined ? null : this.#parts.live.running(magnet.infohashHex);
      // A transport file that was just given may not be in the cache yet.
      const swarm = this.#parts.swarms.list().find(({ infohashHex }) => infohashHex === magnet?.infohashHex);
      let metainfo = told ?? running() ?? swarm?.metainfo ?? null;
      const wishes = peerWishes(request, metainfo);
      if (metainfo === null || !isLive(metainfo)) {
        const joined = lease = this.#parts.swarms.acquire({ ...named, ...(metainfo && { metainfo }), ...wishes });
        attempt.reason = () => joined.swarm.status().peers === 0 ? "no_peers" : "no_metadata";
        metainfo = await joined.swarm.metadata(late.signal).catch((error) => {
          // The infohash turned out to be a broadcast that was joined in the meantime: it replaced this swarm.
          const live = running();
          if (live === null) throw error;
          return live;
        });
      }
      this.#parts.onMetadata(named.servers === "public" ? fromPublic(metainfo) : metainfo);
      if (isLive(metainfo)) {
        const origin = broadcastOrigin(this.#parts.live, { ...named, metainfo });
        return await this.#startLive(origin, request, attempt, late.signal);
      }
      const held = lease!;
      if (request.withoutPeers) requireOtherSources(held.swarm, magnet);
      lease = null;
      attempt.reason = () => waitingFor(held.swarm);
      return await this.#startFile(held, metainfo, magnet?.selectOnly, request, late.signal);
    } finally {
      late.cancel();
      lease?.release();
      this.#trials.get(request)?.stop(INACTIVITY);
    }
  }

  /** Of a torrent: its file is opened first. The lease is released unless a new session keeps it. */
  async #startFile(
    lease: Lease<Swarm>,
    metainfo: Metainfo,
    selectOnly: readonly number[] | null | undefined,
    request: StartRequest,
    signal: AbortSignal,
  ): Promise<PlaybackSession> {
    let kept = false;
    let opened: OpenedFile | null = null;
    try {
      const file = chooseFile(metainfo, request.fileIndex, request.selectedIndexes, selectOnly);
      const { identity, key } = identify(metainfo.infohashHex, file.index, request.output, request);
      if (request.forceRestart) this.#byKey.get(key)?.stop("restarted");
      const running = this.#joinFile(key, request);
      if (running !== null) return await this.#readied(running, request, signal);
      const open = (opening: AbortSignal) =>
        this.#presentations.open({
          swarm: lease.swarm,
          file,
          preferredAudioLanguage: request.preferredAudioLanguage,
          transcode: request.transcode,
          hls: request.output === "hls" ? identity.hlsFormat : null,
          holder: request.holder ?? OWN,
        }, opening);
      const media = request.output === "file" ? null : request.atOnce ? open : opened = await open(signal);
      const meanwhile = this.#joinFile(key, request);
      if (meanwhile !== null) return await this.#readied(meanwhile, request, signal);
      const session = new PlaybackSession({
        ...this.#common(identity, key, request),
        lease,
        shared: this.#shared,
        file,
        isDefaultFile: isDefaultFile(metainfo, file.index),
        media,
        cushion: this.#parts.cushion,
        transcode: request.transcode,
        withoutPeers: request.withoutPeers ?? false,
        nextFile: nextFile(metainfo, file, request.nextIndexes ?? []),
      });
      session.follow(request);
      kept = true;
      return await this.#readied(this.#keep(key, session, request), request, signal);
    } finally {
      if (!kept) {
        opened?.release();
        lease.release();
      }
    }
  }

  /** `session` once it can be played. Without waiting: at once, unless it fails within a moment. */
  async #readied(session: PlaybackSession, request: StartRequest, signal: AbortSignal): Promise<PlaybackSession> {
    const moment = request.atOnce ? deadline(this.#parts.clock, FAIL_FAST_MS, signal) : null;
    try {
      await session.ready(moment?.signal ?? signal);
    } catch (error) {
      const isLate = moment?.signal.aborted === true && !signal.aborted;
      if (isLate) return session;
      if (session.failed) session.stop("it can't be played");
      throw error;
    } finally {
      moment?.cancel();
    }
    return session;
  }

  /** Of a broadcast: once anything of it arrives. There is one stream, so `file` is its MPEG TS, too. */
  async #startLive(
    origin: StreamOrigin,
    request: StartRequest,
    /** What it waits for, as reported when that takes too long. */
    attempt: { reason: () => string },
    signal: AbortSignal,
  ): Promise<LiveSession> {
    const output = request.output === "file" ? "ts" : request.output;
    const { identity, key } = identify(origin.infohashHex, 0, output, request, true);
    if (request.forceRestart) this.#byKey.get(key)?.stop("restarted");
    const running = this.#joinLive(key, request);
    if (running !== null) return running;
    const lease = this.#live.open(origin);
    let kept = false;
    try {
      attempt.reason = () => liveReason(lease.stream);
      await lease.stream.arriving(signal);
      const meanwhile = this.#joinLive(key, request);
      if (meanwhile !== null) return meanwhile;
      const session = new LiveSession({ ...this.#common(identity, key, request), lease, shared: this.#shared });
      kept = true;
      return this.#keep(key, session, request);
    } finally {
      if (!kept) lease.release();
    }
  }

  /** What sessions of all kinds are made of. Throws `too_busy`. */
  #common(identity: SessionIdentity, key: string, request: StartRequest): SessionBaseParts {
    this.#limits.makeRoom(request.holder ?? OWN, INACTIVITY);
    const id = request.id ?? newSessionId();
    return {
      id,
      identity,
      holder: request.holder ?? OWN,
      clock: guardedClock(this.#parts.clock, (error) => this.#broke(id, error)),
      preferredAudioLanguage: request.preferredAudioLanguage,
      clientSessionId: request.clientSessionId,
      activityTimeoutMs: activityTimeoutMs(request),
      readTimeoutMs: this.#parts.startTimeoutMs,
      stopNotifications: request.stopNotifications,
      onStopped: (reason) => {
        if (reason !== INACTIVITY && reason !== SHUTDOWN) this.#records.forget(id);
        const session = this.#byId.get(id);
        if (session !== undefined) {
          this.#limits.remove(session);
          this.#ended.keep({ id, ...identity, events: session.events });
        }
        this.#byId.delete(id);
        if (this.#byKey.get(key)?.id === id) this.#byKey.delete(key);
        this.#parts.observer?.ended(id, reason);
      },
      onStalled: (reason) => this.#parts.observer?.stalled(id, reason),
      onFailed: () => {
        this.#records.forget(id);
        if (this.#byKey.get(key)?.id === id) this.#byKey.delete(key);
      },
    };
  }

  /** A timer of that session threw: it ends, and nobody else notices. */
  #broke(id: string, error: unknown): void {
    this.#parts.log.log("error", "a fault of the engine ended a session", { session: id, ...faultFields(error) });
    this.#byId.get(id)?.stop("a fault of the engine ended this session: start it again");
  }

  #keep<T extends AnySession>(key: string, session: T, request: StartRequest): T {
    // Nobody joins a session that is about to end.
    if (request.isTrial) this.#trials.set(request, session);
    else this.#byKey.set(key, session);
    this.#byId.set(session.id, session);
    this.#limits.add(session, request.holder ?? OWN);
    const known = this.#records.find(session.identity.infohashHex, session.id);
    const isFile = session.kind === "file";
    const facts = { id: session.id, isLive: !isFile, isDefaultFile: isFile && session.isDefaultFile };
    this.#records.keep(known ?? recordOf(facts, session.identity, request));
    return session;
  }

  /** For one start, ms. */
  get startTimeoutMs(): number {
    return this.#parts.startTimeoutMs;
  }

  /** Whether `close` was called. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Ends all sessions at once and refuses new ones; resolves when nothing of them is left on disk. */
  async close(): Promise<void> {
    this.#closing.abort(new MillraceError("too_busy", "the engine is shutting down"));
    for (const session of this.list()) session.stop(SHUTDOWN);
    await this.#live.close();
  }

  #joinFile(key: string, request: StartRequest): PlaybackSession | null {
    const running = this.#byKey.get(key);
    if (running?.kind !== "file" || !mayJoin(running, request)) return null;
    if (request.isTrial !== true) running.follow(request);
    return running.rejoined(request);
  }

  #joinLive(key: string, request: StartRequest): LiveSession | null {
    const running = this.#byKey.get(key);
    if (running?.kind !== "live" || running.preferredAudioLanguage !== request.preferredAudioLanguage) return null;
    // The broadcaster may have continued under the same id.
    if (running.stream.ended) return null;
    return running.rejoined(request);
  }
}

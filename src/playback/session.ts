/**
 * A playback session of a file: a lease on a swarm, the readers of one client on one file, and the data for `stat`,
 * `cmd` and events. Sessions know nothing of each other; shared things (swarm, index) are shared below them.
 */
import type { ChunkBuffers } from "../bytes/chunk-buffers.ts";
import { lendChunks } from "../bytes/lent-chunks.ts";
import { deadline, withSignal } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import { type AudioTranscoding, sameTranscoding } from "../media/model/audio-target.ts";
import type { HlsPlan, HlsSegment, Presentation, Renditions, TsLayout } from "../media/model/types.ts";
import type { Lease } from "../swarm/leases.ts";
import type { StallReason, Swarm, SwarmReader } from "../swarm/types.ts";
import type { MetainfoFile } from "../metainfo/types.ts";
import { Cushion, type CushionChoice, type CushionSetting } from "./cushion.ts";
import { fetchEnd, HeadFetch, type PlayedFile } from "./fetch-ahead.ts";
import { fetchIndexTail, indexComesFirst } from "./index-tail.ts";
import { fetchBeginning } from "./next-file.ts";
import { KeptLayout } from "./kept-layout.ts";
import { openPatiently } from "./patient-opening.ts";
import type { OpenedFile } from "./presentations.ts";
import { fileProblem, type Problem, swarmProblem } from "./problem.ts";
import { Session, type SessionBaseParts } from "./session-base.ts";
import type { OutputRun, SharedOutputs, SharedReader } from "./shared-output.ts";
import { runOf, type TrackedReader, trackReader } from "./tracked-reader.ts";

/** Media prebuffered before `dl`: the first of these two. */
const PREBUFFER_SECONDS = 2;
const PREBUFFER_MAX_BYTES = 1024 * 1024;
/**
 * A swarm that takes longer for the first eighth of the prebuffer has no time for the end, ms: the player itself reads it
 * soon enough.
 */
const CALM_MS = 2000;
/** From this share of the file on the next file is fetched. */
const NEXT_FILE_FROM = 0.9;

/** Everything a session is made of. */
export interface SessionParts extends SessionBaseParts {
  readonly lease: Lease<Swarm>;
  readonly file: MetainfoFile;
  readonly isDefaultFile: boolean;
  /** Output made for other sessions, and memory for chunks. */
  readonly shared: SharedOutputs;
  /** What the output is made from, or how the session opens it by itself; null for output `file`. */
  readonly media: OpenedFile | ((signal: AbortSignal) => Promise<OpenedFile>) | null;
  /** Which audio is converted to AAC; null: none. */
  readonly transcode: AudioTranscoding | null;
  /** How the player is held up when the swarm is slower than the film, unless a start says. */
  readonly cushion: CushionSetting;
  /** No peer is asked for it. Default false. */
  readonly withoutPeers?: boolean;
  /** The file that the player continues with; null: not known. */
  readonly nextFile?: MetainfoFile | null;
}

/** What may hold a session up. */
type SessionReader = Pick<SwarmReader, "stallReason" | "close">;
/** What a body is read from. */
type BodyReader = SessionReader & Pick<TrackedReader, "positionBytes" | "isWaiting">;

/** Plays one file for one client. */
export class PlaybackSession extends Session {
  readonly kind = "file";
  readonly file: MetainfoFile;
  readonly isDefaultFile: boolean;
  readonly transcode: AudioTranscoding | null;
  readonly withoutPeers: boolean;
  /** A new body of MPEG TS or of the file ends the ones before (`stop_prev_read_thread`). */
  singleReader = false;
  readonly #lease: Lease<Swarm>;
  readonly #shared: SharedOutputs;
  /** Bodies and data fetched ahead. */
  readonly #readers = new Set<SessionReader>();
  /** Bodies, with what ends them. */
  readonly #bodies = new Map<BodyReader, AbortController>();
  #nextFile: MetainfoFile | null;
  /** Place for which `missing_content` was reported. */
  #missingAt: number | null = null;
  #prebufferedBytes = 0;
  #prebufferBytes: number;
  /** null while it is being opened, and for output `file`. */
  #media: OpenedFile | null = null;
  /** Resolves when the output can be read; rejects with why it never will. */
  readonly #ready: Promise<void>;
  readonly #late = new KeptLayout();
  /** Unregisters this session as an HLS player; does nothing until it is registered. */
  #leaveAudience = () => {};
  readonly #head: HeadFetch;
  /** Holds the player up when the swarm is slower than the film. */
  readonly cushion: Cushion;
  /** Requests that wait for that. */
  #awaiting = 0;

  constructor(parts: SessionParts) {
    super(parts);
    this.#lease = parts.lease;
    this.#shared = parts.shared;
    this.file = parts.file;
    this.isDefaultFile = parts.isDefaultFile;
    this.transcode = parts.transcode;
    this.withoutPeers = parts.withoutPeers ?? false;
    this.#nextFile = parts.nextFile ?? null;
    this.#prebufferBytes = Math.min(parts.file.sizeBytes, PREBUFFER_MAX_BYTES);
    this.cushion = new Cushion({
      ...this.#played,
      clock: this.clock,
      buffers: parts.shared.buffers,
      setting: parts.cushion,
      isInSegments: parts.identity.output === "hls",
      bytesPerSecond: () => this.presentation?.bytesPerSecond ?? null,
    });
    this.#head = new HeadFetch(this.#played, this.#prebufferBytes, this.clock);
    this.#ready = typeof parts.media === "function" ? this.#open(parts.media) : Promise.resolve(this.#use(parts.media));
    this.#ready.then(() => this.#prebuffer(), (error) => this.fail(error)).finally(() => this.#head.endSoon());
    this.watch(this.swarm.ending);
  }

  /** Whether a start with these choices gets the output of this session. */
  suits(request: Pick<SessionParts, "preferredAudioLanguage" | "transcode">): boolean {
    return this.preferredAudioLanguage === request.preferredAudioLanguage &&
      sameTranscoding(this.transcode, request.transcode);
  }

  /** Takes over what the newest start says of reading. */
  follow(request: { readonly singleReader?: boolean; readonly cushion?: CushionChoice | null }): void {
    this.singleReader = request.singleReader ?? false;
    this.cushion.choice = request.cushion ?? null;
  }

  get swarm(): Swarm {
    return this.#lease.swarm;
  }

  get #played(): PlayedFile {
    return { swarm: this.swarm, file: this.file, output: this.identity.output };
  }

  get #isSized(): boolean {
    return (this.presentation?.ts.sizeBytes ?? null) !== null;
  }

  /** null for output `file`, and until `ready` has resolved. */
  get presentation(): Presentation | null {
    return this.#media?.presentation ?? null;
  }

  /** null for other outputs, and until `ready` has resolved. */
  get hls(): HlsPlan | null {
    return this.#media?.hls ?? null;
  }

  /**
   * Resolves when the output can be read. Rejects as `openMedia` does, with `start_timeout` when nothing comes, `closed`
   * when the session stops, or with the signal's reason.
   */
  async ready(signal: AbortSignal): Promise<void> {
    this.#awaiting++;
    try {
      await withSignal(this.#ready, signal);
    } finally {
      this.#awaiting--;
    }
  }

  get playable(): Promise<void> {
    return this.#ready;
  }

  get prebuffering(): boolean {
    return this.#prebufferedBytes < this.#prebufferBytes || this.cushion.filling !== null;
  }

  get prebufferProgress(): number {
    const first = this.#prebufferBytes === 0 ? 100 : Math.floor(100 * this.#prebufferedBytes / this.#prebufferBytes);
    return this.cushion.filling?.progress ?? first;
  }

  get problem(): Problem | null {
    return this.trouble ?? swarmProblem(this.swarm.status(), "disk_full") ?? fileProblem(this.presentation);
  }

  /**
   * The MPEG TS from `fromMs` on, as `Presentation.tsFrom`; null when there is none. The last result is kept, so that
   * all ranges that a player reads belong to one layout. Rejects as `planHls`.
   */
  tsFrom(fromMs: number, signal: AbortSignal): Promise<TsLayout> | null {
    const { presentation } = this;
    if (presentation === null) return null;
    return this.#late.get(fromMs, (own) => this.look((at, late) => presentation.tsFrom(fromMs, at, late), own), signal);
  }

  /** The segments of the HLS plan, whose starts are the times at which the MPEG TS can begin. Rejects as `planHls`. */
  async segments(signal: AbortSignal): Promise<readonly HlsSegment[]> {
    const { presentation } = this;
    return presentation === null ? [] : (await this.look(presentation.planHls, signal)).segments;
  }

  /** The film with its sounds apart; null where it gives no choice. Rejects as `Presentation.planRenditions`. */
  async renditions(signal: AbortSignal): Promise<Renditions | null> {
    const { presentation, hls } = this;
    if (hls === null || presentation?.planRenditions === undefined) return null;
    return await this.look(presentation.planRenditions, signal);
  }

  /**
   * The result of `look`, which gets a reader of the file that fetches nothing ahead. Its signal fires as `signal`, and with
   * `start_timeout` when the swarm brought nothing for too long.
   */
  async look<T>(look: (reader: SwarmReader, signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const reader = this.swarm.openReader(this.file.index, { readAheadBytes: 0 });
    this.#readers.add(reader);
    try {
      const own = AbortSignal.any([signal, this.signal]);
      return await openPatiently((late) => look(reader, late), this.swarm, this.clock, this.readTimeoutMs, own);
    } finally {
      this.#readers.delete(reader);
      reader.close();
    }
  }

  /** Streams what `produce` makes from the file, in its own reader. */
  stream(produce: (source: SwarmReader, signal: AbortSignal) => AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = this.#openReader();
    return this.#bodyOf(reader, (signal) => produce(reader, signal));
  }

  /**
   * Streams `[start, end)` of the output `name` of `source`, which `make` makes. Chunks that were made for other
   * readers are used once they have arrived. `segmentS`: it is a segment of this many seconds.
   */
  streamShared(
    source: object,
    name: string,
    [start, end]: readonly [start: number, end: number | null],
    make: (
      offset: number,
      source: SwarmReader,
      signal: AbortSignal,
      buffers: ChunkBuffers,
    ) => AsyncIterable<Uint8Array>,
    segmentS: number | null = null,
  ): ReadableStream<Uint8Array> {
    const { buffers } = this.#shared;
    const reader = this.#shared.read(source, name, start, end, (offset, signal): OutputRun => {
      // Not this session's own: others may continue with it.
      const own = this.#openReader();
      return runOf(make(offset, own, signal, buffers), own);
    });
    return this.#bodyOf(reader, (signal) => this.#watched(reader, signal), segmentS);
  }

  async *#watched(reader: SharedReader, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    for await (const chunk of reader.read(signal)) {
      if ((reader.positionBytes ?? 0) >= this.file.sizeBytes * NEXT_FILE_FROM) this.#fetchNext();
      yield chunk;
    }
  }

  #openReader(): TrackedReader {
    const { bytesPerSecond } = this.presentation ?? {};
    let reads = 0;
    const reader = trackReader(this.swarm.openReader(this.file.index), this.#shared.buffers, (_offset, end) => {
      // From its second read on it has a place of its own, from which it reads ahead.
      if (++reads === 2) this.#head.end();
      if (end >= this.file.sizeBytes * NEXT_FILE_FROM) this.#fetchNext();
    }, this.holder);
    if (bytesPerSecond) reader.setBitrate(bytesPerSecond);
    return reader;
  }

  #bodyOf(
    reader: BodyReader,
    produce: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
    segmentS: number | null = null,
  ): ReadableStream<Uint8Array> {
    if (this.singleReader && this.identity.output !== "hls") {
      const reason = new MillraceError("aborted", "another read of the session took over");
      for (const ending of this.#bodies.values()) ending.abort(reason);
    }
    const ending = new AbortController();
    this.#readers.add(reader);
    this.#bodies.set(reader, ending);
    const body = this.body({
      produce: (signal) => {
        const either = AbortSignal.any([signal, ending.signal]);
        return this.cushion.pass(produce(either), reader, either, segmentS);
      },
      silence: () => reader.stallReason() ?? "slow_peers",
      finish: () => {
        this.#readers.delete(reader);
        this.#bodies.delete(reader);
        reader.close();
      },
    });
    lendChunks(body, this.#shared.buffers);
    return body;
  }

  protected stall(): StallReason | null {
    // A client that waits for the container to be opened counts as active, although it reads nothing yet.
    if (this.#awaiting > 0) this.touch();
    let reason: StallReason | null = null;
    for (const reader of this.#readers) reason ??= reader.stallReason();
    const bodies = [...this.#bodies.keys()];
    this.cushion.look(bodies.at(-1), bodies.some((reader) => reader.isWaiting()));
    if (this.cushion.filling !== null) {
      this.tell("prebuffering", { progress: this.prebufferProgress });
      reason ??= "slow_peers";
    }
    const missing = bodies.find((reader) => reader.stallReason() === "missing_piece");
    const at = missing?.positionBytes ?? null;
    if (at !== null && at !== this.#missingAt) this.tell("missing_content", { positions: [at] });
    this.#missingAt = at;
    return reason;
  }

  #fetchNext(): void {
    if (this.#nextFile === null || this.stopped) return;
    void fetchBeginning(this.swarm, this.#nextFile, this.signal);
    this.#nextFile = null;
  }

  protected release(): void {
    for (const reader of this.#readers) reader.close();
    this.#readers.clear();
    this.#leaveAudience();
    this.#head.end();
    this.cushion.close();
    this.#media?.release();
    this.#lease.release();
  }

  /** Opens the container, as long as bytes of the swarm arrive. */
  async #open(open: (signal: AbortSignal) => Promise<OpenedFile>): Promise<void> {
    this.tell("prebuffering", { progress: 0 });
    this.#use(await openPatiently(open, this.swarm, this.clock, this.readTimeoutMs, this.signal));
  }

  #use(media: OpenedFile | null): void {
    this.#media = media;
    // If the session ended in the meantime, it did not have the media yet and could not release it.
    if (this.stopped || this.failed) media?.release();
    const { hls } = this;
    if (hls !== null && !this.stopped) {
      this.#shared.joinAudience(hls);
      this.#leaveAudience = () => {
        this.#leaveAudience = () => {};
        this.#shared.leaveAudience(hls);
      };
    }
    const twoSeconds = (media?.presentation.bytesPerSecond ?? PREBUFFER_MAX_BYTES) * PREBUFFER_SECONDS;
    this.#prebufferBytes = Math.min(this.file.sizeBytes, PREBUFFER_MAX_BYTES, Math.ceil(twoSeconds));
  }

  /** Fetches the beginning whether or not a player has come yet, so that it finds the first seconds there. */
  async #prebuffer(): Promise<void> {
    if (this.#prebufferBytes === 0 || this.stopped) return;
    let reader: SwarmReader;
    try {
      reader = this.swarm.openReader(this.file.index, { readAheadBytes: 0 });
    } catch {
      // Too many readers: players have readers of their own and get the error.
      this.#prebufferBytes = 0;
      return;
    }
    this.#readers.add(reader);
    const late = deadline(
      this.clock,
      this.readTimeoutMs,
      this.signal,
      () => this.silence(reader.stallReason() ?? "slow_peers"),
    );
    let forgetTail = () => {};
    let end: Promise<void> | null = null;
    try {
      const step = Math.max(16 * 1024, Math.ceil(this.#prebufferBytes / 8));
      for (let at = 0; at < this.#prebufferBytes; at += step) {
        const length = Math.min(step, this.#prebufferBytes - at);
        const read = reader.read(at, length, { signal: late.signal });
        if (at === 0 && this.#media === null) forgetTail = fetchIndexTail(this.swarm, this.file, this.signal);
        const bytes = await read;
        if (at === 0 && indexComesFirst(bytes)) forgetTail();
        this.#prebufferedBytes = at + length;
        // Players look there after half a megabyte of the beginning, which is under way by now.
        const firstMs = this.clock.monotonic() - this.startedMs;
        if (at === 0 && firstMs <= CALM_MS) end = fetchEnd(this.#played, this.#isSized, firstMs, late.signal);
        if (this.prebuffering) this.tell("prebuffering", { progress: this.prebufferProgress });
      }
      this.tell("playing");
      await end;
    } catch (error) {
      if (!this.stopped && error instanceof MillraceError) this.trouble = error;
      this.#prebufferBytes = this.#prebufferedBytes;
    } finally {
      late.cancel();
      this.#readers.delete(reader);
      reader.close();
    }
  }
}

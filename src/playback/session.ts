/**
 * A playback session of a file: a lease on a swarm, the readers of one client on one file, and what `stat`, `cmd` and
 * events say of it. Sessions know nothing of each other; what they share (swarm, index) is shared below them.
 */
import type { ChunkBuffers } from "../bytes/chunk-buffers.ts";
import { lendChunks } from "../bytes/lent-chunks.ts";
import { deadline } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import type { AudioTranscoding } from "../media/transcode/types.ts";
import type { Presentation } from "../media/types.ts";
import type { StallReason, Swarm, SwarmLease, SwarmReader } from "../swarm/types.ts";
import type { MetainfoFile } from "../transport/types.ts";
import { fetchIndexTail, indexComesFirst } from "./index-tail.ts";
import { fetchBeginning } from "./next-file.ts";
import { Session, type SessionBaseParts } from "./session-base.ts";
import { type TrackedReader, trackReader } from "./tracked-reader.ts";

/** Media prebuffered before `dl`: the first of these two. */
const PREBUFFER_SECONDS = 2;
const PREBUFFER_MAX_BYTES = 1024 * 1024;
/** From this share of the file on the next one is fetched. */
const NEXT_FILE_FROM = 0.9;

/** Everything a session is made of. */
export interface SessionParts extends SessionBaseParts {
  readonly lease: SwarmLease;
  readonly file: MetainfoFile;
  readonly isDefaultFile: boolean;
  /** Memory of the bodies' chunks. */
  readonly buffers: ChunkBuffers;
  /** null for output `file`. */
  readonly presentation: Presentation | null;
  /** Which audio is made into AAC; null: none. */
  readonly transcode: AudioTranscoding | null;
  /** What the player goes on to; null: not known. */
  readonly nextFile?: MetainfoFile | null;
}

/** See the module. */
export class PlaybackSession extends Session {
  readonly kind = "file";
  readonly file: MetainfoFile;
  readonly isDefaultFile: boolean;
  readonly presentation: Presentation | null;
  readonly transcode: AudioTranscoding | null;
  /** A new body of MPEG TS or of the file ends the ones before (`stop_prev_read_thread`). */
  singleReader = false;
  readonly #lease: SwarmLease;
  readonly #buffers: ChunkBuffers;
  readonly #readers = new Set<SwarmReader>();
  /** Bodies, with what ends them. */
  readonly #bodies = new Map<TrackedReader, AbortController>();
  #nextFile: MetainfoFile | null;
  /** Place of which `missing_content` was told. */
  #missingAt: number | null = null;
  #prebufferedBytes = 0;
  #prebufferBytes: number;

  constructor(parts: SessionParts) {
    super(parts);
    this.#lease = parts.lease;
    this.#buffers = parts.buffers;
    this.file = parts.file;
    this.isDefaultFile = parts.isDefaultFile;
    this.presentation = parts.presentation;
    this.transcode = parts.transcode;
    this.#nextFile = parts.nextFile ?? null;
    const twoSeconds = (parts.presentation?.bytesPerSecond ?? PREBUFFER_MAX_BYTES) * PREBUFFER_SECONDS;
    this.#prebufferBytes = Math.min(parts.file.sizeBytes, PREBUFFER_MAX_BYTES, Math.ceil(twoSeconds));
    void this.#prebuffer();
    this.watch();
  }

  get swarm(): Swarm {
    return this.#lease.swarm;
  }

  get prebuffering(): boolean {
    return this.#prebufferedBytes < this.#prebufferBytes;
  }

  get prebufferProgress(): number {
    return this.#prebufferBytes === 0 ? 100 : Math.floor(100 * this.#prebufferedBytes / this.#prebufferBytes);
  }

  get errorMessage(): string | null {
    return this.trouble ?? this.swarm.status().message ?? this.presentation?.warnings[0] ?? null;
  }

  /** Streams what `produce` makes, in its own reader. */
  stream(
    produce: (source: SwarmReader, signal: AbortSignal, buffers: ChunkBuffers) => AsyncIterable<Uint8Array>,
  ): ReadableStream<Uint8Array> {
    const buffers = this.#buffers;
    const reader = trackReader(this.swarm.openReader(this.file.index), buffers, (_offset, end) => {
      if (end >= this.file.sizeBytes * NEXT_FILE_FROM) this.#fetchNext();
    });
    if (this.presentation?.bytesPerSecond) reader.setBitrate(this.presentation.bytesPerSecond);
    if (this.singleReader && this.identity.output !== "hls") {
      const reason = new MillraceError("aborted", "another read of the session took over");
      for (const ending of this.#bodies.values()) ending.abort(reason);
    }
    const ending = new AbortController();
    this.#readers.add(reader);
    this.#bodies.set(reader, ending);
    const body = this.body({
      produce: (signal) => produce(reader, AbortSignal.any([signal, ending.signal]), buffers),
      silence: () => reader.stallReason() ?? "slow_peers",
      finish: () => {
        this.#readers.delete(reader);
        this.#bodies.delete(reader);
        reader.close();
      },
    });
    lendChunks(body, buffers);
    return body;
  }

  protected stall(): StallReason | null {
    let reason: StallReason | null = null;
    for (const reader of this.#readers) reason ??= reader.stallReason();
    const missing = [...this.#bodies.keys()].find((reader) => reader.stallReason() === "missing_piece");
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
    this.#lease.release();
  }

  /** Fetches the beginning whether or not a player has come yet, so that it finds the first seconds there. */
  async #prebuffer(): Promise<void> {
    if (this.#prebufferBytes === 0) return;
    let reader: SwarmReader;
    try {
      reader = this.swarm.openReader(this.file.index, { readAheadBytes: 0 });
    } catch {
      // Too many readers: players read for themselves, and they are told.
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
    try {
      const step = Math.max(16 * 1024, Math.ceil(this.#prebufferBytes / 8));
      for (let at = 0; at < this.#prebufferBytes; at += step) {
        const length = Math.min(step, this.#prebufferBytes - at);
        const read = reader.read(at, length, { signal: late.signal });
        if (at === 0 && this.presentation === null) forgetTail = fetchIndexTail(this.swarm, this.file, this.signal);
        const bytes = await read;
        if (at === 0 && indexComesFirst(bytes)) forgetTail();
        this.#prebufferedBytes = at + length;
        if (this.prebuffering) this.tell("prebuffering", { progress: this.prebufferProgress });
      }
      this.tell("playing");
    } catch (error) {
      if (!this.stopped && error instanceof MillraceError) this.trouble = error.message;
      this.#prebufferBytes = this.#prebufferedBytes;
    } finally {
      late.cancel();
      this.#readers.delete(reader);
      reader.close();
    }
  }
}

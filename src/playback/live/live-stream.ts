/**
 * A broadcast as all its players here see it. One feed from the swarm fills one window, which is scanned once. MPEG TS
 * readers and HLS segments are views of it, so any number of them costs no more memory than the window.
 */
import { concatBytes } from "../../bytes/hex.ts";
import type { ByteSource } from "../../bytes/source.ts";
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { PieceHeader } from "../../live/header.ts";
import {
  type LiveSource,
  type PlaybackFeed,
  START_BEHIND_MS,
  type SuppliedPiece,
} from "../../live/swarm/live-source.ts";
import { readTransportSegment } from "../../media/ts-file/cut/segment.ts";
import { outputTracks } from "../../media/ts-file/programs.ts";
import type { Track } from "../../media/model/types.ts";
import type { Clock, Timer } from "../../ports.ts";
import { LiveCuts, type LiveSegment } from "./live-cuts.ts";
import { LiveFragments, type LivePart, partOf } from "./live-fragments.ts";
import { LowLatency } from "./low-latency.ts";
import { type LivePoint, LiveScan } from "./live-scan.ts";
import { PacketWindow, type WindowLimits } from "./packet-window.ts";
import type { WindowFiles } from "./window-files.ts";

/** How often the feed is checked for what depends on time alone: that a missing piece is due. */
const TICK_MS = 100;
/** Kept beyond the segments in the playlist, ms: a player that has just read it can still fetch its oldest segment. */
const GRACE_MS = 10_000;

/**
 * Random access points nearer to each other than this in capture time count as one, ms: sound has dozens per second.
 */
const POINTS_APART_MS = 200;
/** Most points and runs kept, more than two hours have; only a hostile stream has more. */
const MAX_POINTS = 40_000;
const MAX_RUNS = 5000;

/** Content that is missing: between these capture times, Unix ms. */
export interface LiveGap {
  readonly fromMs: number;
  readonly toMs: number;
}

/** How a stream is kept. */
export interface LiveStreamOptions {
  readonly limits: WindowLimits;
  /** For the older part of the window; null (default): all of it is in memory. */
  readonly files?: WindowFiles | null;
  /** Segments are numbered from there on, or higher. Default 0. */
  readonly leastNumber?: number;
  /** Called with the exception that ended it. */
  readonly broke?: (error: unknown) => void;
}

/** One broadcast being played. `close` ends it. */
export class LiveStream {
  readonly source: LiveSource;
  readonly window: PacketWindow;
  readonly cuts: LiveCuts;
  readonly fragments = new LiveFragments(this);
  readonly lowLatency: LowLatency;
  readonly #clock: Clock;
  readonly #windowMs: number;
  readonly #feed: PlaybackFeed;
  readonly #scan: LiveScan;
  readonly #forget: () => void;
  readonly #waiting = new Set<() => void>();
  readonly #gapListeners = new Set<(gap: LiveGap) => void>();
  #points: LivePoint[] = [];
  /** From the first that is kept: first packets, and how far the runs that are over can be read. */
  readonly #runs: { readonly start: number; until: number | null }[] = [{ start: 0, until: null }];
  #timer: Timer | null = null;
  #lastGrowthMs: number;
  #closing: Promise<void> | null = null;
  readonly #breaking = new AbortController();
  readonly #broke: (error: unknown) => void;
  /** Fires when the swarm is left or a fault ended this stream, with the reason. */
  readonly ending: AbortSignal;

  constructor(source: LiveSource, clock: Clock, options: LiveStreamOptions) {
    const { limits } = options;
    this.source = source;
    this.ending = AbortSignal.any([source.ending, this.#breaking.signal]);
    this.#broke = options.broke ?? (() => {});
    this.#clock = clock;
    this.lowLatency = new LowLatency(this, clock);
    this.#windowMs = limits.windowMs;
    const kept = { ...limits, windowMs: limits.windowMs + GRACE_MS };
    this.window = new PacketWindow(kept, options.files ?? null, (error) => this.#break(error));
    this.cuts = new LiveCuts({
      leastNumber: options.leastNumber ?? 0,
      timeOf: (packet) => this.window.timeOf(packet),
      onPoint: (point) => this.#keep(point),
    });
    this.#scan = new LiveScan({
      runEnded: (packet, isWhole) => {
        // A decoder shows rubbish for an access unit that is cut short.
        this.#runs.at(-1)!.until = isWhole ? packet : this.#scan.unitStart ?? packet;
        this.#runs.push({ start: packet, until: null });
        if (this.#runs.length > MAX_RUNS) this.#runs.splice(0, MAX_RUNS / 2);
        this.cuts.runEnded(packet, isWhole);
      },
      packet: (...told) => this.cuts.packet(...told),
      point: (point) => this.cuts.point(point),
    });
    this.#lastGrowthMs = clock.monotonic();
    this.#feed = source.supply.openFeed();
    const forget = source.onPiece(() => this.#guarded(() => this.#take()));
    const left = () => this.wake();
    this.ending.addEventListener("abort", left);
    this.#forget = () => {
      forget();
      this.ending.removeEventListener("abort", left);
    };
    this.#tick();
  }

  /** The broadcaster said that it is over, and everything before has arrived. */
  get ended(): boolean {
    return this.#feed.ended;
  }

  /** Monotonic ms at which the window last grew. */
  get silentMs(): number {
    return this.#clock.monotonic() - this.#lastGrowthMs;
  }

  /** True when the broadcast has ended and its broadcaster sends again under the same id: that is another stream. */
  get hasContinued(): boolean {
    return this.ended && this.missesPieces;
  }

  /** Pieces are known that have not come. */
  get missesPieces(): boolean {
    const { newestSeq } = this.source.supply;
    return newestSeq !== null && this.#feed.position !== null && newestSeq >= this.#feed.position;
  }

  /** How much of the media with which playing begins is downloaded, 0–100. */
  get startProgress(): number {
    if (this.startPoint() !== null) return 100;
    return Math.max(0, Math.min(99, Math.floor(100 * this.source.supply.heldMs / START_BEHIND_MS)));
  }

  /** Segments that the playlist names. */
  get segments(): readonly LiveSegment[] {
    const newestMs = this.window.newestMs ?? 0;
    return this.cuts.segments.filter((segment) => segment.startMs >= newestMs - this.#windowMs);
  }

  /** First packet of the run after that of `packet`; null while that run continues. */
  runEnd(packet: number): number | null {
    return this.#runs.find(({ start }) => start > packet)?.start ?? null;
  }

  /**
   * How far the run of `packet` can be read now: whole access units of the main stream, because nobody can show the
   * beginning of one.
   */
  readableEnd(packet: number): number {
    const run = this.#runs.findLast(({ start }) => start <= packet);
    if (run === undefined) return packet;
    return run.until ?? (this.ended ? this.window.end : this.#scan.unitStart ?? this.window.end);
  }

  /** Where a new reader begins; null while nothing can be played. */
  startPoint(): LivePoint | null {
    const newestMs = this.window.newestMs ?? 0;
    const inRun = this.#points.filter((point) => point.run === this.#scan.currentRun);
    return inRun.findLast((point) => this.window.timeOf(point.packet) <= newestMs - START_BEHIND_MS) ?? inRun[0] ??
      this.#points.at(-1) ?? null;
  }

  /** The first random access point from `packet` on; null when none came yet. */
  pointFrom(packet: number): LivePoint | null {
    return this.#points.find((point) => point.packet >= packet) ?? null;
  }

  /** The last random access point captured at or before `ms` (Unix ms); the oldest there is when all are later. */
  pointAt(ms: number): LivePoint | null {
    return this.#points.findLast((point) => this.window.timeOf(point.packet) <= ms) ?? this.#points[0] ?? null;
  }

  /** The tracks in a segment, pictures first, then the wanted sound; of `part` alone, if it is not null. */
  tracksOf({ program, absentPids }: LiveSegment, audioWish: string | null, part: LivePart = null): readonly Track[] {
    const tracks = outputTracks(program, audioWish).filter(({ id }) => !absentPids.has(id));
    return partOf(tracks.includes(program.main) ? tracks : [program.main, ...tracks], part);
  }

  /** The segment after `segment`, if it has arrived and continues it; else null. */
  after({ n }: LiveSegment): LiveSegment | null {
    const next = this.cuts.segments.find((one) => one.n === n + 1);
    return next === undefined || next.discontinuity ? null : next;
  }

  /** The bytes of a segment, beginning with PAT and PMT. Its packets must still be in the window when they are read. */
  readSegment(
    segment: LiveSegment,
    audioWish: string | null,
    signal: AbortSignal,
    part: LivePart = null,
  ): AsyncIterable<Uint8Array> {
    const { program, firstPacket, endPacket, limitPacket, leastPts90k } = segment;
    const output = this.tracksOf(segment, audioWish, part);
    return readTransportSegment(
      { strideBytes: PACKET_BYTES, firstAt: 0, packetCount: limitPacket },
      {
        first: false,
        searchEnd: endPacket,
        leastPts90k,
        start: () => Promise.resolve({ packet: firstPacket, program, output }),
        end: () => Promise.resolve(endPacket),
      },
      this.window satisfies ByteSource,
      signal,
    );
  }

  /** Resolves when anything of the broadcast arrived; rejects with the signal's reason. */
  async arriving(signal: AbortSignal): Promise<void> {
    const { supply } = this.source;
    while (!this.#feed.started && !(supply.joined && supply.hasPieces)) await this.grown(signal);
  }

  /**
   * Resolves when the window grew, the broadcast ended or this was closed; rejects with the reason of the signal, or of the
   * swarm's end.
   */
  grown(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(abortError(signal));
    if (this.#closing !== null) return Promise.resolve();
    const { ending } = this;
    if (ending.aborted) return Promise.reject(abortError(ending));
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(wake);
        reject(abortError(signal));
      };
      const wake = () => {
        signal.removeEventListener("abort", abort);
        if (ending.aborted) reject(abortError(ending));
        else resolve();
      };
      signal.addEventListener("abort", abort, { once: true });
      this.#waiting.add(wake);
    });
  }

  /** Lets all who wait for the window look again. */
  wake(): void {
    const all = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of all) wake();
  }

  /** Calls `listener` when content is given up as missing. Returns the way to stop it. */
  onGap(listener: (gap: LiveGap) => void): () => void {
    this.#gapListeners.add(listener);
    return () => void this.#gapListeners.delete(listener);
  }

  /** Stops following the broadcast; resolves when nothing of its window is left on disk. */
  close(): Promise<void> {
    if (this.#closing !== null) return this.#closing;
    this.lowLatency.close();
    this.#closing = this.window.close();
    this.#timer?.cancel();
    this.#forget();
    this.source.supply.closeFeed(this.#feed);
    this.wake();
    return this.#closing;
  }

  /** Runs `step`. An exception in it ends this stream for those who play it, and nobody else. */
  #guarded(step: () => void): void {
    if (this.ending.aborted) return;
    try {
      step();
    } catch (cause) {
      this.#break(cause);
    }
  }

  /** Ends this stream for those who play it. */
  #break(cause: unknown): void {
    if (this.ending.aborted) return;
    const message = "a fault of the engine ended this stream: start it again";
    this.#breaking.abort(new MillraceError("internal", message, { cause }));
    this.#broke(cause);
  }

  #tick(): void {
    this.#guarded(() => this.#take());
    if (this.#closing === null) this.#timer = this.#clock.setTimeout(() => this.#tick(), TICK_MS);
  }

  #take(): void {
    if (this.#closing !== null) return;
    const endedBefore = this.#feed.ended;
    const skippedBefore = this.#feed.skippedPieces;
    const pieces = this.#feed.take(this.#clock.monotonic());
    const first = pieces[0];
    const earlier = first !== undefined && this.window.end === 0 ? this.#piecesBefore(first.header) : [];
    for (const { header, blocks, discontinuity } of [...earlier, ...pieces]) {
      const fromMs = this.window.newestMs;
      this.window.append(blocks, header.timestampMs);
      this.#examine(blocks, discontinuity);
      if (discontinuity && fromMs !== null && this.#feed.skippedPieces > skippedBefore) {
        for (const listener of [...this.#gapListeners]) listener({ fromMs, toMs: header.timestampMs });
      }
    }
    if (pieces.length > 0) this.#grew();
    if (this.#feed.ended && !endedBefore) this.cuts.end(this.window.end);
    // Before the first header, progress is reported.
    if (pieces.length > 0 || this.#feed.ended !== endedBefore || !this.#feed.started) this.wake();
  }

  /** Examines a piece where it lies: only packets that begin in one block and end in the next are copied. */
  #examine(blocks: readonly Uint8Array[], discontinuity: boolean): void {
    let isFirst = discontinuity;
    const examine = (packets: Uint8Array) => {
      if (packets.length === 0) return;
      this.#scan.push(packets, isFirst);
      isFirst = false;
    };
    let rest: Uint8Array = new Uint8Array();
    for (const block of blocks) {
      const head = rest.length === 0 ? 0 : Math.min(block.length, PACKET_BYTES - rest.length);
      if (head > 0) rest = concatBytes([rest, block.subarray(0, head)]);
      if (rest.length === PACKET_BYTES) {
        examine(rest);
        rest = rest.subarray(PACKET_BYTES);
      }
      if (rest.length > 0) continue;
      const end = head + Math.floor((block.length - head) / PACKET_BYTES) * PACKET_BYTES;
      examine(block.subarray(head, end));
      rest = block.subarray(end);
    }
  }

  /**
   * The pieces that the swarm still holds from before `header` without a hole. If the broadcast was joined earlier, a
   * viewer who opens a player again can go back at once.
   */
  #piecesBefore({ seq, timestampMs }: PieceHeader): SuppliedPiece[] {
    return this.source.supply.piecesBefore(seq, timestampMs - this.#windowMs);
  }

  #keep(point: LivePoint): void {
    const last = this.#points.at(-1);
    const isNear = last?.run === point.run &&
      this.window.timeOf(point.packet) - this.window.timeOf(last.packet) < POINTS_APART_MS;
    if (!isNear) this.#points.push(point);
    if (this.#points.length > MAX_POINTS) this.#points.splice(0, MAX_POINTS / 4);
  }

  #grew(): void {
    this.#lastGrowthMs = this.#clock.monotonic();
    const { base } = this.window;
    this.cuts.drop(base);
    const firstKept = this.#points.findIndex((point) => point.packet >= base);
    this.#points.splice(0, firstKept < 0 ? this.#points.length : firstKept);
    while (this.#runs.length > 1 && this.#runs[1]!.start <= base) this.#runs.shift();
  }
}

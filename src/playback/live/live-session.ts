/** A playback session of a broadcast. It shares the window; its place, events and end are its own. */
import { leadTo } from "../../bytes/guarded-clock.ts";
import { MillraceError } from "../../errors.ts";
import type { TsSplicer } from "../../bytes/ts/splice.ts";
import { renderLivePlaylist } from "../../media/hls/live-playlist.ts";
import type { StallReason } from "../../swarm/types.ts";
import type { LiveSource } from "../../live/swarm/live-source.ts";
import { type Problem, swarmProblem } from "../problem.ts";
import { Session, type SessionBaseParts } from "../session-base.ts";
import { type SharedOutputs, skipBytes } from "../shared-output.ts";
import { LiveReader } from "./live-reader.ts";
import type { LiveSegment } from "./live-cuts.ts";
import type { LiveChoice, LivePart } from "./live-fragments.ts";
import type { LowLatencyAsk, Shown } from "./low-latency.ts";
import { type MadePart, partBytes } from "../../media/mux/cmaf/live/part-maker.ts";
import { describeLive, type LiveFacts } from "./live-renditions.ts";
import type { LiveStream } from "./live-stream.ts";
import type { LiveStreamLease } from "./live-streams.ts";

/** A window that has not grown for this long lets players run dry, ms. */
const STALLED_MS = 2000;
/**
 * An MPEG TS reader this near to the edge counts as at the edge, ms: it begins 1.5 s behind, and pieces last half a
 * second.
 */
const AT_EDGE_MS = 5000;
/** An HLS player is at the edge when it has fetched one of this many newest segments. */
const AT_EDGE_SEGMENTS = 5;

/**
 * A playlist is returned once it holds this much, ms. Players begin with its first segment and look for the next after
 * a target duration of 2 s. With 2 s they would run dry at once, and with 2.5 s on a busy machine.
 */
const FIRST_PLAYLIST_MS = 3500;

/** Notified of a broadcast whose broadcaster said that it is over. */
const ENDED = "the broadcast has ended";

/** Notified where data comes, but nothing with which a decoder could begin. */
const NO_START = "the broadcast sends no key frame, or no program tables, with which a player could begin";

/** What a live session is made of. */
export interface LiveSessionParts extends SessionBaseParts {
  readonly lease: LiveStreamLease;
  /** Segments made for other sessions. */
  readonly shared: SharedOutputs;
}

/** Where playing is; times are Unix ms. */
export interface LivePosition {
  readonly oldestMs: number;
  readonly newestMs: number;
  readonly positionMs: number;
  readonly isLive: boolean;
  /** Pieces that are downloaded without a gap from the position on. */
  readonly piecesAhead: number;
}

/** One session on a broadcast. */
export class LiveSession extends Session {
  readonly kind = "live";
  readonly #lease: LiveStreamLease;
  readonly #shared: SharedOutputs;
  readonly #readers = new Set<LiveReader>();
  readonly #forgetGaps: () => void;
  /** Where the viewer asked to be, Unix ms, and when (monotonic ms); null: at the edge. */
  #soughtMs: number | null = null;
  #soughtAtMs = 0;
  /** First packet of the segment that was fetched last. */
  #fetchedPacket: number | null = null;
  #wasLive = true;
  #started = false;
  #toldProgress = -1;

  constructor(parts: LiveSessionParts) {
    super(parts);
    this.#lease = parts.lease;
    this.#shared = parts.shared;
    if (this.identity.output === "hls") this.#shared.joinAudience(this.stream);
    this.#forgetGaps = this.stream.onGap(({ fromMs, toMs }) => {
      this.tell("missing_content", { positions: [Math.floor(fromMs / 1000), Math.floor(toMs / 1000)] });
    });
    leadTo(this.clock, this.#prebuffer());
    this.watch(this.stream.ending);
  }

  get stream(): LiveStream {
    return this.#lease.stream;
  }

  /** Its broadcast is over and has begun again under the same id, and nobody still reads the old part. */
  get hasContinued(): boolean {
    return this.stream.hasContinued && !this.hasBody;
  }

  /** Whether it comes by HTTP. */
  get isChannel(): boolean {
    return this.stream.source.channel !== undefined;
  }

  get metainfo(): LiveSource["metainfo"] {
    return this.stream.source.metainfo;
  }

  /** Something of it arrived before there was a session. */
  get playable(): Promise<void> {
    return Promise.resolve();
  }

  get prebuffering(): boolean {
    return !this.#started;
  }

  get prebufferProgress(): number {
    return this.#started ? 100 : Math.min(99, this.stream.startProgress);
  }

  get problem(): Problem | null {
    if (this.trouble !== null) return this.trouble;
    if (this.#hasNoStart) return { message: NO_START, code: "bad_media" };
    return this.stream.ended
      ? { message: ENDED, code: "closed" }
      : swarmProblem(this.stream.source.status(), "conflict");
  }

  /** Where playing is; null before there is anything to play. */
  get position(): LivePosition | null {
    const { window } = this.stream;
    if (window.oldestMs === null || window.newestMs === null) return null;
    const own = this.#packet();
    // A reader that has not begun would begin at the edge.
    const packet = own ?? this.stream.startPoint()?.packet ?? window.end;
    const positionMs = window.timeOf(packet);
    const end = this.stream.runEnd(packet) ?? window.end;
    return {
      oldestMs: window.oldestMs,
      newestMs: window.newestMs,
      positionMs,
      isLive: !this.stream.ended && (own === null || this.#isLive(packet, window.newestMs - positionMs)),
      piecesAhead: window.chunksBetween(packet, end),
    };
  }

  /**
   * The MPEG TS from the place where this session is; with `splicer` as the continuation of the output that it has
   * made.
   */
  openStream(splicer?: TsSplicer): ReadableStream<Uint8Array> {
    const wantedMs = this.#wantedMs;
    const start = wantedMs === null ? null : this.stream.pointAt(wantedMs);
    const reader = new LiveReader(this.stream, start, splicer);
    this.#readers.add(reader);
    return this.body({
      produce: (signal) => reader.read(signal),
      silence: () => this.#why(),
      finish: () => void this.#readers.delete(reader),
    });
  }

  /** The segments that a playlist lists, once they are some seconds. Rejects with `timeout` or the signal's reason. */
  async #listed(isFragmented: boolean, signal: AbortSignal): Promise<readonly LiveSegment[]> {
    const { stream } = this;
    // The newest segment of fragmented MP4 waits for its last sound, which stands in the next one.
    const isOpen = () => isFragmented && !stream.ended;
    const listed = () => isOpen() ? stream.segments.slice(0, -1) : stream.segments;
    const late = new AbortController();
    const waiting = AbortSignal.any([signal, this.signal, late.signal]);
    const timer = this.clock.setTimeout(() => late.abort(this.silence(this.#why())), this.readTimeoutMs);
    try {
      const heldMs = () => listed().reduce((sum, { durationMs }) => sum + durationMs, 0);
      while (heldMs() < FIRST_PLAYLIST_MS && !stream.ended) {
        await stream.grown(waiting);
      }
    } finally {
      timer.cancel();
    }
    return listed();
  }

  /**
   * The playlist of `part`, once it holds some seconds; null for other outputs. With `initUrl`, which gives the address of
   * the init segment that begins with that segment, of fragmented MP4, and with `low` in parts, too. Rejects with `timeout` or the signal's reason, and
   * as `LiveFragments.formsOf`.
   */
  async playlist(
    segmentUrl: (n: number) => string,
    signal: AbortSignal,
    initUrl?: (first: number) => string,
    part: LivePart = null,
    low?: LowLatencyAsk,
  ): Promise<string | null> {
    if (this.identity.output !== "hls") return null;
    const { stream } = this;
    const { cuts, lowLatency } = stream;
    const choice = { audioWish: this.preferredAudioLanguage, part };
    const shown = low === undefined || initUrl === undefined ? null : await this.#shown(choice, low, signal);
    const segments = shown?.segments ?? await this.#listed(initUrl !== undefined, signal);
    const forms = initUrl === undefined || segments.length === 0
      ? []
      : await stream.fragments.formsOf(segments, choice, AbortSignal.any([signal, this.signal]));
    const wantedMs = this.#wantedMs;
    const before = cuts.segments.filter(({ n }) => n < (segments[0]?.n ?? Infinity));
    const fromMs = segments[0]?.startMs;
    const targetDurationS = cuts.announceTargetS();
    return renderLivePlaylist(
      {
        targetDurationS,
        ...shown !== null && { parts: lowLatency.playlistParts(choice, shown, targetDurationS, initUrl!) },
        segments: initUrl === undefined
          ? segments
          : segments.map((segment, i) => ({ ...segment, initUrl: initUrl(forms[i]!.first) })),
        droppedDiscontinuities: cuts.droppedDiscontinuities + before.filter((segment) => segment.discontinuity).length,
        ended: stream.ended,
        startS: wantedMs === null || fromMs === undefined ? null : Math.max(0, wantedMs - fromMs) / 1000,
      },
      segmentUrl,
      low,
    );
  }

  /** What a playlist with parts shows, once it holds some seconds, or what `ask` waits for. Rejects as `playlist`. */
  async #shown(choice: LiveChoice, { awaited }: LowLatencyAsk, signal: AbortSignal): Promise<Shown> {
    const { lowLatency, segments, cuts } = this.stream;
    const waiting = AbortSignal.any([signal, this.signal]);
    if (awaited !== null) await lowLatency.arrived(choice, awaited, waiting);
    else await lowLatency.filled(choice, FIRST_PLAYLIST_MS, this.readTimeoutMs, waiting);
    return lowLatency.shown(choice) ?? { segments, growing: null, next: cuts.next ?? 0 };
  }

  /**
   * What a multivariant playlist says of the broadcast, once its playlist holds some seconds; null for other outputs, and for
   * a broadcast without a segment. Rejects as `playlist`.
   */
  async facts(isFragmented: boolean, signal: AbortSignal): Promise<LiveFacts | null> {
    if (this.identity.output !== "hls") return null;
    const segments = await this.#listed(isFragmented, signal);
    const look = AbortSignal.any([signal, this.signal]);
    return await describeLive(this.stream, segments, this.preferredAudioLanguage, isFragmented, look);
  }

  /** Segment `n`; null when the window does not hold it. */
  segment(n: number): LiveSegment | null {
    return this.stream.cuts.segments.find((segment) => segment.n === n) ?? null;
  }

  /** The init segment of fragmented MP4 of `part` that begins with segment `first`; null when no playlist named it. */
  initSegment(first: number, part: LivePart = null): Uint8Array | null {
    return this.stream.fragments.initOf(first, { audioWish: this.preferredAudioLanguage, part });
  }

  /** The bytes of a segment of `part`, in MPEG TS or fragmented MP4. */
  openSegment(segment: LiveSegment, isFragmented = false, part: LivePart = null): ReadableStream<Uint8Array> {
    this.#fetchedPacket = segment.firstPacket;
    const { stream, preferredAudioLanguage: audioWish } = this;
    const name = JSON.stringify([segment.n, audioWish, isFragmented, part]);
    const parts = isFragmented ? stream.lowLatency.wholeParts({ audioWish, part }, segment.n) : null;
    const read = (signal: AbortSignal) =>
      parts !== null
        ? partBytes(parts)
        : isFragmented
        ? stream.fragments.readSegment(segment, { audioWish, part }, signal)
        : stream.readSegment(segment, audioWish, signal, part);
    const reader = this.#shared.read(stream, name, 0, null, (offset, signal) => ({
      chunks: skipBytes(read(signal), offset),
      isWaiting: () => false,
      stallReason: () => null,
      positionBytes: null,
      close: () => {},
    }));
    return this.body({
      produce: (signal) => reader.read(signal),
      silence: () => "slow_peers",
      finish: () => reader.close(),
    });
  }

  /** Part `p` of segment `n` of low-latency HLS, which is waited for if it comes next; null when there is none. Rejects as `playlist`. */
  async part(n: number, p: number, signal: AbortSignal): Promise<MadePart | null> {
    if (this.identity.output !== "hls") return null;
    const choice = { audioWish: this.preferredAudioLanguage, part: null };
    return await this.stream.lowLatency.part(choice, n, p, AbortSignal.any([signal, this.signal]));
  }

  /** The bytes of a part of segment `n`. */
  openPart(n: number, part: MadePart): ReadableStream<Uint8Array> {
    this.#fetchedPacket = this.stream.cuts.growing(n)?.firstPacket ?? this.#fetchedPacket;
    return this.body({ produce: () => partBytes([part]), silence: () => "slow_peers", finish: () => {} });
  }

  /**
   * Goes to the random access point at or before `ms` (Unix ms); null: to the edge. Readers jump. HLS players begin
   * there when they load the playlist again. Throws `invalid_argument` for a time that has not come yet.
   */
  seek(ms: number | null): void {
    const { window } = this.stream;
    if (ms !== null && ms > (window.newestMs ?? 0) + 1000) {
      throw new MillraceError("invalid_argument", "invalid pos: it lies in the future; -1 is the live edge");
    }
    this.#soughtMs = ms === null ? null : Math.max(ms, window.oldestMs ?? ms);
    this.#soughtAtMs = this.clock.monotonic();
    const point = ms === null ? null : this.stream.pointAt(ms);
    for (const reader of this.#readers) reader.seek(point);
    this.#fetchedPacket = null;
    this.#noteLive();
  }

  /**
   * Begins at the random access point at or before `ms` (Unix ms), as far as the window reaches: otherwise at its
   * beginning or edge.
   */
  startFrom(ms: number): void {
    this.seek(ms > (this.stream.window.newestMs ?? 0) ? null : ms);
  }

  protected stall(): StallReason | null {
    this.#noteLive();
    if (this.stream.ended) this.tellEnd(ENDED);
    if (this.prebuffering || this.stream.ended || this.stream.silentMs < STALLED_MS) return null;
    if (this.position?.isLive === false) return null;
    return this.#missing();
  }

  /** Data of it comes, but no place to begin is in the window. */
  get #hasNoStart(): boolean {
    const { stream } = this;
    const { joined, hasPieces } = stream.source.supply;
    return !stream.ended && joined && hasPieces && stream.startPoint() === null;
  }

  /** Why nothing can be sent, in words. */
  #why(): string {
    return this.#hasNoStart ? NO_START : this.stream.source.channel?.reason ?? this.#missing();
  }

  /** Why nothing new comes. */
  #missing(): StallReason {
    if (this.isChannel) return "source_silent";
    if (this.stream.source.status().peers === 0) return "no_peers";
    // Peers have announced nothing that is not here.
    return this.stream.missesPieces ? "missing_piece" : "source_silent";
  }

  protected release(): void {
    this.#forgetGaps();
    this.#readers.clear();
    if (this.identity.output === "hls") this.#shared.leaveAudience(this.stream);
    this.#lease.release();
  }

  /**
   * What is played now after a seek, Unix ms; null: the edge is. Players read ahead, but play no faster than time
   * passes.
   */
  get #wantedMs(): number | null {
    return this.#soughtMs === null ? null : this.#soughtMs + this.clock.monotonic() - this.#soughtAtMs;
  }

  #packet(): number | null {
    let packet: number | null = null;
    for (const reader of this.#readers) packet = Math.max(packet ?? 0, reader.position ?? 0);
    packet ??= this.#fetchedPacket;
    const wantedMs = this.#wantedMs;
    if (wantedMs === null) return packet;
    const sought = this.stream.pointAt(wantedMs)?.packet ?? null;
    return packet === null || sought === null ? packet ?? sought : Math.min(packet, sought);
  }

  #isLive(packet: number, behindMs: number): boolean {
    if (this.identity.output !== "hls") return behindMs <= AT_EDGE_MS;
    const near = this.stream.segments.at(-AT_EDGE_SEGMENTS);
    return near === undefined || packet >= near.firstPacket;
  }

  /** Reports when the session left the edge or came back to it. */
  #noteLive(): void {
    const isLive = this.position?.isLive ?? !this.stream.ended;
    if (isLive === this.#wasLive) return;
    this.#wasLive = isLive;
    this.tell("live_changed", { is_live: isLive ? 1 : 0 });
  }

  async #prebuffer(): Promise<void> {
    try {
      while (this.stream.startPoint() === null) {
        const progress = this.prebufferProgress;
        if (progress !== this.#toldProgress) this.tell("prebuffering", { progress });
        this.#toldProgress = progress;
        await this.stream.grown(this.signal);
      }
      this.#started = true;
      this.tell("playing");
    } catch (error) {
      if (!this.stopped) throw error;
    }
  }
}

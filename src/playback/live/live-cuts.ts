/** The HLS segments of a broadcast: cut at random access points as they come, numbered once and for all. */
import { hasPayload, payloadOf, readPesHeader, startsUnit } from "../../bytes/ts/packet.ts";
import { isBefore, stepBetween, WRAP_90K } from "../../bytes/ts/stamps.ts";
import type { Track } from "../../media/model/types.ts";
import { type ChosenProgram, outputTracks } from "../../media/ts-file/programs.ts";
import type { LivePoint, ScanListener } from "./live-scan.ts";

/**
 * Length of a segment, ms. Players stay three segments behind the edge, so short ones keep them near. Even shorter ones
 * would cost more requests than they gain: broadcasts have a random access point every one or two seconds.
 */
const LIVE_SEGMENT_MS = 2000;
/** A random access point this share of a segment after the last cut is used rather than waiting for the next. */
const CUT_SHARE = 0.75;
/** The first segments are this short if the stream allows it, ms, so that newcomers have some to begin with early. */
const FIRST_SEGMENT_MS = 900;
const FIRST_SEGMENTS = 3;
/**
 * Longest segment before a playlist is given out, ms. Later segments are no longer than its target duration, which must
 * not change (RFC 8216, 6.2.1). Where key frames are further apart, segments begin without one.
 */
const LONGEST_SEGMENT_MS = 10_000;
/** A longer step between access units says nothing about when the next one comes, 90 kHz. */
const MOST_UNIT_90K = 90_000;
/** How far beyond a cut the ends of other streams' units are awaited, packets (about 2 MiB). */
const FOLLOW_PACKETS = 11_200;
/** Numbers count from here, Unix ms (2020-01-01), so that a later window of the same broadcast has higher numbers. */
const NUMBERS_FROM_MS = 1_577_836_800_000;
/** The rest before a gap, or before a late key frame, becomes a segment if it is at least this long, ms: browsers stumble over shorter ones. */
const LEAST_TAIL_MS = 500;
/** Most segments kept: two hours of the shortest. A hostile stream could have one per packet. */
const MAX_SEGMENTS = 5000;
/** How much the sound of a segment that continues nothing may begin before its pictures, 90 kHz: half a long PES. */
const MAX_LEAD_90K = 13_500;
/** A stream that a map names and that has not begun after this long, ms, is left out of segments until it does. */
const ABSENT_AFTER_MS = 3000;
/** A picture's duration when the stream does not state it, 90 kHz. */
const PICTURE_90K = 3600;

/** One segment. */
export interface LiveSegment {
  readonly n: number;
  readonly firstPacket: number;
  /** First packet of the main stream that is no longer in it. */
  readonly endPacket: number;
  /** Units of other streams that were open at the end are whole before this packet. */
  readonly limitPacket: number;
  readonly durationMs: number;
  /** Capture time of its beginning, Unix ms. */
  readonly startMs: number;
  /** Its beginning by its time stamps, 90 kHz, on a clock that does not wrap. */
  readonly start90k: number;
  /** Media does not continue from the segment before. */
  readonly discontinuity: boolean;
  /**
   * Units of other streams from before this time, 90 kHz, are left out; null: none. Sound comes after the pictures that
   * it belongs to, so a segment begins with sound of the segment before. Without a segment before, players would begin
   * with a hole.
   */
  readonly leastPts90k: number | null;
  readonly program: ChosenProgram;
  /** PIDs of streams that the program names but that never came: players would wait for them. */
  readonly absentPids: ReadonlySet<number>;
}

/** What `LiveCuts` needs. */
export interface LiveCutsParts {
  /** Segments are numbered from here on, or higher. */
  readonly leastNumber: number;
  /** Capture time of a packet, Unix ms. */
  timeOf(packet: number): number;
  onPoint(point: LivePoint): void;
}

/** A segment while it grows, or one that is over. */
export interface GrowingSegment extends Omit<LiveSegment, "limitPacket" | "endPacket"> {
  /** As of `LiveSegment`; null: it grows. */
  readonly endPacket: number | null;
  /** A unit of each of its streams began in it. */
  readonly hasAll: boolean;
}

interface Open {
  readonly n: number;
  /** Players have had its beginning: it is closed however short it is. */
  isTold: boolean;
  readonly point: LivePoint;
  readonly startMs: number;
  readonly start90k: number;
  readonly discontinuity: boolean;
  /** The segment begins before its first random access point, because the one before it was too long. */
  readonly isLate: boolean;
  /** Latest media time in it and the packet where its newest access unit begins. */
  lastPts90k: number | null;
  lastUnit: number;
  /** Longest step between two access units, in the order of their times. */
  unit90k: number;
  /** PIDs of which a unit begins in it, and those of which one does at `leastPts90k` or later. */
  readonly begun: Set<number>;
  readonly inTime: Set<number>;
  readonly leastPts90k: number | null;
}

/** A segment whose end is known, except for the rest of other streams. */
interface Closing {
  readonly segment: Omit<LiveSegment, "limitPacket">;
  readonly unfinished: Set<number>;
}

/** Cuts and numbers the segments of one broadcast. */
export class LiveCuts implements ScanListener {
  /** Segments that can be made, oldest first. */
  readonly segments: LiveSegment[] = [];
  /** Discontinuities among the segments that were dropped. */
  droppedDiscontinuities = 0;
  #longestMs = LIVE_SEGMENT_MS;
  /** Target duration of the playlists that were given out, s. */
  #announcedS: number | null = null;
  readonly #parts: LiveCutsParts;
  #open: Open | null = null;
  #closing: Closing | null = null;
  #nextNumber: number | null = null;
  /** Segments so far. */
  #cut = 0;
  #nextIsDiscontinuity = false;
  #lastProgram: ChosenProgram | null = null;
  /** Where the next segment would begin if time continues without a break. */
  #mediaMs: number | null = null;
  /** Beginning of the newest segment, on a clock that does not wrap. */
  #last90k: number | null = null;
  /** Packets so far. */
  #seen = 0;
  /** PIDs of which units began since the segment before the last. */
  readonly #known = new Set<number>();
  /** PIDs of which units ever began. */
  readonly #ever = new Set<number>();
  /** Capture time of the first point, Unix ms. */
  #firstMs: number | null = null;
  /** Streams that were left out of the last segment. */
  #lastAbsent: readonly number[] = [];
  /** Missing bytes of the unit under way, by PID; null: it ends where the next begins. */
  readonly #left = new Map<number, number | null>();

  constructor(parts: LiveCutsParts) {
    this.#parts = parts;
  }

  /**
   * Target duration of a playlist that is given out, s, and of all later ones: no segment is longer when rounded (RFC 8216,
   * 4.3.3.1).
   */
  announceTargetS(): number {
    const open = this.#open;
    const openMs = open === null ? 0 : this.#lengthMs(open, open.lastPts90k, open.startMs);
    return this.#announcedS ??= Math.round(Math.max(this.#longestMs, Math.min(openMs, LONGEST_SEGMENT_MS)) / 1000);
  }

  /** Number of the next segment; null before the first. */
  get next(): number | null {
    return this.#nextNumber;
  }

  /** Segment `n` as far as it is known; null: it is gone, or has not begun. */
  growing(n: number): GrowingSegment | null {
    const closed = this.segments.find((segment) => segment.n === n) ??
      (this.#closing?.segment.n === n ? this.#closing.segment : undefined);
    if (closed !== undefined) return { ...closed, hasAll: true };
    const open = this.#open;
    if (open?.n !== n) return null;
    const { point, startMs, start90k, discontinuity, leastPts90k } = open;
    const others = otherPids(point.program);
    return {
      n,
      firstPacket: point.packet,
      endPacket: null,
      durationMs: this.#lengthMs(open, open.lastPts90k, startMs),
      startMs,
      start90k,
      discontinuity,
      leastPts90k,
      program: point.program,
      absentPids: new Set(others.filter((pid) => !this.#ever.has(pid))),
      hasAll: others.every((pid) => open.inTime.has(pid)),
    };
  }

  /** Number of the segment that grows; null: none does. */
  get openNumber(): number | null {
    return this.#open?.n ?? null;
  }

  /** Players are given the beginning of segment `n`, which grows: its number is not used for another. */
  promise(n: number): void {
    if (this.#open?.n === n) this.#open.isTold = true;
  }

  /** Forgets segments that begin before `packet`. */
  drop(packet: number): void {
    let old = 0;
    while (old < this.segments.length) {
      if (this.segments[old]!.firstPacket >= packet && this.segments.length - old <= MAX_SEGMENTS) break;
      if (this.segments[old]!.discontinuity) this.droppedDiscontinuities++;
      old++;
    }
    this.segments.splice(0, old);
  }

  /** The broadcast is over before `packet`. */
  end(packet: number): void {
    const isWhole = this.#open === null || !this.#left.get(this.#open.point.program.main.id);
    this.#finish(packet, isWhole, true);
  }

  runEnded(packet: number, isWhole: boolean): void {
    this.#finish(packet, isWhole, false);
  }

  /**
   * Nothing more of this run comes, and if `isLast` nothing of any run. `isWhole`: its last access unit is complete.
   */
  #finish(packet: number, isWhole: boolean, isLast: boolean): void {
    this.#publish();
    const open = this.#open;
    this.#left.clear();
    if (open === null) return;
    // A decoder is better off without a picture of which half is missing.
    const cut = !isWhole && open.lastUnit > open.point.packet ? open.lastUnit : packet;
    const endPts90k = open.lastPts90k === null ? null : open.lastPts90k + PICTURE_90K;
    const isLong = isLast || open.isTold || this.#lengthMs(open, endPts90k, this.#parts.timeOf(cut)) >= LEAST_TAIL_MS;
    // Players wait forever for the sound of a segment that has none.
    if (isLong && (open.isTold || this.#hasAll(open.point.program, open.begun))) {
      this.#close(open, cut, endPts90k);
      this.#publish();
    }
    this.#open = null;
    this.#mediaMs = null;
    this.#nextIsDiscontinuity = true;
  }

  packet(pid: number, bytes: Uint8Array, at: number, number: number, mainPts90k: number | null): void {
    const open = this.#open;
    this.#seen = number + 1;
    if (open !== null && mainPts90k !== null) this.#mainUnit(open, number, mainPts90k);
    if (!hasPayload(bytes, at)) return;
    const payload = payloadOf(bytes, at);
    const closing = this.#closing;
    if (startsUnit(bytes, at)) {
      const header = readPesHeader(payload);
      if (header === null) return;
      closing?.unfinished.delete(pid);
      if (open !== null) {
        open.begun.add(pid);
        if (!isBefore(header.pts90k, open.leastPts90k)) open.inTime.add(pid);
      }
      this.#known.add(pid);
      this.#ever.add(pid);
      this.#left.set(pid, header.totalBytes);
    }
    const left = this.#left.get(pid);
    if (left === undefined || left === null) return;
    this.#left.set(pid, Math.max(0, left - payload.length));
    if (left <= payload.length) closing?.unfinished.delete(pid);
    if (closing !== null && (closing.unfinished.size === 0 || number - closing.segment.endPacket > FOLLOW_PACKETS)) {
      this.#publish();
    }
  }

  /** An access unit of the main stream begins: the segment ends here if it would become too long with it. */
  #mainUnit(open: Open, packet: number, pts90k: number): void {
    const step = open.lastPts90k === null ? 0 : stepBetween(open.lastPts90k, pts90k);
    if (step <= MOST_UNIT_90K) open.unit90k = Math.max(open.unit90k, step);
    const mostMs = this.#announcedS === null ? LONGEST_SEGMENT_MS : this.#announcedS * 1000 + 500;
    const isNewest = open.lastPts90k === null || step > 0;
    if (isNewest && this.#lengthMs(open, pts90k + open.unit90k, open.startMs) >= mostMs) {
      return this.#begin({ ...open.point, packet, pts90k }, true);
    }
    open.lastUnit = packet;
    if (isNewest) open.lastPts90k = pts90k;
  }

  point(point: LivePoint): void {
    this.#parts.onPoint(point);
    const open = this.#open;
    if (open !== null) {
      const ms = this.#lengthMs(open, point.pts90k, this.#parts.timeOf(point.packet));
      const usualMs = this.#cut < FIRST_SEGMENTS ? FIRST_SEGMENT_MS : LIVE_SEGMENT_MS * CUT_SHARE;
      if (ms < (open.isLate ? LEAST_TAIL_MS : usualMs)) return;
    }
    this.#begin(point, false);
  }

  /** A segment begins, and the one before ends. */
  #begin(point: LivePoint, isLate: boolean): void {
    const startMs = this.#parts.timeOf(point.packet);
    this.#firstMs ??= startMs;
    if (this.#open !== null) this.#close(this.#open, point.packet, point.pts90k);
    const discontinuity = this.#nextIsDiscontinuity ||
      (this.#lastProgram !== null && this.#lastProgram.map !== point.program.map);
    this.#nextIsDiscontinuity = false;
    this.#lastProgram = point.program;
    // Dates follow the media clock, which does not jitter, as long as the two agree to a second.
    const keeps = this.#mediaMs !== null && Math.abs(this.#mediaMs - startMs) < 1000;
    this.#open = {
      n: this.#nextNumber ?? Math.max(this.#parts.leastNumber, Math.floor((startMs - NUMBERS_FROM_MS) / 1000)),
      isTold: false,
      point,
      startMs: keeps ? this.#mediaMs! : startMs,
      start90k: this.#unwrap(point.pts90k),
      discontinuity,
      isLate,
      lastPts90k: point.pts90k,
      lastUnit: point.packet,
      unit90k: PICTURE_90K,
      begun: new Set(),
      inTime: new Set(),
      leastPts90k: point.pts90k !== null && (discontinuity || this.#cut === 0) ? point.pts90k - MAX_LEAD_90K : null,
    };
  }

  /** The time stamp `pts90k` on a clock that does not wrap; null: that of the segment before. */
  #unwrap(pts90k: number | null): number {
    const last = this.#last90k;
    if (pts90k === null) return last ?? 0;
    const next = last === null ? pts90k : last + stepBetween(last % WRAP_90K, pts90k);
    return this.#last90k = next < 0 ? next + WRAP_90K : next;
  }

  /** Whether `pids` hold all streams of the program of which there was ever a unit. */
  #hasAll(program: ChosenProgram, pids: ReadonlySet<number>): boolean {
    return otherPids(program).every((pid) => pids.has(pid) || !this.#known.has(pid));
  }

  #lengthMs(open: Open, endPts90k: number | null, endMs: number): number {
    const media = open.point.pts90k === null || endPts90k === null ? null : stepBetween(open.point.pts90k, endPts90k);
    return media === null || media <= 0 ? Math.max(1, endMs - open.startMs) : media / 90;
  }

  #close(open: Open, endPacket: number, endPts90k: number | null): void {
    this.#publish();
    const durationMs = this.#lengthMs(open, endPts90k, this.#parts.timeOf(endPacket));
    this.#mediaMs = open.startMs + durationMs;
    const { point, startMs } = open;
    const { program } = point;
    const isEarly = this.#parts.timeOf(endPacket) - this.#firstMs! < ABSENT_AFTER_MS;
    const isLate = ({ id, kind }: Track) => !this.#ever.has(id) && (kind === "video" || !isEarly);
    const absent = otherTracks(program).filter(isLate).map(({ id }) => id);
    // Players need a mark where a stream comes in that was not there.
    const discontinuity = open.discontinuity || this.#lastAbsent.some((pid) => !absent.includes(pid));
    this.#lastAbsent = absent;
    this.#cut++;
    this.#nextNumber = open.n + 1;
    const segment = {
      n: open.n,
      firstPacket: point.packet,
      endPacket,
      durationMs,
      startMs,
      start90k: open.start90k,
      discontinuity,
      leastPts90k: this.#hasAll(program, open.inTime) ? open.leastPts90k : null,
      program,
      absentPids: new Set(absent),
    };
    // A stream of which no unit began has nothing to wait for, and in what follows it may be missing.
    for (const pid of this.#known) if (!open.begun.has(pid)) this.#known.delete(pid);
    const others = otherPids(program).filter((pid) => open.begun.has(pid));
    this.#closing = { segment, unfinished: new Set(others.filter((pid) => this.#left.get(pid) !== 0)) };
    if (this.#closing.unfinished.size === 0) this.#publish();
  }

  #publish(): void {
    if (this.#closing === null) return;
    const { segment } = this.#closing;
    this.#closing = null;
    this.segments.push({ ...segment, limitPacket: Math.max(this.#seen, segment.endPacket) });
    this.#longestMs = Math.max(this.#longestMs, segment.durationMs);
  }
}

/** The streams in segments besides the one by which they are cut. */
function otherTracks(program: ChosenProgram): Track[] {
  return outputTracks(program, null).filter(({ id }) => id !== program.main.id);
}

function otherPids(program: ChosenProgram): number[] {
  return otherTracks(program).map(({ id }) => id);
}

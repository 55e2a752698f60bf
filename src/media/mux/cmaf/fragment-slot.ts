/**
 * Cuts the access units of one run into fragments as they arrive. Where fragments end depends on the access units and
 * their order alone, so every read of a run gives the same bytes.
 */
import type { ByteLender } from "../../../bytes/source.ts";
import type { SlotTally, StreamSpan } from "../../model/faults.ts";
import type { PacketSink } from "../chunks.ts";
import { HeldParts } from "../../source/held-parts.ts";
import type { RunSample } from "../../model/timeline.ts";
import {
  fragmentBytes,
  type FragmentTrack,
  type FragmentUnit,
  FREE_BYTES,
  unitBytes,
  writeFragment,
  writeFree,
} from "./fragment.ts";
import type { CmafStream } from "./init-segment.ts";

/** Length of a fragment: so much media waits before the first byte of a run is sent, and its tracks take turns. */
const FRAGMENT_90K = 90_000;
/** Most bytes and access units of a fragment, besides the newest of each track: a second of 16 Mbit/s. */
const MAX_FRAGMENT_BYTES = 2 * 1024 * 1024;
const MAX_FRAGMENT_UNITS = 1024;
/**
 * Most memory of reads that waits with a fragment, bytes: that of its media, and the rest of the reads at its ends. With less,
 * most of a film of 10 Mbit/s was copied, and the copies were collected.
 */
const MAX_HELD_BYTES = MAX_FRAGMENT_BYTES + 1024 * 1024;
/** Duration of a picture when nothing states it, 90 kHz: 25 per second. */
const UNKNOWN_FRAME_90K = 3600;
/** Fragments of a run that have numbers of their own; more share the last one. */
const NUMBERS = 4096;
/** The longest duration and composition offset that fit, 90 kHz. */
const MAX_TICKS = 0xffffffff;
/** Zeros made in one go. */
const PADDING_BYTES = 64 * 1024;

/** What is known of a run before it is read. */
export interface FragmentSlotOptions {
  /** Number of the run. */
  readonly run: number;
  /** Bytes of the slot; null: as many as it needs. */
  readonly sizeBytes: number | null;
  /** Fragments that end because of their time, at most. */
  readonly timedFragments: number;
  /** Where the next run begins to be decoded, at the earliest; null: not known. */
  readonly endDts90k: number | null;
  /** Nothing is presented later than this. */
  readonly fileEnd90k: number;
  /** Added to all times. */
  readonly offset90k: number;
}

interface Lane {
  readonly stream: CmafStream;
  queue: { unit: RunSample; dts90k: number; pts90k: number }[];
  /** How many of `queue`, from its start, are kept. */
  kept: number;
  /** Duration of the last unit whose successor came. */
  last90k: number | null;
  span: StreamSpan | null;
}

/** Most fragments of a run with this many bytes and access units, and this many that end because of their time. */
export function mostFragments(payloadBytes: number, units: number, timed: number): number {
  return timed + Math.floor(payloadBytes / MAX_FRAGMENT_BYTES) + Math.floor(units / MAX_FRAGMENT_UNITS) + 1;
}

/** Fragments that a run of this duration may end by time. */
export function timedFragments(duration90k: number): number {
  return Math.ceil(duration90k / FRAGMENT_90K) + 1;
}

/** Writer of one run. Push access units in file order, then `finish`, then `pad` until it is false. */
export class FragmentSlot {
  readonly #options: FragmentSlotOptions;
  readonly #sink: PacketSink;
  readonly #held: HeldParts;
  readonly #lanes: Lane[];
  readonly #laneOf = new Map<number, Lane>();
  /** Bytes and number of the units whose successor came. */
  #readyBytes = 0;
  #readyUnits = 0;
  #number = 0;
  #timed = 0;
  #usedBytes = 0;
  readonly #counts = { units: 0, dropped: 0, late: 0, ranBack: 0, beyondEnd: 0, silenced: 0 };
  /** Access units that were written. */
  #written = 0;

  /** `streams`: the first one decides when fragments end. `lender`: as of `StreamedTimeline.readRun`. */
  constructor(
    streams: readonly CmafStream[],
    options: FragmentSlotOptions,
    sink: PacketSink,
    lender: ByteLender | null = null,
  ) {
    this.#options = options;
    this.#sink = sink;
    this.#held = new HeldParts(lender, MAX_HELD_BYTES);
    this.#lanes = streams.map((stream) => ({ stream, queue: [], kept: 0, last90k: null, span: null }));
    for (const lane of this.#lanes) this.#laneOf.set(lane.stream.trackIndex, lane);
  }

  /** Takes the next access unit; those of other tracks are ignored. */
  push(sample: RunSample): void {
    const lane = this.#laneOf.get(sample.track);
    if (lane === undefined || sample.data.length === 0) return;
    const trimmed = lane.stream.trim?.(sample.data) ?? sample.data;
    const unit = trimmed === sample.data ? sample : { ...sample, data: trimmed };
    const shift90k = this.#options.offset90k - lane.stream.early90k;
    const dts90k = Math.max(0, unit.dts90k + shift90k);
    const pts90k = Math.max(dts90k, unit.pts90k + shift90k);
    this.#watch(lane, unit, dts90k);
    const last = lane.queue.at(-1);
    if (last !== undefined) {
      this.#readyBytes += last.unit.data.length;
      this.#readyUnits++;
    }
    lane.queue.push({ unit, dts90k, pts90k });
    if (this.#isFull()) this.#emit(false);
  }

  #watch(lane: Lane, { pts90k, isSilence }: RunSample, dts90k: number): void {
    const { span } = lane;
    this.#counts.units++;
    if (isSilence) this.#counts.silenced++;
    if (span !== null && dts90k <= span.last90k) this.#counts.ranBack++;
    if (pts90k > this.#options.fileEnd90k) this.#counts.beyondEnd++;
    lane.span = {
      first90k: Math.min(span?.first90k ?? Infinity, dts90k),
      last90k: Math.max(span?.last90k ?? -Infinity, dts90k),
      units: (span?.units ?? 0) + 1,
    };
  }

  #isFull(): boolean {
    if (this.#readyBytes > MAX_FRAGMENT_BYTES || this.#readyUnits >= MAX_FRAGMENT_UNITS) return true;
    const { queue } = this.#lanes[0]!;
    if (queue.length < 2 || queue.at(-1)!.dts90k - queue[0]!.dts90k < FRAGMENT_90K) return false;
    return this.#timed++ < this.#options.timedFragments;
  }

  /** Keeps the bytes of the waiting access units. Call it before more are read. */
  keep(): void {
    for (const lane of this.#lanes) {
      for (; lane.kept < lane.queue.length; lane.kept++) {
        const entry = lane.queue[lane.kept]!;
        entry.unit = { ...entry.unit, data: this.#held.keep(entry.unit.data) };
      }
    }
  }

  /** What the writer has seen so far. Complete after `finish`. */
  get tally(): SlotTally {
    const isEmpty = this.#options.sizeBytes !== null && this.#lanes[0]!.span === null;
    const lost = this.#counts.units - this.#counts.dropped - this.#written;
    return { ...this.#counts, lost, misplaced: 0, empty: isEmpty ? 1 : 0, spans: this.#lanes.map(({ span }) => span) };
  }

  /** Writes the rest. */
  finish(): void {
    this.#emit(true);
    const { sizeBytes } = this.#options;
    if (sizeBytes === null) {
      // Some players take an empty segment for one that was lost.
      if (this.#usedBytes === 0) writeFree(this.#sink, FREE_BYTES);
      return;
    }
    writeFree(this.#sink, sizeBytes - this.#usedBytes);
    this.#usedBytes += FREE_BYTES;
  }

  /** Zeros that fill the slot up; false when it is full. At most a buffer's worth per call. */
  pad(): boolean {
    const left = Math.min((this.#options.sizeBytes ?? 0) - this.#usedBytes, PADDING_BYTES);
    if (left <= 0) return false;
    this.#sink.reserve(left).fill(0, this.#sink.at, this.#sink.at + left);
    this.#sink.advance(left);
    this.#usedBytes += left;
    return true;
  }

  /** Writes what waits, at the end of the run without what follows it, as one fragment. */
  #emit(atEnd: boolean): void {
    const tracks = this.#lanes.map((lane) => ({ lane, stream: lane.stream, units: this.#unitsOf(lane, atEnd) }));
    this.#makeFit(tracks);
    const filled: FragmentTrack[] = tracks.filter(({ units }) => units.length > 0);
    if (filled.length > 0) {
      const number = this.#options.run * NUMBERS + Math.min(this.#number++, NUMBERS - 1) + 1;
      writeFragment(this.#sink, number, filled);
      this.#usedBytes += sizeOf(filled);
      this.#written += filled.reduce((sum, { units }) => sum + units.length, 0);
    }
    for (const lane of this.#lanes) {
      const done = lane.queue.splice(0, atEnd ? lane.queue.length : Math.max(0, lane.queue.length - 1));
      for (const { unit } of done.slice(0, lane.kept)) this.#held.drop(unit.data);
      lane.kept = Math.max(0, lane.kept - done.length);
    }
    this.#readyBytes = this.#readyUnits = 0;
  }

  /** The units of the next fragment: all but the newest, whose duration is not known yet. */
  #unitsOf(lane: Lane, atEnd: boolean): FragmentUnit[] {
    const { queue } = lane;
    return queue.slice(0, atEnd ? queue.length : -1).map(({ unit, dts90k, pts90k }, i) => {
      const next = queue[i + 1];
      const duration90k = next === undefined ? this.#lastDuration(lane, dts90k) : next.dts90k - dts90k;
      if (next !== undefined) lane.last90k = duration90k;
      return {
        dts90k,
        pts90k: Math.min(pts90k, dts90k + MAX_TICKS),
        duration90k: Math.min(MAX_TICKS, Math.max(1, duration90k)),
        keyframe: unit.keyframe,
        data: unit.data,
      };
    });
  }

  /** Duration of the last unit of a run. What follows is in the next one, which is not read for it. */
  #lastDuration({ stream, last90k }: Lane, dts90k: number): number {
    const usual90k = Math.round(stream.frame90k ?? last90k ?? UNKNOWN_FRAME_90K);
    const { endDts90k, offset90k } = this.#options;
    if (stream.track.kind !== "video" || endDts90k === null) return usual90k;
    // A picture that stands for long: a hole in the picture would stop players.
    return Math.max(usual90k, endDts90k + offset90k - dts90k);
  }

  /** Leaves out the last units of what does not fit the slot, which only happens if the index lies. */
  #makeFit(tracks: readonly { readonly lane: Lane; readonly stream: CmafStream; units: FragmentUnit[] }[]): void {
    const { sizeBytes } = this.#options;
    if (sizeBytes === null) return;
    const room = sizeBytes - this.#usedBytes - FREE_BYTES;
    let bytes = sizeOf(tracks.filter(({ units }) => units.length > 0));
    for (let i = tracks.length - 1; bytes > room && i >= 0;) {
      const { stream, units } = tracks[i]!;
      const last = units.pop();
      if (last === undefined) {
        i--;
        continue;
      }
      this.#counts.dropped++;
      bytes -= last.data.length + unitBytes(stream) + (units.length === 0 ? fragmentBytes(1) - fragmentBytes(0) : 0);
    }
  }
}

function sizeOf(tracks: readonly FragmentTrack[]): number {
  if (tracks.length === 0) return 0;
  return tracks.reduce(
    (sum, { stream, units }) => units.reduce((all, { data }) => all + data.length + unitBytes(stream), sum),
    fragmentBytes(tracks.length),
  );
}

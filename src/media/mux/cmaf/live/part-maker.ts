/**
 * Makes the parts of broadcasts with little delay (RFC 8216bis, 4.4.4.9): fragments of a third of a second, out of MPEG TS
 * as it arrives. The first stream decides where parts end; a part has the sound of its pictures' time.
 */
import { concatBytes } from "../../../../bytes/hex.ts";
import { chunksOf, PacketSink } from "../../chunks.ts";
import type { RunSample } from "../../../model/timeline.ts";
import type { Track } from "../../../model/types.ts";
import { type FragmentUnit, writeFragment } from "../fragment.ts";
import type { CmafStream } from "../init-segment.ts";
import type { LiveForm } from "./fragments.ts";
import { type Pes, PesReader } from "./pes-reader.ts";
import { type UnitMaker, unitMaker } from "./tracks.ts";

/** Longest part, s (`PART-TARGET`): eight pictures of 25 a second, ten of 30. Shorter ones cost more requests. */
export const PART_TARGET_S = 0.35;
const MOST_90K = PART_TARGET_S * 90_000;
/** No part but the last of a segment is shorter (4.4.4.9: 85 %). */
const LEAST_90K = Math.ceil(MOST_90K * 0.85);
/** Sound that is this much later in the stream than its pictures, 90 kHz, comes with the next part instead. */
const MOST_WAIT_90K = 90_000;
/** Most bytes and units that wait for their part: a third of a second of 100 Mbit/s. More ends the part. */
const MAX_PART_BYTES = 4 * 1024 * 1024;
const MAX_PART_UNITS = 512;
/** Duration of a unit of which nothing tells it, 90 kHz. */
const UNKNOWN_90K = 3600;

/** A part. */
export interface MadePart {
  readonly bytes: Uint8Array;
  readonly durationMs: number;
  /** A player can begin with it. */
  readonly isIndependent: boolean;
  /** The segment ends with it. */
  readonly isLast: boolean;
}

/** The bytes of `parts`, which are a segment's. */
export async function* partBytes(parts: readonly MadePart[]): AsyncGenerator<Uint8Array> {
  for (const { bytes } of parts) yield* chunksOf(bytes);
}

interface Lane {
  readonly stream: CmafStream;
  readonly maker: UnitMaker;
  queue: RunSample[];
  /** Time of the newest unit that came, 90 kHz. */
  newest90k: number;
  usual90k: number;
}

/** The segment to which the units at the head of the queue belong. */
interface Segment {
  readonly start90k: number;
  /** Where it ends, and how many units of the leading stream it still has; null: it grows. */
  end: { readonly at90k: number; left: number } | null;
}

/** Makes the parts of consecutive segments that share a form. */
export class PartMaker {
  readonly #lanes: readonly Lane[];
  readonly #lead: Lane;
  readonly #reader: PesReader;
  readonly #segments: Segment[];
  /** Between presentation and decoding at the beginning of the segment, of the leading stream. */
  #lag90k: number | null = null;
  /** Given out of the segment so far, 90 kHz. */
  #given90k = 0;
  #isFirst = true;
  #number = 0;
  #leadIsOver = false;
  #waitingBytes = 0;

  /** `tracks`: those of `form` as the program names them; `start90k`: beginning of the first segment. */
  constructor(form: LiveForm, tracks: readonly Track[], start90k: number) {
    this.#lanes = form.streams.flatMap((stream) => {
      const track = tracks.find(({ id }) => id === stream.track.id);
      const maker = track === undefined ? null : unitMaker(track);
      const usual90k = stream.frame90k ?? UNKNOWN_90K;
      return maker === null ? [] : [{ stream, maker, queue: [], newest90k: -Infinity, usual90k }];
    });
    this.#lead = this.#lanes[0]!;
    this.#reader = new PesReader(this.#lanes.map(({ stream }) => stream.track.id), start90k);
    this.#segments = [{ start90k, end: null }];
  }

  /** Bytes that wait. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Takes packets. */
  push(packets: Uint8Array): void {
    this.#take(this.#reader.push(packets));
  }

  /** The packets so far end with a whole access unit of the leading stream. */
  unitEnded(): void {
    this.#take(this.#reader.cut(this.#lead.stream.track.id));
  }

  /** The leading stream's units so far are all of the segment, which ends at `end90k`; with `continues` the next one begins there. */
  segmentEnded(end90k: number, continues: boolean): void {
    this.unitEnded();
    this.#drain(this.#lead, true);
    const before = this.#segments.slice(0, -1).reduce((sum, { end }) => sum + (end?.left ?? 0), 0);
    this.#segments.at(-1)!.end = { at90k: end90k, left: this.#lead.queue.length - before };
    if (continues) this.#segments.push({ start90k: end90k, end: null });
    else this.#leadIsOver = true;
  }

  /** Parts that are complete; `atEnd`: nothing more comes. `isPause`: nothing of the next unit has come yet. */
  take(isPause: boolean, atEnd = false): MadePart[] {
    if (atEnd) {
      this.#take(this.#reader.finish());
      for (const lane of this.#lanes) if (lane !== this.#lead) this.#drain(lane, true);
    }
    const made: MadePart[] = [];
    for (let part = this.#next(isPause, atEnd); part !== null; part = this.#next(isPause, atEnd)) made.push(part);
    return made;
  }

  #take(all: readonly Pes[]): void {
    for (const pes of all) {
      const lane = this.#lanes.find(({ stream }) => stream.track.id === pes.pid)!;
      if (lane === this.#lead && this.#leadIsOver) continue;
      lane.maker.push(pes);
      this.#drain(lane, false);
    }
  }

  #drain(lane: Lane, atEnd: boolean): void {
    for (const unit of lane.maker.take(atEnd)) {
      const { trim } = lane.stream;
      const data = trim?.(unit.data) ?? unit.data;
      if (data.length === 0) continue;
      const step = unit.dts90k - lane.newest90k;
      if (lane.stream.frame90k === null && step > 0 && step < MOST_90K) lane.usual90k = step;
      lane.newest90k = unit.dts90k;
      // Sound stands in the buffers of the reader.
      lane.queue.push({ ...unit, data: lane === this.#lead ? data : data.slice() });
      this.#waitingBytes += data.length;
    }
  }

  /** How many units of the leading stream the next part has; null: it is not complete. */
  #length(isPause: boolean): { readonly units: number; readonly isLast: boolean; readonly until90k: number } | null {
    const { queue, usual90k } = this.#lead;
    const { end } = this.#segments[0]!;
    const have = end === null ? queue.length : end.left;
    if (have === 0) return null;
    const from90k = queue[0]!.dts90k;
    let bytes = 0;
    for (let i = 0; i < have; i++) {
      bytes += queue[i]!.data.length;
      const until90k = i + 1 < queue.length ? queue[i + 1]!.dts90k : queue[i]!.dts90k + usual90k;
      if (end !== null && i + 1 === have) return { units: have, isLast: true, until90k };
      const isFull = bytes >= MAX_PART_BYTES || i + 1 >= MAX_PART_UNITS;
      const after90k = i + 2 < queue.length ? queue[i + 2]!.dts90k : until90k + usual90k;
      const isKnown = i + 1 < queue.length;
      if (isFull && isKnown) return { units: i + 1, isLast: false, until90k };
      if (isKnown && after90k - from90k > MOST_90K) return { units: i + 1, isLast: false, until90k };
      if (isPause && i + 1 === have && until90k - from90k >= LEAST_90K) {
        return { units: have, isLast: false, until90k };
      }
    }
    return null;
  }

  #next(isPause: boolean, atEnd: boolean): MadePart | null {
    const segment = this.#segments[0];
    const length = segment === undefined ? null : this.#length(isPause);
    if (segment === undefined || length === null) return null;
    const first = this.#lead.queue[0]!;
    this.#lag90k ??= first.pts90k - first.dts90k;
    const { units, isLast } = length;
    const until90k = isLast ? segment.end!.at90k : length.until90k + this.#lag90k;
    const isWhole = this.#lanes.every((lane) =>
      lane === this.#lead || lane.newest90k + lane.usual90k >= until90k - 1 ||
      this.#lead.newest90k + this.#lag90k! - until90k > MOST_WAIT_90K
    );
    if (!isWhole && !atEnd && this.#waitingBytes < 2 * MAX_PART_BYTES) return null;
    const part = this.#write(segment, units, isLast, length.until90k, until90k);
    if (isLast) {
      this.#segments.shift();
      this.#lag90k = null;
      this.#given90k = 0;
      this.#isFirst = false;
    } else if (segment.end !== null) segment.end.left -= units;
    return part;
  }

  #write(segment: Segment, units: number, isLast: boolean, untilDts90k: number, untilPts90k: number): MadePart {
    const first = this.#lead.queue[0]!;
    const duration90k = isLast
      ? Math.max(1, segment.end!.at90k - segment.start90k - this.#given90k)
      : untilDts90k - first.dts90k;
    this.#given90k += duration90k;
    const tracks = this.#lanes.flatMap((lane) => {
      const isLead = lane === this.#lead;
      const count = isLead ? units : lane.queue.findIndex(({ dts90k }) => dts90k >= untilPts90k);
      const taken = lane.queue.splice(0, count < 0 ? lane.queue.length : count);
      for (const { data } of taken) this.#waitingBytes -= data.length;
      const end90k = isLead ? untilDts90k : (lane.queue[0]?.dts90k ?? null);
      // Sound from before the first pictures has none beside it.
      const kept = isLead || !this.#isFirst ? taken : taken.filter(({ dts90k }) => dts90k >= segment.start90k);
      return kept.length === 0 ? [] : [{ stream: lane.stream, units: timed(kept, end90k, lane.usual90k) }];
    });
    const sink = new PacketSink();
    writeFragment(sink, ++this.#number, tracks);
    return {
      bytes: concatBytes([...sink.take()]),
      durationMs: duration90k / 90,
      isIndependent: first.keyframe,
      isLast,
    };
  }
}

/** Units with their durations: the time to the next one, of the last one to `end90k`, or the usual one. */
function timed(units: readonly RunSample[], end90k: number | null, usual90k: number): FragmentUnit[] {
  return units.map(({ dts90k, pts90k, keyframe, data }, i) => {
    const step = (units[i + 1]?.dts90k ?? end90k ?? dts90k + usual90k) - dts90k;
    const time90k = Math.max(0, dts90k);
    return {
      dts90k: time90k,
      pts90k: Math.max(time90k, pts90k),
      duration90k: Math.round(step > 0 && step < 10 * 90_000 ? step : usual90k),
      keyframe,
      data,
    };
  });
}

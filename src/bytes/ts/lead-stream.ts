/**
 * Which stream of a live program leads: at its access units players can enter, and its units are kept whole. That is the
 * first video, but a map may name video that never comes, or that stops. Then sound leads until pictures flow again.
 */
import type { MapStream, ProgramMap } from "./psi.ts";
import { stepBetween } from "./stamps.ts";
import { codecOf, isVideoCodec, type TsCodec } from "./stream-codec.ts";

/** While another stream went on for this long without a unit of the leading one, that one is silent, 90 kHz. */
const SILENT_90K = 3 * 90_000;
/** A better stream leads again after it has flowed for this long, 90 kHz. */
const STEADY_90K = 2 * 90_000;
/** A longer step between two units is no flow, 90 kHz: slides, or a clock that was set. */
const MOST_STEP_90K = 90_000;

/** Video whose random access points can be recognised. */
const PARSED: ReadonlySet<TsCodec> = new Set(["mpeg1video", "mpeg2video", "h264", "hevc"]);

interface Candidate {
  readonly stream: MapStream;
  readonly codec: TsCodec | null;
  /** Higher is better. */
  readonly rank: number;
  /** Time of its newest unit. */
  last90k: number | null;
  /** How long its units have come without a break, 90 kHz. */
  steady90k: number;
  /** How long they went on since the last unit of the leading stream, 90 kHz. */
  alone90k: number;
}

/** The stream that leads. */
export interface Lead {
  readonly pid: number;
  /** null for one that is not recognised. */
  readonly codec: TsCodec | null;
  /** Video whose random access points can be recognised; of other streams every unit is one. */
  readonly isVideo: boolean;
}

/** Chooses among the streams of one map, by its units and their times: no clock is needed. */
export class LeadStream {
  readonly #candidates = new Map<number, Candidate>();
  #leading: Candidate | null = null;

  constructor({ streams, descriptors }: Pick<ProgramMap, "streams" | "descriptors">) {
    for (const stream of streams) {
      const codec = codecOf(stream, descriptors);
      const rank = codec === null ? 0 : PARSED.has(codec) ? 2 : isVideoCodec(codec) ? 0 : 1;
      const candidate = { stream, codec, rank, last90k: null, steady90k: 0, alone90k: 0 };
      this.#candidates.set(stream.pid, candidate);
      if (this.#leading === null || rank > this.#leading.rank) this.#leading = candidate;
    }
  }

  /** The stream that leads now; null when the map names none. */
  get lead(): Lead | null {
    if (this.#leading === null) return null;
    const { stream, codec, rank } = this.#leading;
    return { pid: stream.pid, codec, isVideo: rank === 2 };
  }

  /** True for a stream of the map. */
  has(pid: number): boolean {
    return this.#candidates.has(pid);
  }

  /** A unit of the stream `pid` begins; `pts90k` is null when it has no time. Returns whether another stream leads now. */
  unit(pid: number, pts90k: number | null): boolean {
    const candidate = this.#candidates.get(pid);
    const leading = this.#leading;
    if (candidate === undefined || leading === null) return false;
    const step = pts90k === null || candidate.last90k === null ? 0 : stepBetween(candidate.last90k, pts90k);
    if (pts90k !== null) candidate.last90k = pts90k;
    const isFlow = Math.abs(step) <= MOST_STEP_90K;
    candidate.steady90k = isFlow ? candidate.steady90k + step : 0;
    if (candidate === leading) {
      for (const other of this.#candidates.values()) other.alone90k = 0;
      return false;
    }
    // A clock that was set says nothing about how much time has passed.
    if (isFlow) candidate.alone90k += step;
    const isBetter = candidate.rank > leading.rank && candidate.steady90k >= STEADY_90K;
    const isLeft = candidate.rank > 0 && candidate.alone90k >= SILENT_90K;
    if (!isBetter && !isLeft) return false;
    this.#leading = candidate;
    for (const other of this.#candidates.values()) other.alone90k = 0;
    return true;
  }
}

/** Reads the Cues, however many there are, into a list of bounded length. */
import { isTurnDue, turnWhenDue } from "../../../bytes/turn.ts";
import { children, uint } from "./ebml.ts";
import { ID } from "./ids.ts";

/** An entry of the Cues: a cluster that holds a keyframe of the track at that time. */
export interface RawCue {
  /** In timestamp units. */
  readonly time: number;
  readonly trackNumber: number;
  /** Position of the cluster, relative to the segment. */
  readonly cluster: number;
  /** Position of the block after the cluster's header; null when the file does not say. */
  readonly blockAt: number | null;
}

/** Most entries kept: 13 h of one every half second. Runs are longer than that anyway. */
const MAX_CUES = 100_000;
/** Entries of one track that follow each other sooner are left out, in timestamp units (usually ms). */
const LEAST_SPACING = 250;
/**
 * A list that is too long is thinned to this share. Its spacing doubles at most this often: a list still too long has
 * times that run back and forth.
 */
const THINNED_SHARE = 0.75;
const MAX_THINNINGS = 8;
/** Most elements of the Cues to read: ten for each entry of the longest list. */
const MAX_ELEMENTS = 2_000_000;

/** Leaves out entries that follow the last kept entry of their track within `spacing`. */
class Spacing {
  readonly #units: number;
  readonly #lastTimes = new Map<number, number>();

  constructor(units: number) {
    this.#units = units;
  }

  keeps({ time, trackNumber }: RawCue): boolean {
    const last = this.#lastTimes.get(trackNumber);
    if (last !== undefined && time >= last && time - last < this.#units) return false;
    this.#lastTimes.set(trackNumber, time);
    return true;
  }
}

/** The entries of a Cues element's payload, in its order; entries close together are thinned out. */
export async function readCues(data: Uint8Array, signal: AbortSignal): Promise<RawCue[]> {
  const budget = { left: MAX_ELEMENTS };
  let cues: RawCue[] = [];
  let units = LEAST_SPACING;
  let spacing = new Spacing(units);
  for (const point of children(data, budget)) {
    if (isTurnDue()) await turnWhenDue(signal);
    if (point.id !== ID.CUE_POINT) continue;
    let time = -1;
    for (const field of children(point.data, budget)) {
      if (field.id === ID.CUE_TIME) time = uint(field.data);
      if (field.id !== ID.CUE_TRACK_POSITIONS || time < 0) continue;
      let trackNumber = 0;
      let cluster = -1;
      let blockAt: number | null = null;
      for (const { id, data: value } of children(field.data, budget)) {
        if (id === ID.CUE_TRACK) trackNumber = uint(value);
        else if (id === ID.CUE_CLUSTER_POSITION) cluster = uint(value);
        else if (id === ID.CUE_RELATIVE_POSITION) blockAt = uint(value);
      }
      const cue = { time, trackNumber, cluster, blockAt };
      if (cluster < 0 || !spacing.keeps(cue)) continue;
      cues.push(cue);
      if (cues.length <= MAX_CUES) continue;
      for (let n = 0; n < MAX_THINNINGS && cues.length > MAX_CUES * THINNED_SHARE; n++) {
        units *= 2;
        spacing = new Spacing(units);
        cues = cues.filter((kept) => spacing.keeps(kept));
      }
      if (cues.length > MAX_CUES * THINNED_SHARE) return cues;
    }
  }
  return cues;
}

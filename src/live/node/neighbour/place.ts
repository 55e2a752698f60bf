/**
 * What a peer reports about its place in the trees (message PLACE): how deep a child would be on each substream, and
 * which children it would take. Trees stay shallow when members that look for a parent know where there is room, and
 * how deep. The report is not proven. It decides only about places, and a peer that does not deliver is left like any
 * other.
 */

import { POLICY } from "../policy.ts";

/** Depth of a substream that does not come from the source at the moment. */
export const UNFED = 255;
/** A depth beyond this, 6 s, is a circle. */
export const MAX_DEPTH = 120;
/** A substream that takes no further child. */
export const CLOSED = 255;

/** A substream that takes only children without a parent: another child has to make room for them. */
export const NEEDY = 1;

/** A step in the tree counts as one more for each of these that a block takes from one member to the next, ms. */
const STEP_MS = 50;

/** Words of a path. */
export const PATH_WORDS = 4;
/** Bits in the mark of one member: with twelve members on a path, 2 % of the others seem to be on it, too. */
const MARK_BITS = 3;
/** Bits in the tag that a source gives a neighbour: with a third of a path set, one in five thousand shows a tag by chance. */
const TAG_BITS = 8;

/** What a member leaves in the paths of all members fed through it: `MARK_BITS` of 128 bits. */
export type Mark = readonly number[];

/** The contents of a PLACE. */
export interface Place {
  /** Measured uplink, bytes/s; null when it is not known (0xffffffff on the wire). */
  readonly upBytesPerS: number | null;
  /**
   * Substream → depth of a child: steps from the source, where slow and busy steps count more; `UNFED` when nothing
   * would come.
   */
  readonly depths: Uint8Array;
  /**
   * Substream → uplink that a new child needs, in eighths of the bitrate: 0 when there is room for anyone, `NEEDY`
   * when only for children without a parent, `CLOSED` when for no one.
   */
  readonly bars: Uint8Array;
  /**
   * Substream → the members its blocks come through, the sender included: their marks in 128 bits (a Bloom filter), four
   * words each. A member that finds its own mark there assumes that it feeds the sender, and never asks it for that substream.
   */
  readonly paths: Uint32Array;
}

/** A random mark. */
export function newMark(random: () => number): Mark {
  return randomBits(random, MARK_BITS);
}

/** A random tag: see `SourcePlaces`. */
export function newTag(random: () => number): Mark {
  return randomBits(random, TAG_BITS);
}

function randomBits(random: () => number, count: number): Mark {
  const mark = new Array<number>(PATH_WORDS).fill(0);
  for (let i = 0; i < count; i++) {
    const bit = Math.floor(random() * 32 * PATH_WORDS);
    mark[bit >> 5] = (mark[bit >> 5]! | (1 << (bit & 31))) >>> 0;
  }
  return mark;
}

/** Bits set in the path of `substream`. */
export function pathBits(paths: Uint32Array, substream: number): number {
  let count = 0;
  for (let word = 0; word < PATH_WORDS; word++) {
    for (let rest = paths[PATH_WORDS * substream + word]!; rest !== 0; rest &= rest - 1) count++;
  }
  return count;
}

/** A path for each of `substreams`, through no member yet. */
export function emptyPaths(substreams: number): Uint32Array {
  return new Uint32Array(PATH_WORDS * substreams);
}

/** Sets the path of `substream` in `to` to the one in `from` (null: none), continued through the member with `mark`. */
export function extendPath(to: Uint32Array, from: Uint32Array | null, substream: number, mark: Mark): void {
  const at = PATH_WORDS * substream;
  for (let word = 0; word < PATH_WORDS; word++) to[at + word] = (from?.[at + word] ?? 0) | mark[word]!;
}

/** True when the path of `substream` seems to go through the member with `mark`. */
export function isOnPath(paths: Uint32Array, substream: number, mark: Mark): boolean {
  const at = PATH_WORDS * substream;
  for (let word = 0; word < PATH_WORDS; word++) {
    if ((paths[at + word]! & mark[word]!) >>> 0 !== mark[word]) return false;
  }
  return true;
}

/** Mask of the substreams whose paths differ between `place` and `before`; all of them when that is null. */
export function changedPaths(place: Place, before: Place | null): number {
  let mask = 0;
  for (let i = 0; i < place.paths.length; i++) {
    if (place.paths[i] !== before?.paths[i]) mask |= 1 << Math.floor(i / PATH_WORDS);
  }
  return mask;
}

/** `known` with the paths of the substreams of `mask` taken from `changed`. */
export function mergePaths(known: Uint32Array, changed: Uint32Array, mask: number): Uint32Array {
  return known.map((word, i) => ((mask >> Math.floor(i / PATH_WORDS)) & 1) === 1 ? changed[i]! : word);
}

/**
 * True when a neighbour can wait for the change from `before` to `place`: depths differ by `POLICY.smallSteps` at most,
 * the same substreams are reached, and there is room for the same members.
 */
export function isSmallChange(place: Place, before: Place): boolean {
  for (let i = 0; i < place.depths.length; i++) {
    const [depth, depthBefore] = [place.depths[i]!, before.depths[i]!];
    if (Math.abs(depth - depthBefore) > POLICY.smallSteps || (depth === UNFED) !== (depthBefore === UNFED)) {
      return false;
    }
    if (openness(place.bars[i]!) !== openness(before.bars[i]!)) return false;
  }
  return true;
}

/**
 * Depth that a step from a peer with this uplink adds, 1 or more, when a block takes `blockMs` from it to its child.
 * Queues count, because they slow a tree down, not its steps: when a crowd comes, queues take hundreds of ms.
 */
export function stepOf(upBytesPerS: number, blockMs: number): number {
  if (upBytesPerS <= 0) return MAX_DEPTH;
  return Math.min(MAX_DEPTH, 1 + Math.round(blockMs / STEP_MS));
}

/** An uplink in eighths of the bitrate, the unit of bars. */
export function eighths(upBytesPerS: number, bytesPerS: number): number {
  return Math.min(CLOSED - 1, Math.floor(upBytesPerS / bytesPerS * 8 + 1e-6));
}

/** For which newcomers there is room: all, those without a parent, strong ones, none. */
function openness(bar: number): number {
  return bar > NEEDY && bar < CLOSED ? NEEDY + 1 : bar;
}

/**
 * True when both agree apart from paths. A change of the uplink by up to an eighth does not count: measuring is never
 * exact.
 */
export function samePlace(a: Place, b: Place): boolean {
  const [upA, upB] = [a.upBytesPerS ?? -1, b.upBytesPerS ?? -1];
  if (Math.abs(upA - upB) > Math.abs(upB) / 8) return false;
  for (let i = 0; i < a.depths.length; i++) if (a.depths[i] !== b.depths[i] || a.bars[i] !== b.bars[i]) return false;
  return a.depths.length === b.depths.length;
}

/** How many members get a substream through one of our children. */
import type { LivePeer } from "../neighbour/live-peer.ts";
import { isOnPath, type Mark, PATH_WORDS, UNFED } from "../neighbour/place.ts";

/** What a viewer knows about its own place on a substream. */
export interface OwnWay {
  /** Our mark, which is in the paths of all members below us. */
  readonly mark: Mark;
  /** The paths by which our substreams come to us; null when this one does not. */
  readonly path: Uint32Array | null;
}

/**
 * The neighbours whose paths of `substream` lead through us and then through `child`. This is a share of the branch below
 * it, as a member knows some others only. 0 when it reports no path of its own, as then all that is below us would seem to
 * be below it.
 */
export function fedThrough(child: LivePeer, substream: number, own: OwnWay, peers: Iterable<LivePeer>): number {
  const { place } = child;
  if (place === null) return 0;
  const at = PATH_WORDS * substream;
  const added = own.mark.map((word, i) => (place.paths[at + i]! & ~(word | (own.path?.[at + i] ?? 0))) >>> 0);
  if (added.every((word) => word === 0)) return 0;
  let count = 0;
  for (const other of peers) {
    if (other === child || other.place === null || other.place.depths[substream] === UNFED) continue;
    const { paths } = other.place;
    if (isOnPath(paths, substream, own.mark) && isOnPath(paths, substream, added)) count++;
  }
  return count;
}

/** Where runs begin: exact places from the Cues, or byte positions after which the next keyframe is taken. */

/**
 * The start of a run. Its cut is in the first cluster that begins at or after `position`: the block at `blockAt` if the
 * cluster begins exactly there; else the first keyframe of the main track within `searchBytes` of the cluster's
 * beginning, and if there is none, the cluster's first block. The same rule ends the run before, so that every block
 * belongs to exactly one run.
 */
export interface Anchor {
  readonly position: number;
  /** Relative to the end of the cluster's header. */
  readonly blockAt: number | null;
  /** Infinity: take the next keyframe, however far it is. */
  readonly searchBytes: number;
}

/**
 * How far into a cluster to search for its keyframe when the Cues don't say where it is, bytes. Muxers begin clusters
 * with the keyframe or with a few audio blocks before it.
 */
export const CUE_SEARCH_BYTES = 16 * 1024;

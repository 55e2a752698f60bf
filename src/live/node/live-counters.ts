/** What a live node counts. */

/** Figures since the start; payload in bytes. */
export interface LiveCounters {
  fromSourceBytes: number;
  fromViewersBytes: number;
  duplicateBytes: number;
  badBlocks: number;
  forgedHeaders: number;
  skippedVerifications: number;
  /** WINDOWs not examined, since another came soon after. */
  skippedWindows: number;
}

/** All zero. */
export function newCounters(): LiveCounters {
  return {
    fromSourceBytes: 0,
    fromViewersBytes: 0,
    duplicateBytes: 0,
    badBlocks: 0,
    forgedHeaders: 0,
    skippedVerifications: 0,
    skippedWindows: 0,
  };
}

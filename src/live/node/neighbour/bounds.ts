/** What one neighbour may cost us, whatever it sends. Times are ms unless named otherwise. */
export const BOUNDS = {
  /**
   * WINDOWs of one peer examined per second, each of them thousands of steps. If more come, only the last one is
   * examined, later. Twice the number that members send.
   */
  windowsPerS: 8,
  /**
   * A peer that has sent this many beyond `windowsPerS` since it connected is banned. An honest member never does. The
   * WINDOWs that a stalled link delivers at once stay within it, too: such a link is given up after 35 s, and this
   * allows for two minutes.
   */
  windowBacklog: 512,
  /** Waiting requests of one peer; further ones are rejected. */
  requestQueueLimit: 64,
  /**
   * Blocks that a child can have declared unneeded. Pushes wait for 2 s at most, in which a stream of 32 Mb/s has this
   * many blocks.
   */
  unwantedLimit: 512,
  /** Headers of one peer verified per second, or twice as many as the stream has when that is more. */
  headersPerS: 50,
  /** Forged headers after which a peer is banned. */
  forgedHeaderLimit: 3,
  /** Blocks of one peer that wait for the verification of their header. */
  waitingBlockLimit: 128,
  /** PONGs to one peer per second, beyond one per block that it has sent; at most `owedPongs` of those are kept. */
  pongsPerS: 10,
  owedPongs: 64,
} as const;

/** The numbers of live distribution. Times are ms unless named otherwise. */
export const POLICY = {
  /** WINDOW messages to one peer: at most four a second. */
  windowIntervalMs: 250,
  /** What is missing is pulled this long after a neighbour had it: pushes usually come first. */
  pullAfterMs: 800,
  /** A parent that is this late with a block is replaced. */
  parentLagMs: 1500,
  /** A request unserved for this long: the peer is snubbed. */
  requestTimeoutMs: 1500,
  /** A snubbed peer is asked nothing for this long. */
  snubMs: 10_000,
  /** A block queued longer for sending is of no use any more. */
  shedAfterMs: 2000,
  /** Share of the measured uplink that subscriptions may fill; the rest is for pulls. */
  loadLimit: 0.92,
  /** A parent has at least this uplink, in shares of the bitrate. */
  parentUplinkShare: 0.4,
  /** Share of that kept for newcomers while there are any. */
  newcomerShare: 0.2,
  /** A peer is a newcomer for this long. */
  newcomerMs: 10_000,
  /** Requests of one peer that wait; what exceeds them is rejected. */
  requestQueueLimit: 64,
  /** A request that would wait longer than this for our uplink is rejected, so that it is put to another. */
  maxServeDelayMs: 800,
  /** A peer that rejected a request is asked nothing for this long. */
  rejectedMs: 300,
  /** Requests of ours under way at one peer: more would queue behind its pushes. */
  requestsPerPeer: 4,
  /** Headers of one peer that are verified in a second. */
  headersPerS: 50,
  /** Forged headers after which a peer is banned. */
  forgedHeaderLimit: 3,
  /** Blocks of one peer that wait for the verification of their header. */
  waitingBlockLimit: 128,
  /** Echoes sent to one peer in a second. */
  pongsPerS: 10,
  pingIntervalMs: 10_000,
  /** Pieces beyond the newest verified that a neighbour's WINDOW can make us look for. */
  maxPiecesAhead: 64,
  /** Peers whose newest header is awaited before joining. */
  joinPeers: 3,
  /** A joiner waits no longer for more of them. */
  joinWaitMs: 1000,
  /** A joiner starts at a random access point at least this far behind the edge. */
  joinBehindMs: 2000,
  /** Contiguous media with which playing starts: what a pull takes, twice. */
  startBufferMs: 1500,
  /** An edge older than this (wall clocks) is a replay of a stream that ended: keep searching. */
  staleMs: 30_000,
  /** A parent that refused is asked again after this long. */
  refusedMs: 2000,
  /** Bytes handed to the network and not yet gone above which nothing more is: what is queued here can still be shed. */
  inFlightBytes: 32_768,
  /** Pushes that go before a waiting request: what is late at one viewer must not make it late at all of a tree. */
  pushesPerPull: 10,
  /** Pieces that a new child is given at once, counted back from the newest. */
  catchUpPieces: 4,
} as const;

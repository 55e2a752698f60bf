/** The numbers of live distribution. Times are ms unless named otherwise. */
export const POLICY = {
  /** WINDOW messages to one peer: at most four a second. */
  windowIntervalMs: 250,
  /** A PLACE that differs by its paths alone is sent this often: what happens high up in a tree changes those of all below. */
  pathIntervalMs: 1000,
  /**
   * WINDOWs of one peer that are looked at in a second, each thousands of steps; of more the last one is, later. Twice
   * what members send.
   */
  windowsPerS: 8,
  /**
   * A peer that has sent so many beyond `windowsPerS` since it connected is banned. An honest member never does, and what
   * a link that stood still delivers at once stays within it, too: such a link is given up after 35 s, and clocks that
   * stood still with it count for two minutes here.
   */
  windowBacklog: 512,
  /** What is missing is pulled this long after a neighbour had it: pushes usually come first. */
  pullAfterMs: 800,
  /**
   * And this long after `commonPeers` of them (a sixth of few) had it. One alone may be the source, and to be 0.8 s
   * behind that is the lot of all who are deep in a large tree. If no other gets it, the wait is 2 × `pullAfterMs`.
   */
  pullAfterCommonMs: 400,
  commonPeers: 3,
  /** What nobody pushes to us is pulled this long after a neighbour had it. */
  pullUnpushedMs: 100,
  /** A parent that is this late with a block is replaced. */
  parentLagMs: 1500,
  /** With at least so many. */
  lateBlocks: 2,
  /**
   * A block is late so long after the first of its piece has come, whoever has it: when a whole tree is cut off nobody
   * has whole pieces, by which lateness shows otherwise. Longer, for trees differ in how long they take.
   */
  overdueMs: 2500,
  /** The same of a parent that has not brought anything yet. */
  unstartedMs: 1200,
  /** Lateness shows by headers only while the newest has come within this: else the stream stands still for all. */
  movingMs: 1000,
  /** A parent that brought nothing at all is not asked again for so long, doubled each time up to `barrenDoublings`. */
  barrenMs: 10_000,
  barrenDoublings: 5,
  /** Except when there is no parent: then it is ranked as if it were so much further from the source. */
  barrenSteps: 60,
  /** A neighbour that says nothing for so long while the stream goes on is taken for gone. */
  silentMs: 1000,
  /** And so is a child when for so long nothing of what it is sent arrives: its places are for others. */
  childStalledMs: 1500,
  /** A neighbour of no use is exchanged for a random one this often. */
  exploreMs: 5000,
  /** What use a neighbour is shows after this. */
  settleMs: 3000,
  /** A child makes room for one whose uplink is so many times its own. */
  strongerBy: 1.5,
  /** A child that is displaced is served for this long at most until it has another parent, unless it came as recently. */
  noticeMs: 1000,
  /** A better parent is looked for this often. */
  improveMs: 4000,
  /** A parent that was left for a better one goes on for this long at most, so that nothing between the two is missed. */
  handoverMs: 1500,
  /** So many steps nearer to the source are worth the move; below that, swinging queues alone would make branches move. */
  improveSteps: 8,
  /** A source that is back after an absence is left to the heads of the old branches for this long: they dial it within 0.3 s. */
  returnMs: 350,
  /** A branch that gets nothing waits this long for its head to find another parent before its members look for their own. */
  unfedMs: 500,
  /** A request unserved for this long: the peer is snubbed. */
  requestTimeoutMs: 1500,
  /** A snubbed peer is asked nothing for this long. */
  snubMs: 10_000,
  /** A block queued longer for sending is of no use any more. */
  shedAfterMs: 2000,
  /** Share of the measured uplink that subscriptions may fill; the rest is for pulls, and for what measuring is wrong by. */
  loadLimit: 0.88,
  /**
   * The same of a source, where the protocol's page has 0.92 as for all: its queue delays everybody, and what the moving
   * of its children puts into it has to leave again. At 0.92 it stood at 0.8 s for four seconds after a return.
   */
  sourceLoadLimit: 0.8,
  /**
   * Subscriptions taken beyond what was carried already while the own uplink is unknown: the whole stream once. A slow one
   * is found out by its first block or two; with half of that a crowd had to wait for places that were there.
   */
  unmeasuredSlots: 8,
  /** And no more than so many times what was carried, or what the quickest block says: with neither, churn cost 2.5 % of the stream. */
  carriedGrowth: 1.25,
  /** Subscriptions taken before the first block has arrived anywhere: on a slow line as many more would starve meanwhile. */
  firstSlots: 3,
  /** A parent has at least this uplink, in shares of the bitrate. */
  parentUplinkShare: 0.4,
  /** Requests of one peer that wait; what exceeds them is rejected. */
  requestQueueLimit: 64,
  /** A request that would wait longer than this for our uplink is rejected, so that it is put to another. */
  maxServeDelayMs: 800,
  /** Requests are rejected while pushes wait longer than this: what they take, all of a branch waits for. */
  pullBelowMs: 250,
  /** Blocks of which a child can have said that it needs them no more: pushes wait for 2 s at most, which is 32 Mb/s. */
  unwantedLimit: 512,
  /** A peer that rejected a request is asked nothing for this long. */
  rejectedMs: 300,
  /** Requests of ours under way at one peer: more would queue behind its pushes. */
  requestsPerPeer: 4,
  /** Headers of one peer that are verified in a second, or twice as many as the stream has when that is more. */
  headersPerS: 50,
  /** Forged headers after which a peer is banned. */
  forgedHeaderLimit: 3,
  /** Blocks of one peer that wait for the verification of their header. */
  waitingBlockLimit: 128,
  /** Echoes sent to one peer in a second, beyond one for each block that it has sent, of which so many are kept. */
  pongsPerS: 10,
  owedPongs: 64,
  /** A neighbour that nothing is sent to is pinged this often. */
  pingIntervalMs: 10_000,
  /** Pieces beyond the newest verified that a neighbour's WINDOW can make us look for: what comes in so long, ms. */
  aheadMs: 16_000,
  leastPiecesAhead: 64,
  /** What is further back than this from the newest piece comes too late for anyone, and is not pulled, ms. */
  lookBackMs: 16_000,
  leastPiecesBack: 64,
  /** How far back from the newest piece parents are judged by what they did not bring, ms. */
  judgeMs: 8000,
  leastPiecesJudged: 32,
  /** Peers whose newest header is awaited before joining. */
  joinPeers: 3,
  /** A joiner waits no longer for more of them. */
  joinWaitMs: 1000,
  /**
   * A joiner starts at a random access point at least this far behind the edge. The protocol's page says 2 s; but fetching
   * what is older takes as long as playing it, and uplink that a growing swarm does not have. With 1 s sixty simulated
   * viewers among poisoners saw 91.7, 94.5, 99.5 and 99.96 % of the stream (seeds 2 to 5), with this 97.3, 99.1, 96.5, 99.8.
   */
  joinBehindMs: 300,
  /**
   * A reader hopes to begin at one random access point until that is further behind the edge than this, and each next
   * one is kept for a step longer.
   */
  startHoldMs: 2000,
  startHoldStepMs: 500,
  startHoldMaxMs: 3000,
  /** Nor does it begin at one that it has given up and that is further behind than this by then. */
  startBehindMs: 2800,
  /**
   * A player that has run dry waits for a late piece while that leaves it no further behind the edge than this, measured
   * from what comes soonest. The protocol's page skips at once; but who joined a small swarm close to the edge loses pieces
   * for as long as a crowd comes in, when half a second of standing still would last for all of that.
   */
  stallBehindMs: 2800,
  /** A random access point that is not due yet is waited for by a player that had something to show so long ago at most. */
  gapWaitMs: 2000,
  /**
   * What no neighbour has from before the return of a broadcaster is lost so long after the piece before it, in time of
   * capture and waiting: whoever had more would have told by then. After a shorter absence, or none, the discontinuity may
   * just have come sooner than what another parent brings.
   */
  lostAfterMs: 2000,
  /** Contiguous media with which playing starts. */
  startBufferMs: 1000,
  /** An edge older than this by our wall clock may be left of a stream that ended, or one of two clocks is wrong. */
  staleMs: 30_000,
  /** Then it is joined when it has moved on by so much, in as long at least: what has ended stands still. */
  aliveMs: 1000,
  /** A parent that refused is asked again after this long. */
  refusedMs: 2000,
  /** Neighbours have to prove themselves for this long after a false block. */
  waryMs: 60_000,
  /** A peer that has delivered nothing yet is then ranked as a parent as if it were so much further from the source. */
  unprovenSteps: 20,
  /** And one that has brought nothing as a parent, for each substream that it was asked for already. */
  untriedSteps: 4,
  /** A neighbour proves with so much of a block that it sends what is genuine: little, for slow uplinks give many proofs. */
  proofBytes: 1024,
  /** A peer with nothing else to prove itself with is asked for a block that we gave it so long ago: it has arrived by then. */
  givenMs: 1000,
  /** A child that has been asked for a proof for so long loses its place. */
  unprovenMs: 3000,
  /** Children with this uplink, in shares of the bitrate, are served before the others. */
  relayShare: 1.5,
  /** Pushes to such children that go before a waiting one to another. */
  relaysPerLeaf: 4,
  /** Pushes that go before a waiting request: what is late at one viewer must not make it late at all of a tree. */
  pushesPerPull: 30,
  /** A parent gives a new child something older at once only while its own queue is shorter than this. */
  catchUpBelowMs: 600,
  /**
   * A child makes room for another only while pushes wait less than this. Both are served for a while: with no such limit
   * the queue of the simulated source grew to 1.2 s, and so did everybody's delay, when a thousand came in half a minute.
   */
  displaceBelowMs: 250,
  /** Children beyond what the uplink should carry are dropped while pushes wait longer than this; else those beyond all of it. */
  drainAboveMs: 1000,
  /** A child stays this long before one that is stronger, but not `manyTimes` as strong, may take its place. */
  tenureMs: 2000,
  manyTimes: 4,
  /** What a new child is given at once, counted back from the newest piece, ms. */
  catchUpMs: 1600,
  leastCatchUpPieces: 6,
} as const;

/** The numbers of live distribution. Times are ms unless named otherwise. */
export const POLICY = {
  /** WINDOW messages to one peer: at most four a second. */
  windowIntervalMs: 250,
  /**
   * A neighbour that has all that we have gets a WINDOW this long after we spoke last, since it would learn nothing from it
   * but that we are still there. Well below `silentMs`.
   */
  sparseWindowMs: 750,
  /**
   * A PLACE with small changes is sent to children this often: a change high up in a tree alters depths and paths of all below,
   * and queues swing by a step or two all the time, where moving takes `improveSteps`.
   */
  childPlaceMs: 1000,
  /** The same for other neighbours, which compare us with their parents every `improveMs`. */
  idlePlaceMs: 3000,
  /** A depth changed by more than this is reported after `windowIntervalMs`, like room for another child. */
  smallSteps: 2,
  /**
   * WINDOWs of one peer examined per second, each thousands of steps; of any excess only the last is examined, later. Twice
   * the number that members send.
   */
  windowsPerS: 8,
  /**
   * A peer that has sent this many beyond `windowsPerS` since it connected is banned. An honest member never does, and what
   * a stalled link delivers at once stays within it, too: such a link is given up after 35 s, and clocks that
   * stood still with it count for two minutes here.
   */
  windowBacklog: 512,
  /** A missing piece is pulled this long after a neighbour had it: pushes usually come first. */
  pullAfterMs: 800,
  /**
   * And this long after `commonPeers` of them (a sixth of few) had it. A single one may be the source, and members deep in a
   * large tree are normally 0.8 s behind that. If no other gets it, the wait is 2 × `pullAfterMs`.
   */
  pullAfterCommonMs: 400,
  commonPeers: 3,
  /** A piece that nobody pushes to us is pulled this long after a neighbour had it. */
  pullUnpushedMs: 100,
  /** A parent that is this late with a block is replaced. */
  parentLagMs: 1500,
  /** At least this many blocks have to be late. */
  lateBlocks: 2,
  /**
   * A block is late this long after its piece's header came, whoever has it: when a whole tree is cut off nobody
   * has whole pieces, the other sign of lateness. Longer than `parentLagMs`, since trees differ in how long they take.
   */
  overdueMs: 2500,
  /** The same for a parent that has not brought anything yet. */
  unstartedMs: 1200,
  /** Headers show lateness only if the newest came within this: otherwise the stream stands still for everybody. */
  movingMs: 1000,
  /** A parent that brought nothing at all is not asked again for this long, doubled each time up to `barrenDoublings`. */
  barrenMs: 10_000,
  barrenDoublings: 5,
  /** Except when there is no parent: then it is ranked as if it were this much further from the source. */
  barrenSteps: 60,
  /**
   * Later it is ranked as if it were this much further from the source for each time: one that stops again and again is a last
   * resort. With 8, sixty simulated viewers, of whom 5 % pass on for four seconds of eight, saw 99.4, 98.9 and 97.9 % of the
   * stream (seeds 1, 2 and 3), with 30 99.6, 99.6 and 98.9.
   */
  doubtSteps: 30,
  /** One of those times is forgiven after this long, ms. */
  forgiveMs: 60_000,
  /** A substream whose parent is behind the newest header by this much does not reach us, ms: nobody is fed through us. */
  starvedMs: 1200,
  /** A parent that has been asked is taken to deliver for this long, ms: a crowd would have to wait for a block at each step. */
  hopefulMs: 600,
  /** A neighbour that says nothing for this long while the stream goes on is taken for gone. */
  silentMs: 1000,
  /** So is a child when nothing sent to it has arrived for this long: its places go to others. */
  childStalledMs: 1500,
  /** A neighbour of no use is exchanged for a random one this often. */
  exploreMs: 5000,
  /** After this time it shows how useful a neighbour is. */
  settleMs: 3000,
  /** A reported uplink is believed up to this many times the bitrate: more gives nobody a better place. */
  believedUp: 4,
  /** A source takes this many children on trial, beyond its places. */
  trials: 2,
  /** A child of the source that feeds nobody by then fails its trial, or yields its place to others. */
  trialMs: 4000,
  /** A child is taken to pass on for this long after somebody showed that. */
  vouchedMs: 2000,
  /**
   * The trial of a child that has failed before is passed when that was so for this long: one that passes on by fits and starts
   * must not take the place of another again and again. The first one is passed at once: if strong newcomers move up late,
   * a crowd that doubled a small swarm lost 1.5 % of the stream instead of 0.5 %.
   */
  provenMs: 6000,
  /** While fewer of the neighbours than this get a substream, those who vouch for its children are not believed. */
  reachedShare: 1 / 3,
  /** That is judged by at least so many neighbours. */
  leastJudges: 6,
  /** After a failed trial the next one waits for this long, doubled each time. */
  barredMs: 10_000,
  /** A child of the source with this many places that feed nobody takes no other's. */
  unvouchedPlaces: 2,
  /** A path with more bits than this is taken for a false one: those of a dozen members have forty. */
  pathBits: 64,
  /** A child makes room for a peer whose uplink is this many times its own. */
  strongerBy: 1.5,
  /** A displaced child is served at most this long until it has another parent, unless it came as recently. */
  noticeMs: 1000,
  /** Interval at which a better parent is looked for. */
  improveMs: 4000,
  /** A parent that was left for a better one continues at most this long, so that nothing between the two is missed. */
  handoverMs: 1500,
  /** A move must bring us this many steps nearer to the source; below that, swinging queues alone would make branches move. */
  improveSteps: 8,
  /** A source back after an absence is reserved for the heads of the old branches for this long: they dial it within 0.3 s. */
  returnMs: 350,
  /** A branch that gets nothing waits this long for its head to find another parent before its members look for their own. */
  unfedMs: 500,
  /** A request unserved for this long: the peer is snubbed. */
  requestTimeoutMs: 1500,
  /** A snubbed peer is asked nothing for this long. */
  snubMs: 10_000,
  /** A block queued longer than this for sending is of no use any more. */
  shedAfterMs: 2000,
  /** Share of the measured uplink that subscriptions may fill; the rest is for pulls and measuring errors. */
  loadLimit: 0.88,
  /**
   * The same for a source, where the protocol's page has 0.92 as for all: its queue delays everybody, and what moving
   * children add to it has to drain again. At 0.92 the queue stood at 0.8 s for four seconds after a return.
   */
  sourceLoadLimit: 0.8,
  /**
   * Subscriptions taken beyond what was carried already while our uplink is unknown: the whole stream once. A slow uplink
   * shows with its first block or two; with half of that a crowd had to wait for places that were there.
   */
  unmeasuredSlots: 8,
  /** And at most this many times what was carried or what the quickest block shows: with neither, churn cost 2.5 % of the stream. */
  carriedGrowth: 1.25,
  /** Subscriptions taken before the first block has arrived anywhere: on a slow line many more would starve meanwhile. */
  firstSlots: 3,
  /** A parent has at least this uplink, in shares of the bitrate. */
  parentUplinkShare: 0.4,
  /** Waiting requests of one peer; further ones are rejected. */
  requestQueueLimit: 64,
  /** A request that would wait longer than this for our uplink is rejected, so that the peer asks another. */
  maxServeDelayMs: 800,
  /** Requests are rejected while pushes wait longer than this: a whole branch waits for whatever they take. */
  pullBelowMs: 250,
  /** Blocks that a child can have declared unneeded: pushes wait for 2 s at most, which is 32 Mb/s. */
  unwantedLimit: 512,
  /** A peer that rejected a request is asked nothing for this long. */
  rejectedMs: 300,
  /** Our requests under way at one peer: more would queue after its pushes. */
  requestsPerPeer: 4,
  /** Headers of one peer verified per second, or twice as many as the stream has when that is more. */
  headersPerS: 50,
  /** Forged headers after which a peer is banned. */
  forgedHeaderLimit: 3,
  /** Blocks of one peer that wait for the verification of their header. */
  waitingBlockLimit: 128,
  /** PONGs to one peer per second, beyond one per block that it has sent; at most `owedPongs` of those are kept. */
  pongsPerS: 10,
  owedPongs: 64,
  /** A neighbour to which nothing is sent is pinged this often. */
  pingIntervalMs: 10_000,
  /** Pieces beyond the newest verified that a neighbour's WINDOW can make us look for: what comes in this time, ms. */
  aheadMs: 16_000,
  leastPiecesAhead: 64,
  /** Pieces further back than this from the newest come too late for anyone, and are not pulled, ms. */
  lookBackMs: 16_000,
  leastPiecesBack: 64,
  /** How far back from the newest piece parents are judged by the blocks they did not bring, ms. */
  judgeMs: 8000,
  leastPiecesJudged: 32,
  /** Peers whose newest header is awaited before joining. */
  joinPeers: 3,
  /** A joiner waits at most this long for more of them. */
  joinWaitMs: 1000,
  /**
   * A joiner starts at a random access point at least this far behind the edge. The protocol's page says 2 s; but fetching
   * older pieces takes as long as playing them, and uplink that a growing swarm does not have. With 1 s sixty simulated
   * viewers among poisoners saw 91.7, 94.5, 99.5 and 99.96 % of the stream (seeds 2 to 5), with this 97.3, 99.1, 96.5, 99.8.
   */
  joinBehindMs: 300,
  /**
   * A reader hopes to begin at a random access point until that point is further behind the edge than this; each next
   * point is kept for a step longer.
   */
  startHoldMs: 2000,
  startHoldStepMs: 500,
  startHoldMaxMs: 3000,
  /** Nor does it begin at a point that it has given up and that is further behind than this by then. */
  startBehindMs: 2800,
  /**
   * A player that has run dry waits for a late piece while that leaves it no further behind the edge than this, measured
   * from the piece that came soonest. The protocol's page skips at once; but a viewer that joined a small swarm close to the
   * edge then loses pieces for as long as a crowd comes in, while half a second of standing still would cover all of that.
   */
  stallBehindMs: 2800,
  /** A random access point not due yet is waited for only by a player that had something to show within this time. */
  gapWaitMs: 2000,
  /**
   * A piece from before a broadcaster's return that no neighbour has is lost this long after the piece before it, in
   * capture time and waiting: a neighbour with more would have reported it by then. After a shorter absence, or none, the
   * discontinuity may just have come sooner than what another parent brings.
   */
  lostAfterMs: 2000,
  /** Contiguous media with which playing starts. */
  startBufferMs: 1000,
  /** An edge older than this by our wall clock may be left over from a stream that ended, or one of two clocks is wrong. */
  staleMs: 30_000,
  /** Then it is joined once it has moved on by this much, in at least as long: an ended stream stands still. */
  aliveMs: 1000,
  /** A parent that refused is asked again after this long. */
  refusedMs: 2000,
  /** Neighbours have to prove themselves for this long after a false block. */
  waryMs: 60_000,
  /** A peer that has delivered nothing yet is then ranked as a parent as if it were this much further from the source. */
  unprovenSteps: 20,
  /**
   * Until a peer has brought something as a parent it is not believed to be nearer to the source than this: a newcomer that
   * believed all would ask every liar among its neighbours first.
   */
  untriedDepth: 5,
  /** And it is ranked as if it were this much further away for each substream that it was asked for already. */
  untriedSteps: 4,
  /** Length of block that proves that a neighbour sends genuine data: little, since slow uplinks give many proofs. */
  proofBytes: 1024,
  /** A peer with no other proof is asked for a block that we gave it this long ago: it has arrived by then. */
  givenMs: 1000,
  /** A child that was asked for a proof this long ago without giving one loses its place. */
  unprovenMs: 3000,
  /** Children with this uplink, in shares of the bitrate, are served before the others. */
  relayShare: 1.5,
  /** Pushes to such children that go before a waiting one to any other child. */
  relaysPerLeaf: 4,
  /** Pushes that go before a waiting request: a block late at one viewer must not be late for a whole tree because of it. */
  pushesPerPull: 30,
  /** A parent gives a new child older pieces at once only while its own queue is shorter than this. */
  catchUpBelowMs: 600,
  /**
   * A child makes room for another only while pushes wait less than this. Both are served for a while: without this limit
   * the queue of the simulated source grew to 1.2 s, and so did everybody's delay, when a thousand came in half a minute.
   */
  displaceBelowMs: 250,
  /** While pushes wait longer than this, children beyond `loadLimit` are dropped; otherwise only those beyond the whole uplink. */
  drainAboveMs: 1000,
  /** A child keeps its place this long before a stronger one, unless `manyTimes` as strong, may take it. */
  tenureMs: 2000,
  manyTimes: 4,
  /** How far back from the newest piece a new child is served at once, ms. */
  catchUpMs: 1600,
  leastCatchUpPieces: 6,
} as const;

/** The numbers of live distribution. Times are ms unless named otherwise. */
export const POLICY = {
  /** Least time between two WINDOWs to one peer: four per second. */
  windowIntervalMs: 250,
  /**
   * That time grows by this for each of our neighbours, up to `sparseWindowMs`, for those that every substream reaches: they
   * probably have as many neighbours, and learn of a piece from the first few. With 40 ms one of five runs of three hundred
   * among 5 % sinkholes, where more has to be pulled, fell to 93.5 %; three runs with 20 saw 99.3 to 99.8.
   */
  windowIntervalPerPeerMs: 25,
  /**
   * A neighbour whose last WINDOW was complete up to at most this far behind ours keeps up with the stream, ms of stream. It gets
   * WINDOWs every `sparseWindowMs`: it lacks little, and others report the same to it.
   */
  keepsUpMs: 1500,
  /**
   * A neighbour that has everything we have gets a WINDOW this long after we spoke last: it would learn nothing from it
   * but that we are still there. Below `silentMs` by more than a tick.
   */
  sparseWindowMs: 800,
  /**
   * A PLACE with small changes goes to children this long after the last one, along with the next message to them; and
   * `sparseWindowMs` later on its own. A change high up in a tree alters depths and paths of all members below, and queues
   * swing by a step or two all the time, while moving takes `improveSteps`.
   */
  childPlaceMs: 750,
  /** The same for other neighbours, which compare us with their parents every `improveMs`. */
  idlePlaceMs: 2000,
  /** A depth that changed by more than this is reported after `windowIntervalMs`, like room for another child. */
  smallSteps: 2,
  /** A missing piece is pulled this long after a neighbour had it: pushes usually come first. */
  pullAfterMs: 800,
  /**
   * A missing piece is also pulled this long after `quorum` neighbours (a sixth of them in a small swarm) had it.
   * A single one may be the source, and members deep in a large tree are normally 0.8 s behind that. If no other gets
   * it, the wait is 2 × `pullAfterMs`.
   */
  pullAfterCommonMs: 400,
  /** What so many neighbours show is believed: that a piece is about, or where the edge is that a newcomer joins. */
  quorum: 3,
  /** A piece that nobody pushes to us is pulled this long after a neighbour had it. */
  pullUnpushedMs: 100,
  /** And a piece that a reader will have due within this time, once a neighbour has it: its player would run dry. */
  pullDueMs: 250,
  /**
   * A parent that is this late with a block is replaced. The former one continues for at most as long after a better one took
   * over, so that nothing between the two is missed.
   */
  parentLagMs: 1500,
  /** At least this many blocks have to be late. */
  lateBlocks: 2,
  /**
   * A block is late this long after its piece's header came, whichever neighbours have it. This is the sign that
   * remains when a whole tree is cut off, because then nobody has whole pieces. Longer than `parentLagMs`, since trees
   * differ in how long they take.
   */
  overdueMs: 2500,
  /**
   * A neighbour that failed us is avoided for this long: as a parent when it brought nothing, as a child of the source when
   * nobody was fed through it, for requests when it left one unserved. The first two last longer by as much each
   * time.
   */
  avoidMs: 10_000,
  /**
   * Such a peer is ranked as if it were this much further from the source for each time: one that stops again and
   * again is a last resort. A member without a parent asks it even while it is avoided. With 8, sixty simulated viewers, of
   * whom 5 % pass on for four seconds of eight, saw 99.4, 98.9 and 97.9 % of the stream (seeds 1, 2 and 3), with 30 99.6, 99.6
   * and 98.9.
   */
  doubtSteps: 30,
  /** One failure is forgiven after this long, ms; and after a false block, neighbours have to prove themselves for this long. */
  forgiveMs: 60_000,
  /**
   * A substream whose parent is this far behind the newest header does not reach us, ms, and nobody is fed through us. A
   * parent that has not brought anything yet has this long before its blocks count as late.
   */
  starvedMs: 1200,
  /**
   * A parent that was asked counts as delivering for this long, ms: otherwise a crowd would have to wait for a block at
   * each step.
   */
  hopefulMs: 600,
  /**
   * A neighbour that says nothing for this long while the stream goes on counts as gone, and is not asked for anything: when
   * many vanish at once, most members would otherwise ask one after the other that is gone. So does a child when nothing sent to
   * it has arrived for this long: its places go to others. The stream goes on if the newest header came within this time.
   */
  silentMs: 1000,
  /** A neighbour of no use is exchanged for a random peer this often. */
  exploreMs: 5000,
  /** A neighbour may be of no use until it has been connected for this long. */
  settleMs: 3000,
  /** A reported uplink is believed up to this many times the bitrate: more gives nobody a better place. */
  believedUp: 4,
  /** A source takes this many children on trial, beyond its places. */
  trials: 2,
  /** A child of the source that feeds nobody within this time fails its trial, or yields its place to others. */
  trialMs: 4000,
  /** A child counts as passing on for this long after another neighbour showed its tag. */
  vouchedMs: 2000,
  /**
   * A child that has failed a trial before passes the next one when others were fed through it for this long without a
   * break: one that passes on by fits and starts must not take the place of another again and again. So does any child that
   * would take the place of one through which others have been fed for as long. Any other first trial is
   * passed at once, so that strong newcomers move up soon: when it took as long, one of six runs of sixty simulated viewers
   * fell to 94 % among sinkholes, and one of twelve to 78 % when a third vanished.
   */
  provenMs: 6000,
  /**
   * A child is vouched for by at least one in so many of those that vouch for the best child of the substream. Without
   * this, five of a hundred simulated viewers that vouch for one another left the others 54 % of the stream, with it 98.4.
   */
  voucherShare: 16,
  /** The trial of a child that some are fed through, but too few, lasts at most this long. */
  longTrialMs: 12_000,
  /**
   * While a smaller share of the neighbours than this gets a substream, neighbours that vouch for its children are not
   * believed.
   */
  reachedShare: 1 / 3,
  /**
   * While at least this share of the neighbours of a source lacks a substream, a child through which nobody is fed loses its
   * claim to it at once, and a second one gets a place. Of 300 simulated viewers among 5 % who pass on for four seconds of eight
   * the others saw 92.3 % without both, and 96.9 with them (means of ten seeds; the least 70 and 84).
   */
  lackedShare: 0.4,
  /** For this long its places are kept for members that have long fed others on other substreams. */
  headStartMs: 1000,
  /** Children of such a substream for which the reserve of the uplink is used. */
  lackedPlaces: 2,
  /** Both shares are judged by at least this many neighbours. */
  leastJudges: 6,
  /** A child of the source with this many places that feed nobody cannot take the place of another. */
  unvouchedPlaces: 2,
  /** A path with more bits than this counts as false: the path of a dozen members has forty. */
  pathBits: 64,
  /**
   * A member with at least this many neighbours takes the swarm for so large that few of those below the head of a branch
   * could feed that head. Sixteen viewers with up-links of 0.4 to 8 Mbit/s that know one another saw 99.5 % with the rule for
   * large swarms, and 99.98 without it.
   */
  largeNeighbourhood: 18,
  /** A child makes room for a peer whose uplink is this many times its own. */
  strongerBy: 1.5,
  /**
   * A displaced child is served for at most this long until it has another parent, unless it came more recently than
   * this.
   */
  noticeMs: 1000,
  /** Interval at which a better parent is looked for. */
  improveMs: 4000,
  /**
   * A move must bring us this many steps nearer to the source. With less, branches would move just because queues
   * swing.
   */
  improveSteps: 8,
  /** A source back after an absence is reserved for the heads of the old branches for this long: they dial it within 0.3 s. */
  returnMs: 350,
  /** A branch that gets nothing waits this long for its head to find another parent before its members look for their own. */
  unfedMs: 500,
  /** A request unserved for this long: the peer is snubbed. */
  requestTimeoutMs: 1500,
  /**
   * A request for a block that a reader waits for moves to another neighbour after this long, if one has the piece: a
   * neighbour whose line is full of pushes may serve it after 1.5 s, or not at all.
   */
  moveRequestMs: 400,
  /** A block queued longer than this for sending is of no use any more. */
  shedAfterMs: 2000,
  /**
   * A connection on which a block has waited for this long because the blocks before it had not arrived does not carry the
   * places that its child has. A TCP connection that loses 1 % of its packets carries 200 to 270 KB/s with a round trip of
   * 70 ms.
   */
  parkedMs: 500,
  /**
   * Share of the measured uplink that subscriptions may fill; the rest is for pulls and measuring errors. With 0.88 three hundred
   * simulated viewers saw 98.0 % when a third vanished, with this 98.7, and were no further behind in steady swarms.
   */
  loadLimit: 0.92,
  /**
   * The same for a source. It is lower because the queue of a source delays everybody, and has to drain again after
   * children have moved. At 0.92 the queue stood at 0.8 s for four seconds after a return.
   */
  sourceLoadLimit: 0.8,
  /**
   * Both while the neighbours and we together have less than `scarceShare` times the uplink that they need: a reserve is
   * no use while members get nothing. With 0.88 and 0.8 sixteen viewers of whom the weakest came first waited for 6.8 s
   * to join (p95), with this 4.9 s.
   */
  scarceLoadLimit: 0.95,
  scarceShare: 1.15,
  /**
   * Subscriptions taken beyond what was carried already while our uplink is unknown: the whole stream once. A slow
   * uplink shows with its first block or two. With half as many a crowd had to wait for places that existed.
   */
  unmeasuredSlots: 8,
  /** Subscriptions taken before the first block has arrived anywhere: on a slow line many more would starve meanwhile. */
  firstSlots: 3,
  /** A parent has at least this uplink, in shares of the bitrate. */
  parentUplinkShare: 0.4,
  /** A request that would wait longer than this for our uplink is rejected, so that the peer asks another. */
  maxServeDelayMs: 800,
  /** A peer that rejected a request is asked nothing for this long. */
  rejectedMs: 300,
  /** Our requests under way at one peer: more would queue after its pushes. */
  requestsPerPeer: 4,
  /** A neighbour to which nothing is sent is pinged this often. */
  pingIntervalMs: 30_000,
  /**
   * Pieces further from the newest verified one than this are not looked for, ms of stream: those ahead are only a neighbour's
   * claim, those behind come too late for anyone.
   */
  reachMs: 16_000,
  leastPiecesInReach: 64,
  /** Parents are judged by the blocks that they did not bring in this stretch before the newest piece, ms of stream. */
  judgeMs: 8000,
  leastPiecesJudged: 32,
  /** A joiner waits at most this long for the edge of more of them. */
  joinWaitMs: 1000,
  /** A reader waits to begin at a random access point until that point is further behind the edge than this. */
  startHoldMs: 2000,
  /**
   * A player should not be further behind the edge than this, measured from the piece that came soonest. A reader does not
   * begin at a point that it has given up and that is further behind. A player that has run dry waits for a late piece while
   * that leaves it within this. To skip at once would cost more: a viewer that joined a small swarm close to the edge would
   * lose pieces for as long as a crowd comes in, while half a second of standing still covers all of that.
   */
  mostBehindMs: 2800,
  /** A player waits for a random access point that is not due yet only if it had something to show within this time. */
  gapWaitMs: 2000,
  /**
   * A piece from before a broadcaster's return that no neighbour has is lost this long after the piece before it, in
   * capture time and waiting. A neighbour that has more would have reported it by then. After a shorter absence, or
   * none, the discontinuity may only have come sooner than the pieces that another parent brings.
   */
  lostAfterMs: 2000,
  /**
   * Contiguous media with which playing starts, from the newest random access point on. With this sixty simulated viewers
   * that came within 30 s were 1.85 s behind the edge (p95 2.7) and saw 99.9 % (means of seeds 1 to 6). With 1 s, from a
   * point 0.3 s behind the edge, and before other changes of that day, it was 2.35 (3.0) and 99.8 %. Older points cost more:
   * fetching from there takes as long as playing, and takes uplink that a growing swarm does not have. Each of the sixty
   * pulled 14 blocks before it played with 0.3 s, and 9 with the newest point.
   */
  startBufferMs: 750,
  /**
   * An edge older than this by our wall clock may be left over from a stream that ended; or one of two clocks is wrong.
   */
  staleMs: 30_000,
  /** Such an edge is joined once it has moved on by this much, in at least this time: an ended stream stands still. */
  aliveMs: 1000,
  /** A parent that refused is asked again after this long. */
  refusedMs: 2000,
  /**
   * Until a peer has brought something as a parent we assume that it is at least this far from the source: a newcomer
   * that believed every report would ask every liar among its neighbours first.
   */
  untriedDepth: 5,
  /**
   * Such a peer is also ranked as if it were this much further away for each substream that it was asked for already.
   */
  untriedSteps: 4,
  /**
   * Length of the part of a block with which a neighbour proves itself: short, because slow uplinks send many proofs.
   */
  proofBytes: 1024,
  /** A peer with no other proof is asked for a block that we sent it this long ago: it has arrived by then. */
  givenMs: 1000,
  /** A child that was asked for a proof this long ago and has sent none loses its place. */
  unprovenMs: 3000,
  /** Children with this uplink, in shares of the bitrate, are served before the others. */
  relayShare: 1.5,
  /** Pushes to such children that go before a waiting push to any other child. */
  relaysPerLeaf: 4,
  /** Pushes that go before a waiting request: a block that is late for one viewer must not delay a whole tree. */
  pushesPerPull: 30,
  /**
   * The same for a block that a newcomer needs to begin in a small swarm. The others have something to play, and the few
   * lines there are full: with 30 for all, the third of sixteen viewers waited for 3.6 to 4.7 s, with this for 2.0 to 2.9.
   */
  pushesPerNewcomer: 4,
  /** A neighbour may be a newcomer for this long after it connected. */
  newcomerMs: 4000,
  /** A parent gives a new child older pieces at once only while its own queue is shorter than this. */
  catchUpBelowMs: 600,
  /**
   * The line counts as busy while pushes wait longer than this. Requests are rejected then: a whole branch waits for every
   * request that is served. And no child makes room for another if that queue stands (`Uploader.standingDelayMs`), because
   * both are served for a while. Without this limit the queue of the simulated source grew to 1.2 s, and so did everybody's
   * delay, when a thousand came in half a minute.
   */
  busyMs: 250,
  /** While pushes wait longer than this, children beyond `loadLimit` are dropped; otherwise only those beyond the whole uplink. */
  drainAboveMs: 1000,
  /** A child keeps its place this long; within this time only a peer `manyTimes` as strong may take it. */
  tenureMs: 2000,
  manyTimes: 4,
  /** How far back from the newest piece a new child is served at once, ms. */
  catchUpMs: 1600,
  leastCatchUpPieces: 6,
} as const;

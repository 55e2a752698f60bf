/** Every number of the VOD scheduler's policy, with the reason for it. Times in milliseconds, sizes in bytes. */

const MiB = 1024 * 1024;

/** The scheduler's policy; tests and simulations override some of it. */
export const defaultTuning = {
  /** Uniform in [0, 1): breaks ties among equally rare pieces so that peers of a swarm fetch different ones. */
  random: Math.random as () => number,
  /** Limit of outstanding requests per peer, besides the peer's own limit: 8 MiB, 18 ms at 450 MB/s. */
  depthCapBlocks: 512,
  /** Depth before anything is known about a peer; it doubles each round trip. */
  firstDepthBlocks: 4,
  /**
   * The same for critical blocks, 1–64. With 16, a piece of 1 MiB is requested from four peers at once, so a cold
   * start never waits for a request.
   */
  firstCriticalBlocks: 16,
  /** Queue kept at a peer beyond its round trip while somebody plays: a seek has to wait for that. */
  readerSlackMs: 40,
  /** The same while every reader has `calmMs` of media requested and the peers deliver twice the bitrate. */
  calmSlackMs: 15,
  /** Media ahead of every reader for `calmSlackMs`. */
  calmMs: 5000,
  /** Peers at or above this rate keep the full slack: their queue drains at once. */
  fastBytesPerSecond: 8_000_000,
  /** The same when nobody waits (background): bridges pauses on either side. */
  backgroundSlackMs: 300,
  /** Rate assumed for a peer of which nothing is known, bytes/s. */
  unknownBytesPerSecond: 100_000,
  /** Time constant of the rate estimate. */
  rateWindowMs: 1000,
  /** Shortest span that a rate is computed over, so that a burst is not taken for a high rate. */
  rateSpanMinMs: 100,
  /** Round trip assumed when unknown. */
  unknownRttMs: 100,
  /** Critical span at each reader: at least this many bytes. Peers of unknown rate share it, liars too. */
  criticalBytes: MiB / 2,
  /** … and this much media. */
  criticalMs: 2000,
  /** Read-ahead by media time. */
  readAheadMs: 30_000,
  /** Least read-ahead. */
  readAheadMinBytes: 16 * MiB,
  /** Most read-ahead: bounds memory, and the bytes that a seek throws away. */
  readAheadMaxBytes: 64 * MiB,
  /** Media time after the reader that is fetched strictly in order; beyond it the rarest piece goes first. */
  inOrderMs: 20_000,
  /** Bitrate assumed for deadlines while unknown, bytes/s: 10 Mbit/s. */
  unknownBitrateBytesPerSecond: 1_250_000,
  /**
   * A piece is contested when this many times more connected peers lack it than have it. Of downloaders in random
   * order, about half have any piece; of viewers at one place of a film, nobody has the next one.
   */
  contestedRatio: 4,
  /**
   * A seed of contested pieces is asked for one of this many: five viewers that it serves at once rarely choose the
   * same.
   */
  spreadPieces: 16,
  /** A reader waits this long for the next piece before its seeds are asked for others. */
  spreadAfterMs: 3000,
  /** How much lead a reader can build up that counts against it when readers compete. */
  leadMaxMs: 10_000,
  /** Of readers that are late alike, one that got this much less than another has caught up once it got that much. */
  fairnessBytes: 4 * MiB,
  /** In a swarm of at least so many peers of which nothing is known, each gets one awaited block, for this long at most. */
  amplePeers: 8,
  newMs: 2000,
  /** A peer that needs longer than this for a block has one requested at a time, and an awaited one is cut … */
  slowBlockMs: 1000,
  /** … into parts of at least this many bytes. */
  leastPartBytes: 1024,
  /** A critical block younger than this is never hedged. */
  hedgeAfterMs: 150,
  /** Another peer must promise the block within this fraction of the remaining time. */
  hedgeRatio: 0.7,
  /** … and save at least this. */
  hedgeGainMs: 60,
  /** Live copies of one block. */
  maxCopies: 3,
  /** Copies started per tick. */
  maxHedgesPerTick: 16,
  /** Shortest silence that counts as a stall: above TCP's usual retransmission timeouts. */
  stallMs: 600,
  /** The same for a peer that has sent a little, so that its rate is unknown: at 2 KB/s a segment comes every 0.7 s. */
  begunStallMs: 2000,
  /** The same for web seeds, which deliver in runs. */
  runStallMs: 3000,
  /** A silent peer gets a single new request this long after the stall. */
  probeMs: 10_000,
  /** When no other peer is of use, a silent peer is trusted again this long after its stall. */
  lonelyProbeMs: 1000,
  /** After this long a silent peer without others is asked again for what it owes, unless it has BEP 6. */
  lonelyRepeatMs: 2000,
  /** Silence after which a peer is dropped. */
  dropMs: 30_000,
  /** A peer that rejects block after block isn't asked for that piece for this long. */
  rejectMs: 5000,
  /** Unfinished pieces of a background download, bytes in total: the host keeps them in RAM. */
  activeLimitBytes: 48 * MiB,
  /** Unfinished pieces that nobody wants any more (after a seek), bytes in total. */
  abandonedLimitBytes: 16 * MiB,
  /**
   * Interest is withdrawn this long after the last demand ended: opening the next range soon after must not cost an
   * unchoke.
   */
  interestLingerMs: 10_000,
  /** How often `tick` should be called while requests are outstanding. */
  tickMs: 20,
  /** The same while nothing is outstanding. */
  idleTickMs: 250,
};

/** The numbers by name. */
export type Tuning = Readonly<typeof defaultTuning>;

/** Every number of the VOD scheduler's policy, with the reason for it. Times in milliseconds, sizes in bytes. */

/** Options of `Scheduler`. All have defaults (`defaultTuning`); tests and simulations override some. */
export interface Tuning {
  /** Uniform in [0, 1): breaks ties among equally rare pieces so that peers of a swarm fetch different ones. Default `Math.random`. */
  readonly random: () => number;
  /** Limit of outstanding requests per peer, besides the peer's own limit. Default 512: 8 MiB, 18 ms at 450 MB/s. */
  readonly depthCapBlocks: number;
  /** Depth before anything is known about a peer. Default 4; it doubles each round trip. */
  readonly firstDepthBlocks: number;
  /**
   * The same for critical blocks, 1–64. Default 16: a piece of 1 MiB is requested from four peers at once, so a cold
   * start never waits for a request.
   */
  readonly firstCriticalBlocks: number;
  /** Queue kept at a peer beyond its round trip while somebody plays. Default 40: a seek has to wait for that. */
  readonly readerSlackMs: number;
  /** The same while every reader has `calmMs` of media requested and the peers deliver twice the bitrate. Default 15. */
  readonly calmSlackMs: number;
  /** Media ahead of every reader for `calmSlackMs`. Default 5000. */
  readonly calmMs: number;
  /** Peers at or above this rate keep the full slack: their queue drains at once. Default 8 MB/s. */
  readonly fastBytesPerSecond: number;
  /** The same when nobody waits (background). Default 300: bridges pauses on either side. */
  readonly backgroundSlackMs: number;
  /** Rate assumed for a peer of which nothing is known, bytes/s. Default 100 kB/s. */
  readonly unknownBytesPerSecond: number;
  /** Time constant of the rate estimate. Default 1000. */
  readonly rateWindowMs: number;
  /** Shortest span that a rate is computed over, so that a burst is not taken for a high rate. Default 100. */
  readonly rateSpanMinMs: number;
  /** Round trip assumed when unknown. Default 100. */
  readonly unknownRttMs: number;
  /** Critical span at each reader: at least this many bytes. Default 1 MiB. */
  readonly criticalBytes: number;
  /** … and this much media. Default 2000. */
  readonly criticalMs: number;
  /** Read-ahead by media time. Default 30 000. */
  readonly readAheadMs: number;
  /** Least read-ahead. Default 16 MiB. */
  readonly readAheadMinBytes: number;
  /** Most read-ahead. Default 64 MiB: bounds memory and what a seek throws away. */
  readonly readAheadMaxBytes: number;
  /** Media time after the reader that is fetched strictly in order; beyond it the rarest piece goes first. Default 20 000. */
  readonly inOrderMs: number;
  /** Bitrate assumed for deadlines while unknown, bytes/s. Default 1.25 MB/s (10 Mbit/s). */
  readonly unknownBitrateBytesPerSecond: number;
  /**
   * A piece is contested when this many times more connected peers lack it than have it. Default 4. Of downloaders in
   * random order, about half have any piece; of viewers at one place of a film, nobody has the next one.
   */
  readonly contestedRatio: number;
  /** A seed of contested pieces is asked for one of so many. Default 16: five viewers that it serves at once rarely choose the same. */
  readonly spreadPieces: number;
  /** A reader waits this long for the next piece before its seeds are asked for others. Default 3000. */
  readonly spreadAfterMs: number;
  /** How much lead a reader can build up that counts against it when readers compete. Default 10 000. */
  readonly leadMaxMs: number;
  /** A critical block younger than this is never hedged. Default 150. */
  readonly hedgeAfterMs: number;
  /** Another peer must promise the block within this fraction of the remaining time. Default 0.7. */
  readonly hedgeRatio: number;
  /** … and save at least this. Default 60. */
  readonly hedgeGainMs: number;
  /** Live copies of one block. Default 3. */
  readonly maxCopies: number;
  /** Copies started per tick. Default 16. */
  readonly maxHedgesPerTick: number;
  /** Shortest silence that counts as a stall. Default 600: above TCP's usual retransmission timeouts. */
  readonly stallMs: number;
  /** The same for web seeds, which deliver in runs. Default 3000. */
  readonly runStallMs: number;
  /** A silent peer gets a single new request this long after the stall. Default 10 000. */
  readonly probeMs: number;
  /** When no other peer is of use, a silent peer is trusted again this long after its stall. Default 1000. */
  readonly lonelyProbeMs: number;
  /** Silence after which a peer is dropped. Default 30 000. */
  readonly dropMs: number;
  /** How long a peer that rejected a block isn't asked for that piece. Default 5000. */
  readonly rejectMs: number;
  /** Unfinished pieces of a background download, bytes in total. Default 48 MiB: the host keeps them in RAM. */
  readonly activeLimitBytes: number;
  /** Unfinished pieces that nobody wants any more (after a seek), bytes in total. Default 16 MiB. */
  readonly abandonedLimitBytes: number;
  /** Interest is withdrawn this long after the last demand ended: opening the next range soon after must not cost an unchoke. Default 10 000. */
  readonly interestLingerMs: number;
  /** How often `tick` should be called while requests are outstanding. Default 20. */
  readonly tickMs: number;
  /** The same while nothing is outstanding. Default 250. */
  readonly idleTickMs: number;
}

const MiB = 1024 * 1024;

/** The defaults documented in `Tuning`. */
export const defaultTuning: Tuning = {
  random: Math.random,
  depthCapBlocks: 512,
  firstDepthBlocks: 4,
  firstCriticalBlocks: 16,
  readerSlackMs: 40,
  calmSlackMs: 15,
  calmMs: 5000,
  fastBytesPerSecond: 8_000_000,
  backgroundSlackMs: 300,
  unknownBytesPerSecond: 100_000,
  rateWindowMs: 1000,
  rateSpanMinMs: 100,
  unknownRttMs: 100,
  criticalBytes: MiB,
  criticalMs: 2000,
  readAheadMs: 30_000,
  readAheadMinBytes: 16 * MiB,
  readAheadMaxBytes: 64 * MiB,
  inOrderMs: 20_000,
  unknownBitrateBytesPerSecond: 1_250_000,
  contestedRatio: 4,
  spreadPieces: 16,
  spreadAfterMs: 3000,
  leadMaxMs: 10_000,
  hedgeAfterMs: 150,
  hedgeRatio: 0.7,
  hedgeGainMs: 60,
  maxCopies: 3,
  maxHedgesPerTick: 16,
  stallMs: 600,
  runStallMs: 3000,
  probeMs: 10_000,
  lonelyProbeMs: 1000,
  dropMs: 30_000,
  rejectMs: 5000,
  activeLimitBytes: 48 * MiB,
  abandonedLimitBytes: 16 * MiB,
  interestLingerMs: 10_000,
  tickMs: 20,
  idleTickMs: 250,
};

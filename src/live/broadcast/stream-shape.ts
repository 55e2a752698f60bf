/** How a new broadcast is divided. Both numbers are part of its id, so a broadcast keeps those that it began with. */
import { MAX_SUBSTREAMS } from "../../metainfo/live.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";

/**
 * A piece lasts about this long, ms: a player gets only whole pieces, and each has a header. With pieces of 0.2 s instead of 0.27
 * a thousand simulated viewers of 2 Mb/s are 1.80 s behind the source instead of 1.86 (p95 2.3 instead of 2.5), and with
 * 0.26 instead of 0.52 a hundred of 1 Mb/s 1.8 instead of 2.3.
 */
const PIECE_MS = 200;
/** Least and most blocks of a piece: bitrates change, and one measured at the start may be that of a black picture. */
const LEAST_BLOCKS = 2;
const MOST_BLOCKS = 4;
/**
 * Slower streams have half as many substreams, bytes/s. Parents are judged by blocks that are late, and in eight substreams of
 * 0.5 Mb/s each has one every two seconds: a hundred viewers saw 97.4 % of it, and with four 99.7.
 */
const SLOW_BYTES_PER_S = 160_000;

/** The shape of one broadcast. */
export interface StreamShape {
  /** A multiple of 16384, 32768 to 65536. */
  readonly pieceLengthBytes: number;
  /** 4 or 8. */
  readonly substreams: number;
}

/** The shape for a stream of `bytesPerS`. */
export function streamShape(bytesPerS: number): StreamShape {
  const blocks = Math.round(bytesPerS * PIECE_MS / 1000 / BLOCK_BYTES);
  return {
    pieceLengthBytes: BLOCK_BYTES * Math.min(MOST_BLOCKS, Math.max(LEAST_BLOCKS, blocks)),
    substreams: bytesPerS < SLOW_BYTES_PER_S ? MAX_SUBSTREAMS / 2 : MAX_SUBSTREAMS,
  };
}

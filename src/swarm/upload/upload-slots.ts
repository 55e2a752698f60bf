/**
 * How many peers are served at once. A slow up-link that is split among many peers completes no piece for a long time,
 * and nobody can pass on half a piece. With fewer and faster slots the seeder's first copy was in a simulated swarm of
 * 40 viewers after 390 s instead of 505.
 */

/**
 * Bytes/s for which a slot is worth having. Below that, one slot less serves the others better. It is enough for a
 * viewer of a small video (320 kbit/s), so that an up-link with room to spare opens slot after slot until all are
 * served.
 */
const WORTHWHILE_BYTES_PER_S = 40_000;

/** Peers that are served however slow the up-link is: one by merit, one in rotation. */
const MIN_UPLOAD_SLOTS = 2;

/** Returns the slots for the next round, 2 to `most`, when all peers together were sent `bytesPerS` in this one. */
export function uploadSlots(most: number, bytesPerS: number): number {
  // One more than the rate supports: if the up-link has more to give, the next round shows it.
  return Math.min(most, Math.max(MIN_UPLOAD_SLOTS, Math.floor(bytesPerS / WORTHWHILE_BYTES_PER_S) + 1));
}

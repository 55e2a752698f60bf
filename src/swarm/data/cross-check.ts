/**
 * Compares two copies of a piece that both failed their hash, where each block came from another peer the second time.
 * Where the copies differ, one of two senders lied. Taking one peer after another for the liar gives a few mixtures. If
 * there was one liar, one of them is the piece.
 */
import { BLOCK_BYTES } from "../../wire/types.ts";

/** Mixtures tried. With more peers in doubt, peers whose blocks differ most often are tried first. */
const MAX_MIXTURES = 8;

/** A copy of a piece. */
export interface Copy {
  readonly buffer: Uint8Array;
  /** Of each block. */
  readonly digests: readonly string[];
  /** Number of the peer that sent each block. */
  readonly senders: readonly number[];
}

/** Copies of the piece mixed from `first` and `second`, the likeliest first. Blocks of known `liars` are avoided. */
export function* mixtures(first: Copy, second: Copy, liars: ReadonlySet<number>): Generator<Uint8Array> {
  const differing = first.digests.flatMap((digest, block) => digest === second.digests[block] ? [] : [block]);
  const counts = new Map<number, number>();
  for (const block of differing) {
    for (const sender of new Set([first.senders[block]!, second.senders[block]!])) {
      counts.set(sender, (counts.get(sender) ?? 0) + 1);
    }
  }
  const suspects = [...counts].sort((a, b) => b[1] - a[1]).map(([sender]) => sender).slice(0, MAX_MIXTURES);
  for (const suspect of suspects) {
    const lies = (sender: number) => sender === suspect || liars.has(sender);
    // Exactly one of the two senders of each differing block must be a liar. Otherwise this suspect does not explain
    // why the copies differ.
    const isExplained = differing.every((block) => lies(first.senders[block]!) !== lies(second.senders[block]!));
    if (!isExplained) continue;
    const mixed = first.buffer.slice();
    for (const block of differing) {
      if (!lies(first.senders[block]!)) continue;
      const from = block * BLOCK_BYTES;
      mixed.set(second.buffer.subarray(from, from + BLOCK_BYTES), from);
    }
    yield mixed;
  }
}

/**
 * Finds the liars. When a piece made of several peers' blocks fails its hash, the digest of every block is kept with
 * its sender. When a good copy of the piece arrives, every sender of a block that differs from it is a liar.
 */
import type { Digest } from "../../ports.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";

/** Failed attempts remembered: with more pieces than this in doubt at once, bans will follow anyway. */
const MAX_ATTEMPTS = 64;

/** A sender: the swarm's number, and what identifies it after the connection has ended. */
export interface Suspect {
  readonly source: number;
  readonly host: string;
  /** The id in the handshake of a peer; "" for a web seed. */
  readonly peerIdHex: string;
}

interface Attempt {
  readonly piece: number;
  readonly digests: readonly string[];
  readonly senders: readonly (Suspect | undefined)[];
}

/** Digest of each block of a piece, in order. */
export async function blockDigests(piece: Uint8Array, sha1: Digest): Promise<string[]> {
  const jobs: Promise<Uint8Array>[] = [];
  for (let at = 0; at < piece.length; at += BLOCK_BYTES) jobs.push(sha1(piece.subarray(at, at + BLOCK_BYTES)));
  return (await Promise.all(jobs)).map((digest) => String.fromCharCode(...digest));
}

/** Failed attempts, bounded. */
export class Evidence {
  #attempts: Attempt[] = [];

  /** Whether there are failed attempts at this piece. */
  has(piece: number): boolean {
    return this.#attempts.some((a) => a.piece === piece);
  }

  /** Keeps a failed attempt: `digests[i]` and `senders[i]` belong to block i. */
  record(piece: number, digests: readonly string[], senders: readonly (Suspect | undefined)[]): void {
    if (this.#attempts.length >= MAX_ATTEMPTS) this.#attempts.shift();
    this.#attempts.push({ piece, digests, senders });
  }

  /** Compares failed attempts at a piece with a good copy, returns every sender whose block differs, forgets the attempts. */
  convict(piece: number, good: readonly string[]): Suspect[] {
    const liars = new Map<number, Suspect>();
    for (const attempt of this.#attempts) {
      if (attempt.piece !== piece) continue;
      attempt.digests.forEach((digest, block) => {
        const sender = attempt.senders[block];
        if (sender !== undefined && digest !== good[block]) liars.set(sender.source, sender);
      });
    }
    this.#attempts = this.#attempts.filter((a) => a.piece !== piece);
    return [...liars.values()];
  }
}

import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { Assembly } from "../../src/swarm/data/assembly.ts";
import type { PieceBank } from "../../src/swarm/data/piece-bank.ts";
import { pieceCheck } from "../../src/swarm/data/piece-check.ts";
import type { Sources } from "../../src/swarm/data/sources.ts";
import { Verifier } from "../../src/swarm/data/verifier.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";

const BLOCK = 16_384;
const PIECE = 2 * BLOCK;

const sha1 = async (bytes: Uint8Array) => new Uint8Array(await crypto.subtle.digest("SHA-1", new Uint8Array(bytes)));

/** A verifier of two pieces of two blocks whose bytes are their numbers, and what it reports. */
async function setUp(wrongBlocks?: (piece: number) => Promise<readonly number[] | null>) {
  const clock = new FakeClock();
  const told: string[] = [];
  const good = (piece: number) => Uint8Array.from({ length: PIECE }, (_, i) => 2 * piece + Math.floor(i / BLOCK));
  const hashes = new Uint8Array(40);
  for (const piece of [0, 1]) hashes.set(await sha1(good(piece)), 20 * piece);
  const sources = {
    canAsk: () => false,
    suspect: (source: number) => ({ source, host: `10.0.0.${source}` }),
    convict: () => {},
    setCongested: () => {},
  };
  const verifier = new Verifier({
    shape: { pieceCount: 2, pieceLengthBytes: PIECE, totalBytes: 2 * PIECE },
    matches: pieceCheck({ pieceHashes: hashes, pieceLengthBytes: PIECE }, { sha1, sha256: sha1 }),
    ...(wrongBlocks === undefined ? {} : { wrongBlocks }),
    clock,
    sha1,
    buffers: { acquire: (bytes) => new Uint8Array(bytes), release: () => {} },
    bank: { put: () => Promise.resolve() } as unknown as PieceBank,
    sources: sources as unknown as Sources,
    outcome: {
      verified: (piece) => void told.push(`verified ${piece}`),
      failed: (piece) => void told.push(`failed ${piece}`),
      restored: () => {},
      spoiled: ({ piece }, blocks) => void told.push(`spoiled ${piece}: ${blocks.join()}`),
      reopened: ({ piece }, liars) => void told.push(`reopened ${piece} without ${liars.join()}`),
      wasted: () => {},
      convicted: ({ source }) => void told.push(`convicted ${source}`),
    },
  });
  /** Submits a piece whose block i came from `senders[i]`; every block of `liar` is wrong. */
  const submit = (piece: number, senders: readonly [number, number], liar: number) => {
    const buffer = good(piece);
    senders.forEach((sender, block) => {
      if (sender === liar) buffer[block * BLOCK + 7]! ^= 0xff;
    });
    const assembly = new Assembly(piece, buffer, 0);
    senders.forEach((sender, block) => {
      assembly.begin(block, sender);
      assembly.finish(block, sender, 0);
    });
    return verifier.submit(assembly);
  };
  return { clock, told, verifier, submit };
}

test("Verifier has a piece wait for the verdict on an earlier one of the same senders, and asks for the liar's blocks alone", async () => {
  const { clock, told, verifier, submit } = await setUp();
  await submit(0, [1, 2], 2);
  await submit(1, [2, 1], 2);
  assertEquals(told, ["failed 0"]);
  assertEquals(verifier.holds(1), true);
  await submit(0, [2, 1], 2);
  assertEquals(told, ["failed 0", "convicted 2", "reopened 1 without 2", "verified 0"]);
  assertEquals([verifier.holds(1), clock.pendingTimers], [false, 0]);
});

test("Verifier fetches a piece again by itself when the verdict names nobody who sent any of it", async () => {
  const { told, submit } = await setUp();
  await submit(0, [1, 2], 2);
  await submit(1, [1, 3], 3);
  assertEquals(told, ["failed 0"]);
  await submit(0, [2, 1], 2);
  await until("all is told", () => told.length >= 4);
  assertEquals(told.sort(), ["convicted 2", "failed 0", "failed 1", "verified 0"]);
});

test("Verifier waits 1.5 s for a verdict, and not at all for one on a later piece or of other senders", async () => {
  const late = await setUp();
  await late.submit(0, [1, 2], 2);
  await late.submit(1, [1, 2], 2);
  late.clock.advance(1_500);
  await until("the piece is given up", () => late.told.length >= 2);
  assertEquals(late.told, ["failed 0", "failed 1"]);
  const later = await setUp();
  await later.submit(1, [1, 2], 2);
  await later.submit(0, [1, 2], 2);
  assertEquals(later.told, ["failed 1", "failed 0"]);
  const others = await setUp();
  await others.submit(0, [1, 2], 2);
  await others.submit(1, [3, 4], 4);
  assertEquals(others.told, ["failed 0", "failed 1"]);
  others.verifier.close();
});

test("Verifier convicts the sender of a wrong block at once, and keeps the others, when the hashes of blocks are known", async () => {
  const { told, verifier, submit } = await setUp(() => Promise.resolve([1]));
  await submit(0, [1, 2], 2);
  assertEquals(told, ["convicted 2", "spoiled 0: 1"]);
  assertEquals(verifier.holds(0), false);
});

test("Verifier fetches a piece again when nobody sends the hashes of its blocks, or they blame nobody", async () => {
  for (const wrong of [null, []]) {
    const { told, submit } = await setUp(() => Promise.resolve(wrong));
    await submit(0, [1, 2], 2);
    assertEquals(told, ["failed 0"]);
  }
});

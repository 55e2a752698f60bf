import { test } from "node:test";
import { createHash } from "node:crypto";
import { assertEquals } from "@std/assert";
import { LEAF_BYTES, leavesOf, pieceLevel, pieceRoot, rootLevel, rootOf } from "../../src/bytes/merkle.ts";
import { noise } from "../support/random.ts";
import { sha256 } from "../support/v2-torrent.ts";

const hash = (...parts: Uint8Array[]) => {
  const digest = createHash("sha256");
  for (const part of parts) digest.update(part);
  return new Uint8Array(digest.digest());
};

/** As BEP 52 says it: leaves up to a power of two, those after the end zeros. */
function plainRoot(data: Uint8Array, leafCount: number): Uint8Array {
  let row = Array.from({ length: leafCount }, (_, leaf) => {
    const block = data.subarray(leaf * LEAF_BYTES, (leaf + 1) * LEAF_BYTES);
    return block.length > 0 ? hash(block) : new Uint8Array(32);
  });
  while (row.length > 1) row = row.flatMap((left, i) => i % 2 === 0 ? [hash(left, row[i + 1]!)] : []);
  return row[0]!;
}

test("pieceRoot() joins leaves in pairs, and counts those after the end as zeros", async () => {
  for (const bytes of [1, 16_383, 16_384, 16_385, 50_000, 65_536, 131_071]) {
    const data = noise(bytes, 3);
    assertEquals(await pieceRoot(data, 131_072, sha256), plainRoot(data, 8), `${bytes} bytes`);
  }
});

test("rootOf() reaches the root of a file by the nodes of its pieces, whatever their number", async () => {
  for (const bytes of [1, 16_384, 65_536, 65_537, 300_000, 524_288, 524_289]) {
    const data = noise(bytes, 5);
    const top = rootLevel(bytes);
    const root = plainRoot(data, 2 ** top);
    assertEquals((await rootOf(await leavesOf(data, sha256), 0, top)).slice(), root, `${bytes} bytes, leaves`);
    const layer = new Uint8Array(32 * Math.ceil(bytes / 65_536));
    for (let at = 0; at < bytes; at += 65_536) {
      layer.set(await pieceRoot(data.subarray(at, at + 65_536), 65_536, sha256), at / 2048);
    }
    if (bytes <= 65_536) continue;
    assertEquals((await rootOf(layer, pieceLevel(65_536), top)).slice(), root, `${bytes} bytes, pieces`);
  }
});

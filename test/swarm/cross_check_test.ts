import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { equalBytes } from "../../src/bytes/hex.ts";
import { type Copy, mixtures } from "../../src/swarm/data/cross-check.ts";
import { BLOCK_BYTES } from "../../src/wire/types.ts";

/** A copy whose block i was sent by `senders[i]`; blocks of `liars` are wrong, each in its own way. */
function copy(senders: readonly number[], liars: readonly number[], lie: number): Copy {
  const buffer = new Uint8Array(senders.length * BLOCK_BYTES - 100).map((_, i) => i >> 14);
  senders.forEach((sender, block) => {
    if (liars.includes(sender)) buffer[block * BLOCK_BYTES + 5]! ^= lie;
  });
  const digests = senders.map((_, block) => String(buffer[block * BLOCK_BYTES + 5]));
  return { buffer, digests, senders };
}

const solved = (all: Iterable<Uint8Array>, blocks: number) => {
  const right = copy(Array(blocks).fill(0), [], 0).buffer;
  return [...all].some((mixed) => equalBytes(mixed, right));
};

test("mixtures() contain the piece when one peer lied in both copies", () => {
  const first = copy([1, 2, 3, 1, 2, 3], [2], 0x80);
  const second = copy([2, 3, 1, 3, 1, 2], [2], 0x40);
  assertEquals(solved(mixtures(first, second, new Set()), 6), true);
});

test("mixtures() contain the piece when one block of each copy is wrong", () => {
  const first = copy([1, 2], [1], 0x80);
  const second = copy([2, 1], [1], 0x80);
  assertEquals(solved(mixtures(first, second, new Set()), 2), true);
});

test("mixtures() contain the piece when of two liars one is known", () => {
  const first = copy([1, 2, 3, 4, 3], [2, 4], 0x80);
  const second = copy([2, 1, 4, 3, 1], [2, 4], 0x40);
  assertEquals(solved(mixtures(first, second, new Set()), 5), false);
  assertEquals(solved(mixtures(first, second, new Set([4])), 5), true);
});

test("mixtures() are none when both copies agree, and few when everybody lies", () => {
  assertEquals([...mixtures(copy([1, 2], [], 0), copy([2, 1], [], 0), new Set())], []);
  const senders = Array.from({ length: 64 }, (_, i) => i);
  const all = [...mixtures(copy(senders, senders, 0x80), copy([...senders].reverse(), senders, 0x40), new Set())];
  assertEquals(all.length <= 8, true);
});

import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { RecentNumbers } from "../../src/live/node/neighbour/recent-numbers.ts";
import { seeded } from "../support/random.ts";

test("RecentNumbers tells a set's answers as long as numbers lie less than 512 behind the largest", () => {
  const random = seeded(3);
  const recent = new RecentNumbers();
  const all = new Set<number>();
  let largest = 0;
  for (let i = 0; i < 20_000; i++) {
    largest += Math.floor(random() * 4);
    const value = Math.max(0, largest - Math.floor(random() * 500));
    assertEquals(recent.add(value), !all.has(value));
    all.add(value);
  }
});

test("RecentNumbers forgets what lies 512 behind, and all of it after a jump", () => {
  const recent = new RecentNumbers();
  assert(recent.add(0));
  assert(!recent.add(0));
  assert(recent.add(512));
  assert(recent.add(0));
  assert(recent.add(2 ** 31 - 1));
  assert(recent.add(512));
  assert(!recent.add(2 ** 31 - 1));
});

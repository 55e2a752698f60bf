import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { LossSign } from "../../src/live/node/line/loss-sign.ts";

const LINKS = Array.from({ length: 8 }, () => ({}));

/** A hundred arrivals on each connection, one each 10 ms; `isLate` says which of them were late. */
function seen(isLate: (link: number, arrival: number) => boolean, links = LINKS): LossSign {
  const sign = new LossSign();
  let nowMs = 0;
  for (let arrival = 0; arrival < 100; arrival++) {
    for (const [i, link] of links.entries()) sign.noted(link, isLate(i, arrival), nowMs += 10);
  }
  return sign;
}

for (
  const [what, isLate, isLossy] of [
    ["nothing was late", () => false, false],
    ["one in ten was late on every connection", (link, arrival) => (arrival + link) % 10 === 0, true],
    ["half was late on five of eight connections", (link, arrival) => link < 5 && arrival % 2 === 0, true],
    ["all was late on three of eight connections", (link) => link < 3, false],
    ["all was late once, for all connections at the same time", (_, arrival) => arrival === 20, false],
  ] as [string, (link: number, arrival: number) => boolean, boolean][]
) {
  test(`LossSign ${isLossy ? "takes a line for lossy" : "sees no loss"} when ${what}`, () => {
    assertEquals(seen(isLate).isLossy, isLossy);
  });
}

test("LossSign sees no loss on a single connection, nor before connections have carried something", () => {
  assertEquals(seen(() => true, LINKS.slice(0, 1)).isLossy, false);
  const sign = new LossSign();
  for (let arrival = 0; arrival < 7; arrival++) for (const link of LINKS) sign.noted(link, true, arrival);
  assertEquals(sign.isLossy, false);
  for (const link of LINKS) sign.noted(link, true, 8);
  assertEquals(sign.isLossy, true);
});

test("LossSign forgets connections on which nothing arrives any more", () => {
  const sign = seen((link) => link < 5);
  assertEquals(sign.isLossy, true);
  for (let arrival = 0; arrival < 20; arrival++) {
    for (const link of LINKS.slice(5)) sign.noted(link, false, 20_000 + 100 * arrival);
  }
  assertEquals(sign.isLossy, false);
});

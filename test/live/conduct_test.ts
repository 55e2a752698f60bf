import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { Conduct } from "../../src/live/node/neighbour/conduct.ts";
import { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { ScriptedLink } from "./support.ts";

function peerOf(host?: string): LivePeer {
  return new LivePeer(new ScriptedLink(), {
    role: "viewer",
    upBytesPerS: null,
    ...(host === undefined ? {} : { host }),
  }, 0);
}

test("Conduct keeps what a member did beyond its connection, for the next one from its host and no other", () => {
  const conduct = new Conduct();
  const liar = peerOf("192.0.2.1");
  conduct.noteBarren(liar, 1000);
  conduct.noteFailedTrial(liar, 1000);
  conduct.keep(liar);
  const [stranger, again, neighbour] = [peerOf("192.0.2.2"), peerOf("192.0.2.1"), peerOf("192.0.2.1")];
  for (const peer of [stranger, again, neighbour]) conduct.restore(peer);
  const doubts = [stranger, again, neighbour].map((peer) => {
    const { barrenTimes, barrenUntilMs, failedTrials } = conduct.of(peer);
    return [barrenTimes, barrenUntilMs, failedTrials];
  });
  assertEquals(doubts, [[0, -Infinity, 0], [1, 1000 + POLICY.avoidMs, 1], [0, -Infinity, 0]]);
  assertEquals(conduct.of(again).barredUntilMs, 1000 + POLICY.avoidMs);
});

test("Conduct keeps a bounded number of records, the latest, and none of honest members or unknown hosts", () => {
  const conduct = new Conduct();
  conduct.keep(peerOf("honest"));
  conduct.keep(peerOf());
  for (let i = 0; i < 2000; i++) {
    const liar = peerOf(`host ${i}`);
    conduct.noteBarren(liar, 0);
    conduct.keep(liar);
  }
  const isKnown = Array.from({ length: 2000 }, (_, i) => {
    const peer = peerOf(`host ${i}`);
    conduct.restore(peer);
    return conduct.of(peer).barrenTimes > 0;
  });
  assertEquals([isKnown.indexOf(true), isKnown.lastIndexOf(true)], [2000 - 512, 1999]);
  assertEquals(isKnown.filter(Boolean).length, 512);
});

test("Conduct.noteBarren() adds to the time each time, and forgives one time a minute after it", () => {
  const conduct = new Conduct();
  const peer = peerOf();
  const untilMs = () => conduct.of(peer).barrenUntilMs;
  const waits: number[] = [];
  for (let i = 0; i < 8; i++) {
    const nowMs = Math.max(0, untilMs());
    conduct.noteBrought(peer);
    conduct.noteBarren(peer, nowMs);
    waits.push((untilMs() - nowMs) / POLICY.avoidMs);
    assertEquals(conduct.hasBrought(peer), false);
  }
  assertEquals(waits, [1, 2, 3, 4, 5, 6, 7, 8]);
  assertEquals(conduct.barrenTimes(peer, untilMs() + POLICY.forgiveMs - 1), 8);
  assertEquals(conduct.barrenTimes(peer, untilMs() + 3 * POLICY.forgiveMs), 5);
  assertEquals(conduct.barrenTimes(peer, untilMs() + 30 * POLICY.forgiveMs), 0);
});

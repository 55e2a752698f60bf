import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { UNFED } from "../../src/live/node/neighbour/place.ts";
import { BLOCK_BYTES } from "../../src/wire/types.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import type { Neighbour } from "./support.ts";
import { Stage } from "./support.ts";
import { seededRandom } from "../simulation/event-queue.ts";
import { BYTES_PER_S, crowded, pass, placeOf, proven, publish, vouch } from "./source-stage.ts";

/** A trial of `neighbour` failed so long ago that it may be tried again. */
function failedLongAgo(stage: Stage, { peer }: Neighbour): void {
  stage.node.conduct.noteFailedTrial(peer, -1e9);
}

test("SourcePlaces gives a newcomer two trials, whatever uplink it reports, while others are fed through the children", () => {
  const { stage, child, liar } = crowded();
  stage.says(liar, { type: "subscribe", mask: 0xff, from: 6 });
  assertEquals(child.childMask, 0xff);
  assertEquals(liar.childMask, 0x03);
});

test("SourcePlaces ends the trial of a child that nobody is fed through, and gives it no other soon", () => {
  const { stage, child, liar } = crowded();
  stage.says(liar, { type: "subscribe", mask: 0x01, from: 6 });
  pass(stage, POLICY.trialMs - 200);
  assertEquals(liar.childMask, 0x01);
  pass(stage, 400);
  stage.says(liar, { type: "subscribe", mask: 0x04, from: 6 });
  assertEquals([child.childMask, liar.childMask], [0xff, 0]);
  pass(stage, POLICY.avoidMs);
  stage.says(liar, { type: "subscribe", mask: 0x04, from: 6 });
  assertEquals(liar.childMask, 0x04);
});

test("SourcePlaces gives a place to a tried child once others are fed through it", () => {
  const { stage, child, liar: strong, below } = crowded();
  stage.says(strong, { type: "subscribe", mask: 0x03, from: 6 });
  const other = proven(stage, BYTES_PER_S);
  vouch(stage, other, strong);
  vouch(stage, below, child);
  pass(stage, 200);
  assertEquals([strong.childMask, child.childMask], [0x03, 0xfc]);
});

test("SourcePlaces has the child that came last make room for a newcomer, though the other has less uplink", () => {
  const stage = new Stage({
    role: "source",
    uplinkBytesPerS: 2 * BYTES_PER_S / POLICY.sourceLoadLimit + 1,
    random: seededRandom(1),
  });
  publish(stage, 5);
  const [first, below, strong, other] = [1, 1, 2, 1].map((share) => proven(stage, share * BYTES_PER_S));
  stage.says(first!, { type: "subscribe", mask: 0xff, from: 6 });
  vouch(stage, below!, first!);
  pass(stage, POLICY.provenMs + 200);
  stage.says(strong!, { type: "subscribe", mask: 0xff, from: 6 });
  vouch(stage, other!, strong!);
  pass(stage, 200);
  const stronger = proven(stage, 4 * BYTES_PER_S);
  stage.says(stronger, { type: "subscribe", mask: 0x01, from: 6 });
  assertEquals([first, strong, stronger].map((one) => one!.childMask), [0xff, 0xfe, 0x01]);
});

test("SourcePlaces tries a newcomer beside the only regular child while others are fed through one on trial, too", () => {
  const { stage, child, liar } = crowded();
  failedLongAgo(stage, liar); // or its first vouchers would end the trial
  stage.says(liar, { type: "subscribe", mask: 0x01, from: 6 });
  vouch(stage, proven(stage, BYTES_PER_S), liar);
  pass(stage, 200);
  assertEquals(stage.node.children.atSource!.vouchers.isVouched(liar.peer, 0, stage.clock.monotonic()), true);
  const strong = proven(stage, 4 * BYTES_PER_S);
  stage.says(strong, { type: "subscribe", mask: 0x01, from: 6 });
  assertEquals([child, liar, strong].map(({ childMask }) => childMask), [0xff, 0x01, 0x01]);
});

test("SourcePlaces does not believe a few who vouch for one child while many are fed through another", () => {
  const { stage, child, liar } = crowded();
  failedLongAgo(stage, liar); // or its first vouchers would end the trial
  stage.says(liar, { type: "subscribe", mask: 0x01, from: 6 });
  for (let i = 0; i < 2 * POLICY.voucherShare - 1; i++) vouch(stage, proven(stage, BYTES_PER_S), child);
  const accomplice = proven(stage, BYTES_PER_S);
  vouch(stage, accomplice, liar);
  const isVouched = () => {
    pass(stage, 100);
    return stage.node.children.atSource!.vouchers.isVouched(liar.peer, 0, stage.clock.monotonic());
  };
  assertEquals(isVouched(), false);
  vouch(stage, proven(stage, BYTES_PER_S), liar);
  assertEquals(isVouched(), true, "one in sixteen is enough");
  stage.node.disconnected(accomplice.peer);
  pass(stage, POLICY.longTrialMs - 400);
  assertEquals(liar.childMask, 0x01);
  pass(stage, 400);
  assertEquals([liar.childMask, child.childMask], [0, 0xff]);
});

for (
  const [what, share, depth, mask, left] of [
    ["tries a newcomer beside an only child that can pass on while nobody lacks anything", 1, 3, 0x03, 0xff],
    ["gives two places of an only child to a newcomer when a neighbour gets nothing", 1, UNFED, 0x03, 0xfc],
    ["gives all places of an only child that can't pass on to a newcomer", POLICY.parentUplinkShare / 2, 3, 0xff, 0],
  ] as const
) {
  test(`SourcePlaces ${what}`, () => {
    const stage = new Stage({ role: "source", uplinkBytesPerS: BYTES_PER_S / POLICY.sourceLoadLimit + 1 });
    publish(stage, 5);
    const first = proven(stage, share * BYTES_PER_S);
    stage.says(first, { type: "subscribe", mask: 0xff, from: 6 });
    const third = proven(stage, share * BYTES_PER_S);
    stage.says(third, { ...placeOf(new Uint32Array(32)), depths: new Uint8Array(8).fill(depth) });
    pass(stage, POLICY.trialMs);
    const claims = proven(stage, 40 * BYTES_PER_S);
    stage.says(claims, { type: "subscribe", mask: 0xff, from: 6 });
    assertEquals([claims.childMask, first.childMask], [mask, left]);
  });
}

for (
  const [what, hasFailed, fedMs] of [
    ["that failed before", true, 0],
    ["in place of one through which others have long been fed", false, POLICY.provenMs],
  ] as const
) {
  test(`SourcePlaces gives a place to a tried child ${what} once it has passed on for six seconds`, () => {
    const { stage, child, liar: strong } = crowded();
    if (hasFailed) failedLongAgo(stage, strong);
    pass(stage, fedMs);
    stage.says(strong, { type: "subscribe", mask: 0x01, from: 6 });
    vouch(stage, proven(stage, BYTES_PER_S), strong);
    pass(stage, POLICY.provenMs - 200);
    assertEquals([strong.childMask, child.childMask], [0x01, 0xff]);
    pass(stage, 400);
    assertEquals([strong.childMask, child.childMask], [0x01, 0xfe]);
  });
}

test("SourcePlaces gives no place to a tried child that failed before and passes on by fits and starts", () => {
  const { stage, child, liar } = crowded();
  failedLongAgo(stage, liar);
  stage.says(liar, { type: "subscribe", mask: 0x01, from: 6 });
  const other = proven(stage, BYTES_PER_S);
  vouch(stage, other, liar);
  pass(stage, POLICY.provenMs - 1000);
  stage.says(other, placeOf(new Uint32Array(32)));
  pass(stage, POLICY.vouchedMs + 200);
  assertEquals([child.childMask, liar.childMask], [0xff, 0]);
  assert(stage.node.conduct.isBarred(liar.peer, stage.clock.monotonic()));
});

test("SourcePlaces lets a child that others were fed through until lately try again only after a while, however often it dials", () => {
  const { stage, child, below } = crowded();
  pass(stage, POLICY.trialMs);
  stage.says(below, placeOf(new Uint32Array(32)));
  pass(stage, POLICY.vouchedMs + 200);
  const { conduct } = stage.node;
  const { failedTrials, barredUntilMs } = conduct.of(child.peer);
  assertEquals(failedTrials, 1);
  const mayEnter = (peer: LivePeer) => stage.node.children.atSource!.entry(peer, 0, stage.clock.monotonic()) !== null;
  assertEquals([mayEnter(child.peer), mayEnter(below.peer)], [false, true]);
  stage.node.disconnected(child.peer);
  const again = stage.neighbour({ upBytesPerS: BYTES_PER_S, host: "child" });
  const record = conduct.of(again.peer);
  assertEquals([record.failedTrials, record.barredUntilMs], [1, barredUntilMs]);
});

for (const isReached of [true, false]) {
  test(`SourcePlaces ${isReached ? "believes" : "doesn't believe"} one who vouches while ${isReached ? "all" : "few"} get the substream`, () => {
    const { stage, child, below } = crowded();
    const depths = new Uint8Array(8).fill(isReached ? 3 : UNFED);
    for (let i = 0; i < POLICY.leastJudges; i++) {
      stage.says(proven(stage, BYTES_PER_S), { ...placeOf(new Uint32Array(32)), depths });
    }
    pass(stage, POLICY.settleMs + POLICY.vouchedMs + 200);
    vouch(stage, below, child);
    pass(stage, 100);
    assertEquals(stage.node.children.atSource!.vouchers.isVouched(child.peer, 0, stage.clock.monotonic()), isReached);
  });
}

for (const elsewhere of ["198.51.100.9", "203.0.113.9"]) {
  const isElsewhere = !elsewhere.startsWith("203");
  test(
    `SourcePlaces gives a substream's second place ${
      isElsewhere ? "only to another network" : "to the same network"
    } when there is ${isElsewhere ? "one" : "no other"}`,
    () => {
      const stage = new Stage({ role: "source", uplinkBytesPerS: 2 * BYTES_PER_S / POLICY.sourceLoadLimit + 1 });
      publish(stage, 5);
      const first = proven(stage, BYTES_PER_S, "203.0.113.1");
      const second = proven(stage, BYTES_PER_S, "203.0.113.2");
      const other = proven(stage, BYTES_PER_S, elsewhere);
      for (const { peer } of [first, second, other]) assertEquals(peer.subnet === null, false);
      stage.says(first, { type: "subscribe", mask: 0xff, from: 6 });
      stage.says(second, { type: "subscribe", mask: 0x0f, from: 6 });
      assertEquals(second.childMask, isElsewhere ? 0 : 0x0f);
      stage.says(other, { type: "subscribe", mask: 0xff, from: 6 });
      assertEquals(other.childMask, isElsewhere ? 0xff : 0xf0);
    },
  );
}

test("SourcePlaces lets no child of another network yield its place to the network of those that remain", () => {
  const stage = new Stage({ role: "source", uplinkBytesPerS: 2 * BYTES_PER_S / POLICY.sourceLoadLimit + 1 });
  publish(stage, 5);
  const [first, other] = ["203.0.113.1", "198.51.100.9"].map((host) => proven(stage, BYTES_PER_S, host));
  for (const child of [first!, other!]) stage.says(child, { type: "subscribe", mask: 0xff, from: 6 });
  pass(stage, POLICY.trialMs);
  stage.node.disconnected(first!.peer);
  const again = proven(stage, BYTES_PER_S, "203.0.113.1");
  stage.says(again, { type: "subscribe", mask: 0xff, from: 6 });
  assertEquals([again.childMask, other!.childMask], [0xff, 0xff]);
  // Nobody is fed through `other`, and it had its time: any child could take its place.
  const elsewhere = proven(stage, BYTES_PER_S, "192.0.2.1");
  const strong = proven(stage, 4 * BYTES_PER_S, "203.0.113.3");
  stage.says(strong, { type: "subscribe", mask: 0x03, from: 6 });
  assertEquals([other!.childMask, strong.childMask], [0xff, 0]);
  stage.says(elsewhere, { type: "subscribe", mask: 0x03, from: 6 });
  assertEquals([other!.childMask, elsewhere.childMask], [0xfc, 0x03]);
});

test("SourcePlaces believes no path that is filled with ones", () => {
  const { stage, liar, below } = crowded();
  stage.says(liar, { type: "subscribe", mask: 0x03, from: 6 });
  stage.says(below, placeOf(new Uint32Array(32).fill(0xffffffff)));
  pass(stage, POLICY.trialMs + 200);
  assertEquals(liar.childMask, 0);
});

/** Six neighbours that have been there for a while are fed through `child` on all substreams. */
function judgesOf(stage: Stage, child: Neighbour): Neighbour[] {
  const judges = Array.from({ length: POLICY.leastJudges }, () => proven(stage, 2 * BYTES_PER_S));
  for (const judge of judges) vouch(stage, judge, child);
  pass(stage, POLICY.settleMs + 100);
  return judges;
}

/** What a neighbour reports that lacks the first substream and is fed through `child` on the others. */
function lacking(child: Neighbour) {
  const { paths } = child.link.of("place").findLast(({ pathMask }) => pathMask === 0xff)!;
  const place = placeOf(paths!, 2 * BYTES_PER_S);
  place.depths[0] = UNFED;
  return place;
}

for (const lack of [2, 3]) {
  test(`SourcePlaces ${lack === 3 ? "gives up" : "waits for"} a child through which nobody is fed any more while ${lack} of seven lack the substream`, () => {
    const { stage, child, below } = crowded();
    const all = [below, ...judgesOf(stage, child)];
    const isVouched = () => stage.node.children.atSource!.vouchers.isVouched(child.peer, 0, stage.clock.monotonic());
    assertEquals(isVouched(), true);
    all.forEach((judge, i) => stage.says(judge, i < lack ? lacking(child) : placeOf(new Uint32Array(32))));
    pass(stage, 100);
    assertEquals(isVouched(), lack === 2);
    assertEquals(stage.node.children.atSource!.vouchers.isVouched(child.peer, 1, stage.clock.monotonic()), true);
  });
}

test("Children of a source gets a second one from the reserve of the uplink where many lack a substream", () => {
  const { stage, child, below } = crowded();
  const all = [below, ...judgesOf(stage, child)];
  for (const judge of all) stage.says(judge, lacking(child));
  pass(stage, 100);
  const [weak, able, third] = [0.2, 1, 1].map((share) => proven(stage, share * BYTES_PER_S));
  for (const peer of [weak!, able!, third!]) stage.says(peer, { type: "subscribe", mask: 0x03, from: 6 });
  assertEquals([weak, able, third, child].map((one) => one!.childMask), [0, 0x01, 0, 0xff]);
});

test("Children of a source keeps a place for a second where many lack a substream, for members that others were long fed through", () => {
  const { stage, child, below } = crowded();
  const all = [below, ...judgesOf(stage, child)];
  pass(stage, POLICY.provenMs);
  stage.node.children.drop(child.peer, 0x01);
  for (const judge of all) stage.says(judge, lacking(child));
  pass(stage, 100);
  const able = proven(stage, BYTES_PER_S);
  const asks = (peer: Neighbour) => {
    stage.says(peer, { type: "subscribe", mask: 0x01, from: 6 });
    return peer.childMask & 0x01;
  };
  assertEquals([asks(able), asks(child)], [0, 0x01]);
  // The others are there already: nobody is waited for.
  assertEquals(asks(able), 0x01);
  stage.node.children.drop(child.peer, 0x01);
  stage.node.children.drop(able.peer, 0x01);
  assertEquals(asks(able), 0);
  pass(stage, POLICY.headStartMs);
  assertEquals(asks(able), 0x01);
});

test("Children of a source gives up places of the newest children for lack of uplink, but those of only children last", () => {
  const stage = new Stage({ role: "source", uplinkBytesPerS: 1.45 * BYTES_PER_S, random: seededRandom(1) });
  publish(stage, 5);
  const [first, second, below] = [1, 1, 1].map((share) => proven(stage, share * BYTES_PER_S));
  stage.says(first!, { type: "subscribe", mask: 0x7f, from: 6 });
  vouch(stage, below!, first!);
  pass(stage, 100);
  const [tried, last] = [4, 1].map((share) => proven(stage, share * BYTES_PER_S));
  const children = [first!, second!, tried!, last!];
  for (const [child, mask] of [[last!, 0x80], [second!, 0x01], [tried!, 0x06]] as const) {
    stage.says(child, { type: "subscribe", mask, from: 6 });
  }
  const masks = () => children.map(({ childMask }) => childMask);
  assertEquals(masks(), [0x7f, 0x01, 0x06, 0x80]);
  const { line } = stage.node.uploader.flight;
  const bytes = BLOCK_BYTES / 4;
  const arrival = { bytes, allBytes: bytes, aheadBytes: 8 * BLOCK_BYTES, waitedMs: 500, baseMs: 40 };
  let steps = 0;
  for (const [left, expected] of [[9, [0x7f, 0x01, 0, 0x80]], [8, [0x7f, 0, 0, 0x80]]] as const) {
    // Blocks wait here all the time, and little of them arrives.
    while (stage.node.childCount > left) {
      assert(steps < 40, "it gives up nothing");
      const link = children[steps++ % 2]!.peer.flight;
      line.arrived({ ...arrival, link, isSure: true, wasLimited: true }, stage.clock.monotonic());
      pass(stage, 100);
      vouch(stage, below!, first!);
    }
    assertEquals(masks(), [...expected]);
  }
});

for (const hasBranch of [true, false]) {
  test(`LiveNode as source gives a newcomer older pieces ${hasBranch ? "after pushes to others" : "like pushes"} when the substreams had ${hasBranch ? "a" : "no"} branch`, () => {
    const stage = new Stage({ role: "source", uplinkBytesPerS: 2 * BYTES_PER_S / POLICY.sourceLoadLimit + 1 });
    publish(stage, 4);
    const [first, second] = [proven(stage, BYTES_PER_S), proven(stage, BYTES_PER_S)];
    if (hasBranch) stage.says(first, { type: "subscribe", mask: 0xff, from: 5 });
    for (const seq of [5, 6]) publish(stage, seq);
    const { uploader } = stage.node;
    const [pushMs, allMs] = [uploader.pushDelayMs, uploader.queueDelayMs];
    stage.says(second, { type: "subscribe", mask: 0xff, from: 5 });
    assert(uploader.queueDelayMs > allMs);
    assertEquals(uploader.pushDelayMs > pushMs, !hasBranch);
  });
}

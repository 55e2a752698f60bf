/** How LiveNode chooses, keeps and leaves parents and neighbours. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { UnsubscribeReason } from "../../src/live/messages.ts";
import { GENUINE } from "../simulation/live-network.ts";
import { CLOSED, emptyPaths, UNFED } from "../../src/live/node/neighbour/place.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { type Neighbour, publish, source, Stage } from "./support.ts";

test("LiveNode asks nobody for what comes by itself, and leaves a parent that has come to be below it", () => {
  const { stage, peers: [parent, below] } = Stage.joined(2);
  stage.place(parent!, { depths: 9, bars: 0 });
  const own = parent!.link.of("place").find(({ pathMask }) => pathMask === 0xff)!.paths;
  stage.place(below!, { depths: 2, bars: 0, paths: own });
  stage.place(below!, { depths: 1, bars: 0, paths: null });
  for (const peer of [below!, parent!]) stage.says(peer, { type: "unsubscribe", mask: 0xff, reason: 0 });
  assertEquals([parent!.parentMask, below!.parentMask], [0xff, 0]);
  stage.pass(100);
  stage.place(parent!, { depths: 40, bars: 0, paths: own });
  stage.pass(100);
  assertEquals(parent!.parentMask, 0);
});

test("LiveNode leaves a source that is back to those who stood at the head of a branch, for a moment", () => {
  const { stage, peers: [parent] } = Stage.joined(1);
  stage.fill(parent!);
  const gone = stage.neighbour({ role: "source" });
  gone.peer.isSource = true;
  stage.window(gone, 10, 21);
  stage.place(gone, { depths: 1, bars: 0 });
  stage.pass(400);
  // It becomes the parent of one substream when it delivers of it.
  stage.says(parent!, { type: "unsubscribe", mask: 0x10, reason: 0 });
  stage.header(gone, 21);
  stage.node.block(gone.peer, 21, 0, GENUINE.subarray(0, 16_384));
  assertEquals(gone.parentMask, 0x10);
  stage.node.disconnected(gone.peer);
  stage.place(parent!, { depths: 255, bars: CLOSED });
  const back = stage.neighbour({ role: "source" });
  back.peer.isSource = true;
  stage.window(back, 10, 22);
  stage.place(back, { depths: 1, bars: 0 });
  stage.pass(300);
  assertEquals(back.parentMask, 0x10);
  stage.pass(1000);
  assertEquals(back.parentMask, 0xff);
});

test("LiveNode asks who takes the place of a parent that gets nothing for what it has missed", () => {
  const { stage, peers: [parent] } = Stage.joined(1);
  stage.fill(parent!);
  stage.place(parent!, { depths: 255, bars: CLOSED });
  const other = stage.neighbour();
  stage.window(other, 10, 25);
  stage.place(other, { depths: 3, bars: 0 });
  stage.pass(1000);
  const [asked] = other.link.of("subscribe");
  assertEquals([asked!.mask, asked!.from], [0xff, 21]);
});

test("LiveNode serves a displaced child until it has another parent, a second at most", () => {
  const stage = source(5, 160_000);
  // It can't pass a stream on: an only child that could would have the strong one tried beside it.
  const weak = stage.neighbour({ upBytesPerS: 40_000 });
  stage.says(weak, { type: "subscribe", mask: 0xff, from: 5 });
  stage.pass(3000);
  const strong = stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(strong, { type: "subscribe", mask: 0x01, from: 5 });
  assertEquals([weak.childMask, weak.pushMask], [0xfe, 0xff]);
  stage.pass(1100);
  assertEquals(weak.pushMask, 0xfe);
});

test("LiveNode tells its uplink once a probe shows it, and asks again who refuses what it asked before", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const { link } = peer!;
  /** Times that the peer was asked, after it has refused again. */
  const refused = () => {
    stage.says(peer!, { type: "unsubscribe", mask: 0xff, reason: UnsubscribeReason.full });
    return link.of("subscribe").length;
  };
  // Three PINGs on the idle line, then two bursts.
  for (const waitMs of [20, 20, 20, 100, 100, 100]) {
    stage.clock.advance(waitMs);
    stage.echoes(peer!);
    stage.node.uploader.flight.tick(stage.node.peers, stage.clock.monotonic());
  }
  assert(stage.node.uploader.isMeasured);
  assertEquals(link.of("place").at(-1)!.upBytesPerS, Math.round(stage.node.toldUpBytesPerS!));
  assertEquals([link.of("subscribe").length, refused(), refused()], [1, 2, 2]);
});

test("LiveNode keeps a parent that gave notice until another delivers", () => {
  const { stage, peers: [first] } = Stage.joined(1);
  stage.fill(first!);
  // Of piece 21, block 0 is of substream 4.
  stage.header(first!, 21);
  stage.node.block(first!.peer, 21, 0, GENUINE.subarray(0, 16384));
  const third = stage.neighbour();
  stage.window(third, 10, 22);
  stage.says(first!, { type: "unsubscribe", mask: 0x10, reason: UnsubscribeReason.full });
  stage.node.tick();
  assertEquals([first!.parentMask & 0x10, third.parentMask & 0x10], [0x10, 0x10]);
  stage.header(third, 23);
  stage.node.block(third.peer, 23, 0, GENUINE.subarray(0, 16384));
  stage.pass(1700);
  assertEquals([first!.parentMask & 0x10, third.parentMask & 0x10], [0, 0x10]);
});

test("LiveNode asks no neighbour that takes nobody, and prefers who is nearer to the source", () => {
  const { stage, peers } = Stage.joined(3, { uplinkBytesPerS: 0 });
  const [closed, deep, near] = peers;
  stage.place(closed!, { depths: 2, bars: CLOSED });
  stage.place(deep!, { depths: 60, bars: 0 });
  stage.place(near!, { depths: 3, bars: 0 });
  for (const peer of peers) stage.says(peer, { type: "unsubscribe", mask: 0xff, reason: 0 });
  assertEquals(peers.map(({ parentMask }) => parentMask), [0, 0, 0xff]);
});

test("LiveNode asks one that only says it is near the source for few substreams, until it has brought something", () => {
  const masks = (hasBrought: boolean) => {
    const { stage, peers } = Stage.joined(3, { uplinkBytesPerS: 0 });
    peers.forEach((peer, i) => stage.place(peer, { depths: i === 0 ? 1 : 12, bars: 0 }));
    if (hasBrought) stage.node.conduct.noteBrought(peers[0]!.peer);
    for (const peer of peers) stage.says(peer, { type: "unsubscribe", mask: 0xff, reason: 0 });
    return peers.map(({ parentMask }) => parentMask);
  };
  assertEquals(masks(true), [0xff, 0, 0]);
  const [claims, ...others] = masks(false);
  assert(claims! !== 0 && claims! !== 0xff);
  assertEquals(claims! | others[0]! | others[1]!, 0xff);
});

test("LiveNode asks one that brings nothing when it is to take over no more for a while, unless it has no parent", () => {
  const { stage, peers } = Stage.joined(3);
  stage.fill(peers[0]!);
  const liar = stage.neighbour();
  stage.window(liar, 10, 21);
  peers.forEach((peer) => stage.place(peer, { depths: 40, bars: 0 }));
  stage.place(liar, { depths: 1, bars: 0 });
  for (let seq = 21; seq < 40 && stage.node.conduct.of(liar.peer).barrenTimes === 0; seq++) {
    for (const { peer } of peers) stage.node.conduct.noteBrought(peer);
    stage.header(peers[0]!, seq);
    stage.piece(peers[0]!, seq);
    stage.pass(500);
  }
  assertEquals(stage.node.conduct.of(liar.peer).barrenTimes, 1);
  assert(stage.node.conduct.isBarren(liar.peer, stage.clock.monotonic()));
  for (const { peer } of peers) stage.node.disconnected(peer);
  stage.pass(3000);
  assert(stage.node.conduct.isBarren(liar.peer, stage.clock.monotonic()));
  assertEquals(liar.parentMask, 0xff);
});

test("LiveNode bans the peer whose PLACE has another number of trees", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const depths = new Uint8Array(3);
  stage.says(peer!, { type: "place", upBytesPerS: 1, depths, bars: depths, paths: emptyPaths(3), pathMask: 7 });
  assertEquals(peer!.link.closedWith?.code, "protocol_violation");
});

test("LiveNode parts first with the neighbour that was of no use for longest", () => {
  const { stage, peers: [first, second] } = Stage.joined(2);
  stage.fill(first!);
  const idle = stage.neighbour();
  stage.pass(1000);
  stage.neighbour();
  stage.feeds(first!, 0xf0);
  stage.feeds(second!, 0x0f);
  assertEquals(stage.node.expendable(), null);
  stage.pass(4000);
  assertEquals(stage.node.expendable(), idle.peer);
});

test("LiveNode parts with a neighbour that let it down before any other of no use", () => {
  const { stage, peers: [first] } = Stage.joined(1);
  stage.fill(first!);
  const [idle, liar] = [stage.neighbour(), stage.neighbour()];
  stage.pass(POLICY.settleMs + 500);
  stage.feeds(first!, 0xff);
  assertEquals(stage.node.expendable(), idle.peer);
  stage.node.conduct.noteBarren(liar.peer, stage.clock.monotonic());
  assertEquals(stage.node.expendable(), liar.peer);
});

test("LiveNode replaces a parent that says nothing for a second while the stream goes on, and asks it nothing more", () => {
  const { stage, peers: [gone, other, third] } = Stage.joined(3);
  stage.fill(other!);
  const had = gone!.parentMask;
  assert(had !== 0);
  // Nobody says anything: the broadcaster is silent, and the parent is as good as any.
  stage.clock.advance(3000);
  stage.node.tick();
  assertEquals(gone!.parentMask, had);
  stage.header(other!, 21);
  stage.pass(900, gone);
  assertEquals(gone!.parentMask, had);
  stage.header(other!, 22);
  stage.pass(300, gone);
  assertEquals(gone!.parentMask, 0);
  assertEquals(other!.parentMask | third!.parentMask, 0xff);
});

test("LiveNode takes the places of a child that nothing reaches for a second", () => {
  const stage = source(5);
  const child = stage.neighbour();
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  publish(stage, 5);
  stage.pass(900);
  assertEquals(child.childMask, 0xff);
  stage.pass(200);
  assertEquals([child.childMask, stage.node.childCount], [0, 0]);
});

/** Three neighbours. The first pushes what the others lack, except the substreams of `lacking`. */
function branchless(lacking: number): { stage: Stage; peers: Neighbour[]; run: (from: number, to: number) => void } {
  const { stage, peers } = Stage.joined(3);
  stage.fill(peers[0]!);
  const run = (from: number, to: number) => {
    for (let seq = from; seq <= to; seq++) {
      stage.header(peers[0]!, seq);
      for (let block = 0; block < 4; block++) {
        const substream = (4 * seq + block) % 8;
        if ((lacking & (1 << substream)) !== 0) continue;
        const parent = peers.find(({ parentMask }) => (parentMask & (1 << substream)) !== 0) ?? peers[0]!;
        stage.node.block(parent.peer, seq, 16_384 * block, GENUINE.subarray(0, 16_384));
      }
      stage.pass(500);
    }
  };
  return { stage, peers, run };
}

test("LiveNode leaves a parent whose tree nobody gets, by the blocks of other trees", () => {
  const { stage, peers, run } = branchless(0);
  run(21, 24);
  const parentOf = (substream: number) => stage.node.parents.branches[substream]!.parent;
  const had = parentOf(1)!;
  assert(had !== null);
  for (let seq = 25; seq <= 40 && parentOf(1) === had; seq++) {
    stage.header(peers[0]!, seq);
    for (let block = 0; block < 4; block++) {
      const substream = (4 * seq + block) % 8;
      const { peer } = peers.find((one) => one.peer === parentOf(substream)) ?? peers[0]!;
      if (substream !== 1) stage.node.block(peer, seq, 16_384 * block, GENUINE.subarray(0, 16_384));
    }
    // Nobody reports a whole piece.
    stage.pass(500);
    assert(parentOf(0) !== null && parentOf(2) !== null);
    assert(seq >= 28 || parentOf(1) === had, "it is left before it is overdue");
  }
  assert(parentOf(1) !== had);
  assert(had.link !== undefined && !stage.node.parents.mayAsk(had, 1, nowOf(stage)));
});

for (const [says, depth, waitsMs] of [["is fed", 3, 0], ["gets nothing itself", UNFED, POLICY.unfedMs]] as const) {
  test(`LiveNode asks another ${waitsMs} ms after a parent that says it ${says} has stopped`, () => {
    const { stage, peers, run } = branchless(0);
    for (const peer of peers) stage.place(peer, { depths: 3, bars: 0 });
    run(21, 24);
    const branches = stage.node.parents.branches;
    const had = peers.find(({ peer }) => peer === branches[1]!.parent)!;
    assert(had !== undefined);
    stage.place(had, { depths: depth, bars: 0 });
    let starvedMs: number | null = null;
    let seq = 25;
    for (let step = 0; branches[1]!.parent === had.peer && branches[1]!.next === null; step++) {
      assert(step < 200, "it asks nobody");
      if (step % 5 === 0) {
        stage.header(peers[0]!, seq);
        for (let block = 0; block < 4; block++) {
          const substream = (4 * seq + block) % 8;
          const { peer } = peers.find((one) => one.peer === branches[substream]!.parent) ?? peers[0]!;
          if (substream !== 1) stage.node.block(peer, seq, 16_384 * block, GENUINE.subarray(0, 16_384));
        }
        seq++;
      }
      stage.pass(100);
      if (stage.node.parents.depth(1) === UNFED) starvedMs ??= nowOf(stage);
    }
    const waited = nowOf(stage) - starvedMs!;
    assert(waited >= waitsMs && waited <= waitsMs + 200, `${waited} ms`);
    const { next } = branches[1]!;
    assert(next !== null && next.peer !== had.peer);
    const newest = stage.node.window.newest!.seq;
    const atSeq = (4 * newest + 1) % 8 === 1 ? newest : newest - 1;
    stage.node.block(next.peer, atSeq, 16_384, GENUINE.subarray(0, 16_384));
    assertEquals(branches[1]!.parent, next.peer);
    assertEquals(stage.node.conduct.of(had.peer).barrenTimes, says === "is fed" ? 1 : 0);
  });
}

test("LiveNode does not hold against the successor of a lost parent what that one did not bring", () => {
  const { stage, peers, run } = branchless(0);
  run(21, 24);
  const branch = stage.node.parents.branches[1]!;
  const had = branch.parent!;
  /** All but `had` push for half a second, from the first block of piece `seq` on. */
  const without = (seq: number) => {
    stage.header(peers[0]!, seq);
    for (let block = 0; block < 4; block++) {
      const { parent } = stage.node.parents.branches[(4 * seq + block) % 8]!;
      if (parent !== null && parent !== had) stage.node.block(parent, seq, 16_384 * block, GENUINE.subarray(0, 16_384));
    }
    stage.pass(500);
  };
  let seq = 25;
  while (branch.next === null) without(seq++);
  const { peer } = branch.next;
  stage.node.disconnected(had);
  assertEquals(branch.parent, peer);
  for (let i = 0; i < 2 * POLICY.parentLagMs / 500; i++) without(seq++);
  assertEquals([branch.parent === peer, branch.isProven, stage.node.conduct.of(peer).barrenTimes], [true, true, 0]);
});

test("LiveNode asks a parent that brings nothing at all less and less often", () => {
  const { stage, peers, run } = branchless(0xff);
  run(21, 27);
  const barren = peers.filter(({ peer }) => stage.node.conduct.of(peer).barrenTimes > 0);
  assert(barren.length > 0);
  for (const { peer } of barren) {
    const restMs = stage.node.conduct.of(peer).barrenUntilMs - nowOf(stage);
    assert(restMs > 5000 && restMs <= 10_000, `${restMs}`);
  }
});

function nowOf(stage: Stage): number {
  return stage.clock.monotonic();
}

test("LiveNode pulls a piece that a reader has due in a quarter of a second, though a parent may still bring it", () => {
  const { stage, peers: [parent] } = Stage.joined(1);
  stage.fill(parent!);
  const feed = stage.node.openFeed();
  feed.take(nowOf(stage));
  assert(feed.started);
  const dueMs = feed.dueMs(stage.headerOf(21));
  stage.pass(dueMs - 600 - nowOf(stage));
  stage.header(parent!, 21);
  stage.window(parent!, 10, 22);
  const asked = () => parent!.link.requests.filter(({ seq }) => seq === 21).length;
  stage.pass(300);
  assertEquals([dueMs - nowOf(stage), parent!.parentMask, asked()], [300, 0xff, 0]);
  stage.pass(100);
  assertEquals(asked(), 4);
});

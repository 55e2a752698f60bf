import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { UnsubscribeReason } from "../../src/live/messages.ts";
import { GENUINE } from "../simulation/live-network.ts";
import { CLOSED, emptyPaths, UNFED } from "../../src/live/node/place.ts";
import { type Neighbour, publish, source, Stage } from "./support.ts";

test("LiveNode tells a newcomer its window, the newest header and where to start", () => {
  const { link } = source(21).neighbour();
  const [window] = link.of("window");
  assertEquals([window!.base, window!.solid], [0, 21]);
  assertEquals(link.of("header").map(({ bytes }) => new DataView(bytes.slice().buffer).getUint32(4)), [18, 20]);
});

test("LiveNode joins at the last random access point behind the edge and asks for that at once", () => {
  const { stage, peers } = Stage.joined(3);
  assertEquals([stage.node.window.base, stage.node.window.newest?.seq], [16, 20]);
  const asked = peers.flatMap(({ link }) => link.requests.map(({ seq }) => seq));
  assert(asked.includes(16) && asked.every((seq) => seq >= 16 && seq <= 20));
});

test("LiveNode waits for three peers, but for no more than a second", () => {
  const stage = new Stage();
  const [one] = [stage.neighbour(), stage.neighbour(), stage.neighbour()];
  stage.window(one!, 10, 21);
  stage.header(one!, 20);
  stage.pass(900);
  assert(!stage.node.joined);
  stage.pass(300);
  assert(stage.node.joined);
});

test("LiveNode subscribes every substream to exactly one parent, spread over its peers", () => {
  const { peers } = Stage.joined(4);
  const masks = peers.map(({ link }) => link.of("subscribe").reduce((sum, { mask }) => sum | mask, 0));
  assertEquals(masks.reduce((sum, mask) => sum | mask, 0), 0xff);
  assertEquals(masks.reduce((sum, mask) => sum + mask, 0), 0xff);
  assert(masks.filter((mask) => mask !== 0).length >= 3);
});

test("LiveNode asks another parent when one refuses or leaves", () => {
  const { stage, peers: [first, second] } = Stage.joined(2);
  stage.says(first!, { type: "unsubscribe", mask: 0xff, reason: UnsubscribeReason.full });
  stage.node.tick();
  assertEquals(second!.peer.parentMask, 0xff);
  const third = stage.neighbour();
  stage.window(third, 10, 21);
  stage.node.disconnected(second!.peer);
  assertEquals(third.peer.parentMask, 0xff);
});

test("LiveNode passes a block on as soon as it verifies, header first", () => {
  const { stage, peers: [parent, child] } = Stage.joined(2);
  stage.header(parent!, 17);
  for (const seq of [16, 17]) stage.piece(parent!, seq);
  stage.piece(child!, 16);
  child!.peer.parentMask = 0;
  // Block 0 of piece 21 is of substream 4; what was not measured yet takes four subscriptions.
  stage.says(child!, { type: "subscribe", mask: 0xf0, from: 21 });
  child!.link.messages.length = 0;
  stage.header(parent!, 21);
  stage.node.block(parent!.peer, 21, 0, GENUINE.subarray(0, 16384));
  assert(child!.link.pieces.some(({ seq, offset }) => seq === 21 && offset === 0));
  assertEquals(child!.link.of("header").length, 1);
});

test("LiveNode refuses to push what does not reach it: circles would starve", () => {
  const { stage, peers: [parent, child] } = Stage.joined(2);
  parent!.peer.parentMask = 0xff;
  child!.peer.parentMask = 0;
  stage.place(parent!, { depths: UNFED, bars: CLOSED });
  stage.place(child!, { depths: UNFED, bars: CLOSED });
  stage.says(child!, { type: "subscribe", mask: 1, from: 21 });
  assertEquals(child!.link.of("unsubscribe").at(-1)?.mask, 1);
  assertEquals(child!.peer.childMask, 0);
});

test("LiveNode as source feeds each tree before any gets a second branch, up to its uplink", () => {
  const stage = source(5);
  const children = Array.from({ length: 4 }, () => stage.neighbour());
  for (const child of children) stage.says(child, { type: "subscribe", mask: 0x0f, from: 5 });
  assertEquals(children.map(({ peer }) => peer.childMask), [0x0f, 0, 0, 0]);
  stage.says(children[1]!, { type: "subscribe", mask: 0xff, from: 5 });
  assertEquals(children[1]!.peer.childMask & 0xf0, 0xf0);
  for (const child of children) stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  // 0.8 × 250,000 bytes a second carry 12 eighths of 125,000.
  assertEquals(stage.node.childCount, 12);
});

test("LiveNode prefers a child that can pass more on, and tells the other", () => {
  const stage = source(5, 160_000);
  const weak = stage.neighbour({ upBytesPerS: 60_000 });
  const strong = stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(weak, { type: "subscribe", mask: 0xff, from: 5 });
  stage.pass(11_000);
  stage.says(strong, { type: "subscribe", mask: 0x01, from: 5 });
  assertEquals([strong.peer.childMask, weak.peer.childMask], [1, 0xfe]);
  assertEquals(weak.link.of("unsubscribe").at(-1), { type: "unsubscribe", mask: 1, reason: UnsubscribeReason.full });
});

test("LiveNode sheds pushes that waited for more than two seconds", () => {
  const stage = source(5);
  const child = stage.neighbour();
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  for (let seq = 5; seq < 9; seq++) publish(stage, seq);
  stage.clock.advance(200);
  const before = child.link.pieces.length;
  stage.clock.advance(2100);
  stage.echoes(child);
  assertEquals(child.link.pieces.length, before);
  assert(stage.node.uploader.shedCount >= 10);
});

test("LiveNode pulls what a neighbour has had for 0.8 s, and cancels what a push overtakes", () => {
  const { stage, peers: [parent, other] } = Stage.joined(2);
  stage.fill(parent!);
  stage.header(parent!, 21);
  stage.window(other!, 10, 22);
  const asked = () => other!.link.requests.filter(({ seq }) => seq === 21).length;
  stage.pass(600);
  assertEquals(asked(), 0);
  stage.pass(400);
  assertEquals(asked(), 4);
  stage.piece(parent!, 21);
  assertEquals(other!.link.cancels.filter(({ seq }) => seq === 21).length, 4);
});

test("LiveNode pulls what no parent brings as soon as a neighbour has it", () => {
  const { stage, peers: [first, other] } = Stage.joined(2);
  stage.fill(first!);
  for (const peer of [first!, other!]) {
    stage.says(peer, { type: "unsubscribe", mask: 0xff, reason: UnsubscribeReason.full });
    stage.place(peer, { depths: 2, bars: CLOSED });
  }
  stage.header(first!, 21);
  stage.window(other!, 10, 22);
  stage.pass(200);
  assert(other!.link.requests.some(({ seq }) => seq === 21));
});

test("LiveNode serves little before its first block has arrived, then the whole stream and what it has carried", () => {
  const { stage, peers: [parent, child, other] } = Stage.joined(3);
  stage.fill(parent!);
  for (const peer of [child!, other!]) {
    stage.piece(peer, 20);
    peer.peer.parentMask = 0;
    stage.echoes(peer);
  }
  parent!.peer.parentMask = 0xff;
  stage.says(child!, { type: "subscribe", mask: 0xff, from: 22 });
  assertEquals(child!.peer.childMask, 0x07);
  // Piece 22 begins with substream 0.
  for (const seq of [21, 22]) {
    stage.header(parent!, seq);
    stage.piece(parent!, seq);
  }
  stage.clock.advance(50);
  stage.echoes(child!);
  stage.echoes(child!);
  stage.says(child!, { type: "subscribe", mask: 0xff, from: 22 });
  stage.says(other!, { type: "subscribe", mask: 0xff, from: 22 });
  // 48 KiB are three eighths of a second of the stream.
  assertEquals([child!.peer.childMask, stage.node.childCount], [0xff, 11]);
});

test("LiveNode takes what a broken link swallows for no measure of its uplink", () => {
  const stage = source(5, 160_000);
  const child = stage.neighbour();
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  publish(stage, 5);
  stage.clock.advance(60);
  stage.node.disconnected(child.peer);
  assertEquals([stage.node.uploader.uplinkBytesPerS, stage.node.uploader.pushDelayMs > 500], [160_000, false]);
});

test("LiveNode gives a new child the past after what all children wait for, and no place of another while they wait", () => {
  const stage = source(5, 160_000);
  const first = stage.neighbour();
  stage.says(first, { type: "subscribe", mask: 0xff, from: 5 });
  for (let seq = 5; seq < 7; seq++) publish(stage, seq);
  stage.delivers(first, 8);
  stage.node.disconnected(first.peer);
  const child = stage.neighbour({ upBytesPerS: 25_000 });
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  // One block of the past has left; what is published now goes before the other seven.
  publish(stage, 7);
  stage.delivers(child, 5);
  assertEquals(child.link.pieces.map(({ seq }) => seq), [5, 7, 7, 7, 7, 5]);
  stage.delivers(child, 17);
  for (let seq = 8; seq < 11; seq++) publish(stage, seq);
  const strong = stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(strong, { type: "subscribe", mask: 0x01, from: 11 });
  assertEquals([strong.peer.childMask, child.peer.childMask], [0, 0xff]);
});

test("LiveNode as the source gives a tree's first children what came before them first: all below wait for it", () => {
  const stage = source(5, 160_000);
  const child = stage.neighbour();
  stage.says(child, { type: "subscribe", mask: 0xff, from: 4 });
  publish(stage, 5);
  stage.delivers(child, 5);
  assertEquals(child.link.pieces.map(({ seq }) => seq), [4, 4, 4, 4, 5, 5]);
});

test("LiveNode as the source feeds no tree by a child that cannot pass anything on, unless there is no other", () => {
  const stage = source(5, 160_000);
  const leaf = stage.neighbour({ upBytesPerS: 25_000 });
  stage.says(leaf, { type: "subscribe", mask: 0x01, from: 5 });
  assertEquals(leaf.peer.childMask, 1);
  stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(leaf, { type: "subscribe", mask: 0x03, from: 5 });
  assertEquals(leaf.peer.childMask, 1);
});

test("LiveNode pushes nothing that the child has from another", () => {
  const stage = source(5);
  const child = stage.neighbour();
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  publish(stage, 5);
  stage.node.cancelled(child.peer, 5, 2 * 16_384);
  stage.delivers(child, 3);
  assertEquals(child.link.pieces.map(({ offset }) => offset / 16_384), [0, 1, 3]);
});

test("LiveNode tells its parents what it has from another", () => {
  const { stage, peers: [parent, other] } = Stage.joined(2);
  stage.fill(parent!);
  stage.header(parent!, 21);
  parent!.peer.parentMask |= 0x10;
  const pushed = [parent!, other!].filter(({ peer }) => (peer.parentMask & 0x10) !== 0);
  const from = pushed[0] === parent ? other! : parent!;
  stage.node.block(from.peer, 21, 0, GENUINE.subarray(0, 16_384));
  assert(pushed.some(({ link }) => link.cancels.some(({ seq, offset }) => seq === 21 && offset === 0)));
});

test("LiveNode asks nobody for what comes by itself, and leaves a parent that has come to be below it", () => {
  const { stage, peers: [parent, below] } = Stage.joined(2);
  stage.place(parent!, { depths: 9, bars: 0 });
  const own = parent!.link.of("place").find(({ paths }) => paths !== null)!.paths!;
  stage.place(below!, { depths: 2, bars: 0, paths: own });
  stage.place(below!, { depths: 1, bars: 0, paths: null });
  for (const peer of [below!, parent!]) stage.says(peer, { type: "unsubscribe", mask: 0xff, reason: 0 });
  assertEquals([parent!.peer.parentMask, below!.peer.parentMask], [0xff, 0]);
  stage.pass(100);
  stage.place(parent!, { depths: 40, bars: 0, paths: own });
  stage.pass(100);
  assertEquals(parent!.peer.parentMask, 0);
});

test("LiveNode leaves a source that is back to those who stood at the head of a branch, for a moment", () => {
  const { stage, peers: [parent] } = Stage.joined(1);
  stage.fill(parent!);
  const gone = stage.neighbour({ role: "source" });
  stage.window(gone, 10, 21);
  stage.place(gone, { depths: 1, bars: 0 });
  stage.pass(400);
  // It becomes the parent of one substream when it delivers of it.
  stage.says(parent!, { type: "unsubscribe", mask: 0x10, reason: 0 });
  stage.header(gone, 21);
  stage.node.block(gone.peer, 21, 0, GENUINE.subarray(0, 16_384));
  assertEquals(gone.peer.parentMask, 0x10);
  stage.node.disconnected(gone.peer);
  stage.place(parent!, { depths: 255, bars: CLOSED });
  const back = stage.neighbour({ role: "source" });
  stage.window(back, 10, 22);
  stage.place(back, { depths: 1, bars: 0 });
  stage.pass(300);
  assertEquals(back.peer.parentMask, 0x10);
  stage.pass(1000);
  assertEquals(back.peer.parentMask, 0xff);
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
  const weak = stage.neighbour({ upBytesPerS: 60_000 });
  const strong = stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(weak, { type: "subscribe", mask: 0xff, from: 5 });
  stage.pass(3000);
  stage.says(strong, { type: "subscribe", mask: 0x01, from: 5 });
  assertEquals([weak.peer.childMask, weak.peer.pushMask], [0xfe, 0xff]);
  stage.pass(1100);
  assertEquals(weak.peer.pushMask, 0xfe);
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
  assertEquals([first!.peer.parentMask & 0x10, third.peer.parentMask & 0x10], [0x10, 0x10]);
  stage.header(third, 23);
  stage.node.block(third.peer, 23, 0, GENUINE.subarray(0, 16384));
  stage.pass(1700);
  assertEquals([first!.peer.parentMask & 0x10, third.peer.parentMask & 0x10], [0, 0x10]);
});

test("LiveNode asks no neighbour that takes nobody, and prefers who is nearer to the source", () => {
  const { stage, peers } = Stage.joined(3, { uplinkBytesPerS: 0 });
  const [closed, deep, near] = peers;
  stage.place(closed!, { depths: 2, bars: CLOSED });
  stage.place(deep!, { depths: 60, bars: 0 });
  stage.place(near!, { depths: 3, bars: 0 });
  for (const peer of peers) stage.says(peer, { type: "unsubscribe", mask: 0xff, reason: 0 });
  assertEquals(peers.map(({ peer }) => peer.parentMask), [0, 0, 0xff]);
});

test("LiveNode asks one that only says it is near the source for few substreams, until it has brought something", () => {
  const masks = (hasBrought: boolean) => {
    const { stage, peers } = Stage.joined(3, { uplinkBytesPerS: 0 });
    peers.forEach((peer, i) => stage.place(peer, { depths: i === 0 ? 1 : 12, bars: 0 }));
    peers[0]!.peer.hasBrought = hasBrought;
    for (const peer of peers) stage.says(peer, { type: "unsubscribe", mask: 0xff, reason: 0 });
    return peers.map(({ peer }) => peer.parentMask);
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
  for (let seq = 21; seq < 40 && liar.peer.barrenTimes === 0; seq++) {
    for (const { peer } of peers) peer.hasBrought = true;
    stage.header(peers[0]!, seq);
    stage.piece(peers[0]!, seq);
    stage.pass(500);
  }
  assertEquals(liar.peer.barrenTimes, 1);
  assert(liar.peer.barrenUntilMs > stage.clock.monotonic());
  for (const { peer } of peers) stage.node.disconnected(peer);
  stage.pass(3000);
  assert(liar.peer.barrenUntilMs > stage.clock.monotonic());
  assertEquals(liar.peer.parentMask, 0xff);
});

test("LiveNode bans the peer whose PLACE has another number of trees", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const depths = new Uint8Array(3);
  stage.says(peer!, { type: "place", upBytesPerS: 1, depths, bars: depths, paths: emptyPaths(3) });
  assertEquals(peer!.link.closedWith?.code, "protocol_violation");
});

test("LiveNode parts first with the neighbour that was of no use for longest", () => {
  const { stage, peers: [first, second] } = Stage.joined(2);
  stage.fill(first!);
  const idle = stage.neighbour();
  stage.pass(1000);
  stage.neighbour();
  first!.peer.parentMask = 0xf0;
  second!.peer.parentMask = 0x0f;
  assertEquals(stage.node.expendable(), null);
  stage.pass(4000);
  assertEquals(stage.node.expendable(), idle.peer);
});

test("LiveNode replaces a parent that says nothing for a second while the stream goes on, and asks it nothing more", () => {
  const { stage, peers: [gone, other, third] } = Stage.joined(3);
  stage.fill(other!);
  const had = gone!.peer.parentMask;
  assert(had !== 0);
  // Nobody says anything: the broadcaster is silent, and the parent is as good as any.
  stage.clock.advance(3000);
  stage.node.tick();
  assertEquals(gone!.peer.parentMask, had);
  stage.header(other!, 21);
  stage.pass(900, gone);
  assertEquals(gone!.peer.parentMask, had);
  stage.header(other!, 22);
  stage.pass(300, gone);
  assertEquals(gone!.peer.parentMask, 0);
  assertEquals(other!.peer.parentMask | third!.peer.parentMask, 0xff);
});

test("LiveNode takes the places of a child that nothing reaches for one and a half seconds", () => {
  const stage = source(5);
  const child = stage.neighbour();
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  publish(stage, 5);
  stage.pass(1400);
  assertEquals(child.peer.childMask, 0xff);
  stage.pass(200);
  assertEquals([child.peer.childMask, stage.node.childCount], [0, 0]);
});

/** Three neighbours, of whom the first pushes what the others lack: all of it but for the substreams of `lacking`. */
function branchless(lacking: number): { stage: Stage; peers: Neighbour[]; run: (from: number, to: number) => void } {
  const { stage, peers } = Stage.joined(3);
  stage.fill(peers[0]!);
  const run = (from: number, to: number) => {
    for (let seq = from; seq <= to; seq++) {
      stage.header(peers[0]!, seq);
      for (let block = 0; block < 4; block++) {
        const substream = (4 * seq + block) % 8;
        if ((lacking & (1 << substream)) !== 0) continue;
        const parent = peers.find(({ peer }) => (peer.parentMask & (1 << substream)) !== 0) ?? peers[0]!;
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
  const { parents } = stage.node["parents"];
  const had = parents[1]!;
  assert(had !== null);
  for (let seq = 25; seq <= 40 && parents[1] === had; seq++) {
    stage.header(peers[0]!, seq);
    for (let block = 0; block < 4; block++) {
      const substream = (4 * seq + block) % 8;
      const { peer } = peers.find((one) => one.peer === parents[substream]) ?? peers[0]!;
      if (substream !== 1) stage.node.block(peer, seq, 16_384 * block, GENUINE.subarray(0, 16_384));
    }
    // Nobody tells of a whole piece.
    stage.pass(500);
    assert(parents[0] !== null && parents[2] !== null);
    assert(seq >= 28 || parents[1] === had, "it is left before it is overdue");
  }
  assert(parents[1] !== had);
  assert(had.link !== undefined && nowOf(stage) < had.refusedUntilMs[1]!);
});

test("LiveNode asks a parent that brings nothing at all less and less often", () => {
  const { stage, peers, run } = branchless(0xff);
  run(21, 27);
  const barren = peers.filter(({ peer }) => peer.barrenTimes > 0);
  assert(barren.length > 0);
  for (const { peer } of barren) {
    const restMs = peer.barrenUntilMs - nowOf(stage);
    assert(restMs > 5000 && restMs <= 10_000, `${restMs}`);
  }
});

function nowOf(stage: Stage): number {
  return stage.clock.monotonic();
}

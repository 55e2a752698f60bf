import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { UnsubscribeReason } from "../../src/live/messages.ts";
import { GENUINE } from "../simulation/live-network.ts";
import { CLOSED, UNFED } from "../../src/live/node/neighbour/place.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { publish, source, Stage } from "./support.ts";

test("LiveNode tells a newcomer its window, the newest header and where to start", () => {
  const { link } = source(20).neighbour();
  const [window] = link.of("window");
  assertEquals([window!.base, window!.solid], [0, 20]);
  assertEquals(link.of("header").map(({ bytes }) => new DataView(bytes.slice().buffer).getUint32(4)), [18, 19]);
});

test("LiveNode tells a newcomer where to start while that piece is still on its way to it", () => {
  const { stage } = Stage.joined(1);
  const { link } = stage.neighbour();
  assertEquals(link.of("header").map(({ bytes }) => new DataView(bytes.slice().buffer).getUint32(4)), [16, 20]);
  // A first piece that is not yet 0.3 s behind the edge is better than none.
  const { link: early } = source(1).neighbour();
  assertEquals(early.of("header").map(({ bytes }) => new DataView(bytes.slice().buffer).getUint32(4)), [0]);
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
  assertEquals(second!.parentMask, 0xff);
  const third = stage.neighbour();
  stage.window(third, 10, 21);
  stage.node.disconnected(second!.peer);
  assertEquals(third.parentMask, 0xff);
});

test("LiveNode passes a block on as soon as it verifies, header first", () => {
  const { stage, peers: [parent, child] } = Stage.joined(2);
  stage.header(parent!, 17);
  for (const seq of [16, 17]) stage.piece(parent!, seq);
  stage.piece(child!, 16);
  stage.feeds(child!, 0);
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
  stage.feeds(parent!, 0xff);
  stage.feeds(child!, 0);
  stage.place(parent!, { depths: UNFED, bars: CLOSED });
  stage.place(child!, { depths: UNFED, bars: CLOSED });
  stage.says(child!, { type: "subscribe", mask: 1, from: 21 });
  assertEquals(child!.link.of("unsubscribe").at(-1)?.mask, 1);
  assertEquals(child!.childMask, 0);
});

test("LiveNode as source feeds each tree before any gets a second branch, up to its uplink", () => {
  const stage = source(5);
  const children = Array.from({ length: 4 }, () => stage.neighbour({ upBytesPerS: 150_000 }));
  for (const child of children) stage.says(child, { type: "subscribe", mask: 0x0f, from: 5 });
  assertEquals(children.map(({ childMask }) => childMask), [0x0f, 0, 0, 0]);
  stage.says(children[1]!, { type: "subscribe", mask: 0xff, from: 5 });
  assertEquals(children[1]!.childMask & 0xf0, 0xf0);
  for (const child of children) stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  // 0.8 × 250,000 bytes a second carry 12 eighths of 125,000.
  assertEquals(stage.node.childCount, 12);
});

test("LiveNode keeps hardly a reserve while all have less uplink together than they need", () => {
  const stage = source(5);
  const children = Array.from({ length: 4 }, () => stage.neighbour({ upBytesPerS: 50_000 }));
  for (const child of children) stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  // 0.95 × 250,000 bytes a second carry 15 eighths of 125,000.
  assertEquals(stage.node.childCount, 15);
});

test("LiveNode prefers a child that can pass more on, and tells the other", () => {
  const stage = source(5, 160_000);
  // It can't pass a stream on: an only child that could would have the strong one tried beside it.
  const weak = stage.neighbour({ upBytesPerS: 40_000 });
  stage.says(weak, { type: "subscribe", mask: 0xff, from: 5 });
  stage.pass(11_000);
  const strong = stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(strong, { type: "subscribe", mask: 0x01, from: 5 });
  assertEquals([strong.childMask, weak.childMask], [1, 0xfe]);
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
  // Piece 19 has blocks of the same substreams as 21: the parents have begun to bring them.
  stage.piece(other!, 19);
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

test("LiveNode moves requests that a reader waits for to a neighbour that has the piece, after 0.4 s", () => {
  const { stage, peers } = Stage.joined(5);
  const first = peers.flatMap(({ link }) => link.requests);
  const other = stage.neighbour();
  stage.window(other, 10, 21);
  stage.pass(300);
  const before = other.link.requests.length;
  stage.pass(200);
  const keys = (requests: readonly { seq: number; offset: number }[]) =>
    requests.map(({ seq, offset }) => `${seq} ${offset}`);
  const moved = keys(peers.flatMap(({ link }) => link.cancels));
  const asked = keys(other.link.requests.slice(before));
  assert(moved.length > 0 && moved.every((key) => keys(first).includes(key)), `${moved}`);
  assert(asked.length > 0 && asked.every((key) => moved.includes(key)), `${asked}`);
});

test("LiveNode asks a neighbour with a slow line for one block at a time, and waits for it for longer", () => {
  const stage = new Stage();
  const [slow, quick] = [stage.neighbour(), stage.neighbour()];
  for (const [peer, upBytesPerS] of [[slow, 50_000], [quick, 1_000_000]] as const) {
    stage.place(peer, { upBytesPerS, depths: 2, bars: CLOSED });
    stage.window(peer, 10, 21);
    stage.header(peer, 16);
    stage.header(peer, 20, { flags: 0 });
  }
  stage.pass(100);
  assertEquals([slow.link.requests.length, quick.link.requests.length], [1, POLICY.requestsPerPeer]);
  const other = stage.neighbour();
  stage.window(other, 10, 21);
  stage.pass(500);
  assertEquals([slow.link.cancels.length, quick.link.cancels.length], [0, POLICY.requestsPerPeer]);
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
    stage.feeds(peer, 0);
    stage.echoes(peer);
  }
  stage.feeds(parent!, 0xff);
  stage.says(child!, { type: "subscribe", mask: 0xff, from: 22 });
  assertEquals(child!.childMask, 0x07);
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
  assertEquals([child!.childMask, stage.node.childCount], [0xff, 11]);
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
  stage.delivers(child, 6);
  const strong = stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(strong, { type: "subscribe", mask: 0x01, from: 11 });
  assertEquals([strong.childMask, child.childMask], [0, 0xff]);
});

test("LiveNode gives a newcomer what it needs to begin after a few pushes, if the swarm is small", () => {
  // Pushes before the request of a neighbour that has the pieces of [base, solid), among so many others.
  const pushesBefore = (base: number, solid: number, others = 0, connectedMs = 0): number => {
    const stage = source(5, 500_000);
    const child = stage.neighbour();
    stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
    for (let i = 0; i < others; i++) stage.neighbour();
    const newcomer = stage.neighbour();
    stage.window(newcomer, base, solid);
    stage.clock.advance(connectedMs);
    publish(stage, 5);
    stage.node.requested(newcomer.peer, 3, 0, 16384);
    for (let seq = 6; newcomer.link.pieces.length === 0 && seq < 24; seq++) {
      publish(stage, seq);
      for (let block = 0; block < 4; block++) {
        stage.clock.advance(24);
        stage.echoes(child);
      }
    }
    return child.link.pieces.length;
  };
  const soon = pushesBefore(3, 3);
  assert(soon <= 2 * POLICY.pushesPerNewcomer, `${soon}`);
  // One that plays, that has been there for long, or that has many others to ask.
  for (const late of [pushesBefore(1, 3), pushesBefore(3, 3, 0, POLICY.newcomerMs), pushesBefore(3, 3, 20)]) {
    assert(late >= POLICY.pushesPerPull, `${late}`);
  }
});

test("LiveNode gives a place of another while a piece that has just come waits: all its blocks come at once", () => {
  const stage = source(5, 160_000);
  const weak = stage.neighbour({ upBytesPerS: 25_000 });
  stage.says(weak, { type: "subscribe", mask: 0xff, from: 5 });
  stage.delivers(weak, 10);
  publish(stage, 5);
  const strong = stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(strong, { type: "subscribe", mask: 0x01, from: 6 });
  assertEquals([strong.childMask, stage.node.uploader.pushDelayMs > POLICY.busyMs], [0x01, true]);
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
  assertEquals(leaf.childMask, 1);
  stage.neighbour({ upBytesPerS: 500_000 });
  stage.says(leaf, { type: "subscribe", mask: 0x03, from: 5 });
  assertEquals(leaf.childMask, 1);
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
  stage.feeds(parent!, parent!.parentMask | 0x10);
  const pushed = [parent!, other!].filter(({ parentMask }) => (parentMask & 0x10) !== 0);
  const from = pushed[0] === parent ? other! : parent!;
  stage.node.block(from.peer, 21, 0, GENUINE.subarray(0, 16_384));
  assert(pushed.some(({ link }) => link.cancels.some(({ seq, offset }) => seq === 21 && offset === 0)));
});

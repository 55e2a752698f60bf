import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { FLAG_END } from "../../src/live/header.ts";
import { UnsubscribeReason } from "../../src/live/messages.ts";
import { GENUINE } from "../simulation/live-network.ts";
import { PIECE_BYTES, Stage } from "./support.ts";

/** A broadcaster with `count` pieces published. */
function source(count: number, uplinkBytesPerS = 250_000): Stage {
  const stage = new Stage({ role: "source", uplinkBytesPerS });
  for (let seq = 0; seq < count; seq++) publish(stage, seq);
  return stage;
}

function publish(stage: Stage, seq: number): void {
  stage.node.publish({ header: stage.headerOf(seq), data: GENUINE.subarray(0, PIECE_BYTES) });
}

test("LiveNode tells a newcomer its window, the newest header and where to start", () => {
  const { link } = source(21).neighbour();
  const [window] = link.of("window");
  assertEquals([window!.base, window!.solid], [0, 21]);
  assertEquals(link.of("header").map(({ bytes }) => new DataView(bytes.slice().buffer).getUint32(4)), [16, 20]);
});

test("LiveNode joins two seconds behind the edge and asks for that at once", () => {
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
  child!.peer.parentMask = 0;
  stage.says(child!, { type: "subscribe", mask: 0xff, from: 21 });
  child!.link.messages.length = 0;
  stage.header(parent!, 21);
  stage.node.block(parent!.peer, 21, 0, GENUINE.subarray(0, 16384));
  assert(child!.link.pieces.some(({ seq, offset }) => seq === 21 && offset === 0));
  assertEquals(child!.link.of("header").length, 1);
});

test("LiveNode refuses to push what does not reach it: circles would starve", () => {
  const { stage, peers: [child] } = Stage.joined(1);
  child!.peer.parentMask = 0;
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
  // 0.92 × 250,000 bytes a second carry 14 eighths of 125,000.
  assertEquals(stage.node.childCount, 14);
});

test("LiveNode prefers a child that can pass more on, and tells the other", () => {
  const stage = source(5, 140_000);
  const weak = stage.neighbour({ upBytesPerS: 25_000 });
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
  const before = child.link.pieces.length;
  stage.clock.advance(2100);
  stage.node.sent(32_768);
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

test("LiveFeed gives pieces in order, skips a gap when it is due and marks it", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const feed = stage.node.openFeed();
  stage.fill(peer!);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [16, 17, 18, 19, 20]);
  for (const seq of [21, 22, 23, 24]) stage.header(peer!, seq);
  for (const seq of [22, 23, 24]) stage.piece(peer!, seq);
  assertEquals(feed.take(stage.clock.monotonic()), []);
  stage.clock.advance(2500);
  const rest = feed.take(stage.clock.monotonic());
  assertEquals(rest.map(({ header, discontinuity }) => [header.seq, discontinuity]), [[22, true], [23, false], [
    24,
    false,
  ]]);
  assertEquals([feed.deliveredPieces, feed.skippedPieces, feed.ended], [8, 1, false]);
});

test("LiveFeed ends with the broadcast", () => {
  const stage = source(8);
  const feed = stage.node.openFeed();
  stage.node.publish({ header: stage.headerOf(8, { flags: FLAG_END }), data: GENUINE.subarray(0, PIECE_BYTES) });
  feed.take(stage.clock.monotonic());
  assert(feed.ended);
});

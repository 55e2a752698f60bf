import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { WANTS_TIME } from "../../src/live/messages.ts";
import { GENUINE } from "../simulation/live-network.ts";
import { type Neighbour, publish, source, Stage } from "./support.ts";

const BLOCK_BYTES = 16_384;

/** Block 0 of piece `seq`, as `from` pushes it, with a PING behind it. */
function pushed(stage: Stage, from: Neighbour, seq: number, block = 0): void {
  pushedAlone(stage, from, seq, block);
  stage.says(from, { type: "ping", nonce: WANTS_TIME });
}

function pushedAlone(stage: Stage, from: Neighbour, seq: number, block = 0): void {
  stage.node.block(from.peer, seq, BLOCK_BYTES * block, GENUINE.subarray(0, BLOCK_BYTES));
}

/** A viewer with two parents for all substreams. */
function twoParents(): { stage: Stage; quick: Neighbour; slow: Neighbour } {
  const { stage, peers: [quick, slow] } = Stage.joined(2);
  stage.fill(quick!);
  for (const peer of [quick!, slow!]) stage.feeds(peer, 0xff);
  return { stage, quick: quick!, slow: slow! };
}

test("Headerless has a parent leave out headers once one has been no news, and send them again", () => {
  const { stage, quick, slow } = twoParents();
  // Block 0 of odd pieces is of substream 4.
  for (let seq = 21; seq <= 23; seq += 2) {
    stage.header(quick, seq);
    pushed(stage, slow, seq);
  }
  assertEquals(slow.link.of("headers"), [{ type: "headers", lean: 0x10, seqs: [] }]);
  assertEquals(quick.link.of("headers"), []);
  for (let seq = 25; seq <= 61; seq += 2) {
    stage.header(slow, seq);
    pushed(stage, slow, seq);
  }
  assertEquals(slow.link.of("headers").at(-1), { type: "headers", lean: 0, seqs: [] });
});

test("Headerless keeps a parent's block until its header comes, for which that parent is asked", () => {
  const { stage, quick, slow } = twoParents();
  pushed(stage, quick, 21);
  pushed(stage, slow, 21, 1);
  assertEquals(quick.link.of("headers"), [{ type: "headers", lean: 0, seqs: [21] }]);
  assertEquals(slow.link.of("headers"), []);
  stage.header(slow, 21);
  assertEquals(stage.node.window.get(21)!.blocks.map((block) => block !== null), [true, true, false, false]);
});

test("Headerless has a tree bring headers again as soon as a block of it comes first", () => {
  const { stage, quick, slow } = twoParents();
  stage.header(quick, 21);
  for (const block of [0, 1]) pushed(stage, slow, 21, block);
  assertEquals(slow.link.of("headers").at(-1), { type: "headers", lean: 0x30, seqs: [] });
  pushed(stage, slow, 23);
  assertEquals(slow.link.of("headers").at(-1), { type: "headers", lean: 0x20, seqs: [23] });
  assertEquals(quick.link.of("headers"), []);
});

test("Headerless asks for a header at the next tick when the block that lacks it has no PING behind it", () => {
  const { stage, slow } = twoParents();
  pushedAlone(stage, slow, 21);
  assertEquals(slow.link.of("headers"), []);
  stage.pass(100);
  assertEquals(slow.link.of("headers"), [{ type: "headers", lean: 0, seqs: [21] }]);
});

test("Headerless asks another time for a header that does not come, and gives the block up after two seconds", () => {
  const { stage, quick } = twoParents();
  pushed(stage, quick, 21);
  stage.pass(1900);
  assertEquals(quick.link.of("headers").length, 10);
  stage.pass(1000);
  assertEquals(quick.link.of("headers").length, 10);
  stage.header(quick, 21);
  assertEquals(stage.node.window.get(21)!.missing, 4);
});

test("Headerless asks each sender of a block that waits in turn, as one of them may withhold the header", () => {
  const { stage, quick, slow } = twoParents();
  pushed(stage, quick, 21);
  pushed(stage, slow, 21, 1);
  assertEquals([quick.link.of("headers").length, slow.link.of("headers").length], [1, 0]);
  stage.pass(250);
  assertEquals([quick.link.of("headers").length, slow.link.of("headers").length], [1, 1]);
  stage.pass(200);
  assertEquals([quick.link.of("headers").length, slow.link.of("headers").length], [2, 1]);
});

test("Headerless keeps no block of a neighbour that is no parent, and few of one that is", () => {
  const { stage, quick, slow } = twoParents();
  stage.feeds(slow, 0);
  pushed(stage, slow, 21);
  stage.header(slow, 21);
  assertEquals(stage.node.window.get(21)!.missing, 4);
  for (let seq = 22; seq < 30; seq++) for (let block = 0; block < 4; block++) pushed(stage, quick, seq, block);
  for (let seq = 22; seq < 30; seq++) stage.header(quick, seq);
  const missing = Array.from({ length: 8 }, (_, i) => stage.node.window.get(22 + i)!.missing);
  assertEquals(missing, [0, 0, 0, 0, 4, 4, 4, 4]);
});

test("LiveNode leaves headers out for a child that has them, and sends the one that it asks for, once", () => {
  const stage = source(5);
  const child = stage.neighbour();
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  // Blocks 0 to 3 of odd pieces are of substreams 4 to 7.
  stage.says(child, { type: "headers", lean: 0xf0, seqs: [] });
  child.link.messages.length = 0;
  publish(stage, 5);
  stage.delivers(child, 4);
  assertEquals([child.link.pieces.length, child.link.of("header").length], [4, 0]);
  for (let i = 0; i < 2; i++) stage.says(child, { type: "headers", lean: 0xf0, seqs: [5, 99] });
  assertEquals(child.link.of("header").length, 1);
  publish(stage, 6);
  stage.delivers(child, 4);
  assertEquals(child.link.of("header").length, 2);
});

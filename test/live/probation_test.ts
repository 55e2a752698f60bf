import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { UnsubscribeReason } from "../../src/live/messages.ts";
import { GENUINE, POISON } from "../simulation/live-network.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { publish, source, Stage } from "./support.ts";

/** A node with pieces that met a poisoner, and a neighbour that has pieces too, has given nothing and subscribes. */
function onProbation() {
  const { stage, peers: [parent, child, poisoner] } = Stage.joined(3);
  stage.fill(parent!);
  stage.header(parent!, 21);
  stage.node.block(poisoner!.peer, 21, 0, POISON.subarray(0, 16384));
  stage.feeds(child!, 0);
  stage.feeds(parent!, 0xff);
  child!.peer.requests.clear();
  child!.link.requests.length = 0;
  stage.says(child!, { type: "subscribe", mask: 0x03, from: 21 });
  return { stage, child: child! };
}

test("LiveNode feeds a neighbour that has pieces once it has sent the beginning of one truly", () => {
  const { stage, child } = onProbation();
  const [{ seq, offset }] = child.link.requests as [{ seq: number; offset: number }];
  assertEquals(child.childMask, 0);
  stage.node.block(child.peer, seq, offset, GENUINE.subarray(0, 1024));
  assertEquals([child.childMask, child.link.closedWith], [3, undefined]);
});

test("LiveNode bans a neighbour that proves itself with false bytes, and refuses one that sends none", () => {
  const liar = onProbation();
  const [{ seq, offset }] = liar.child.link.requests as [{ seq: number; offset: number }];
  liar.stage.node.block(liar.child.peer, seq, offset, POISON.subarray(0, 1024));
  assertEquals(liar.child.link.closedWith?.code, "protocol_violation");
  const silent = onProbation();
  silent.stage.pass(1500);
  assertEquals(silent.child.link.of("unsubscribe").at(-1), {
    type: "unsubscribe",
    mask: 3,
    reason: UnsubscribeReason.full,
  });
  assertEquals([silent.child.childMask, silent.stage.node.probation.heldMask(silent.child.peer)], [0, 0]);
});

test("LiveNode asks a neighbour that says it is the source for a proof like any other", () => {
  const { stage } = onProbation();
  const claims = stage.neighbour({ role: "source" });
  stage.window(claims, 10, 21);
  stage.says(claims, { type: "subscribe", mask: 0x0c, from: 21 });
  assertEquals([claims.childMask, claims.link.requests.length], [0, 1]);
  const { seq, offset } = claims.link.requests[0]!;
  stage.node.block(claims.peer, seq, offset, GENUINE.subarray(0, POLICY.proofBytes));
  assertEquals(claims.childMask, 0x0c);
});

test("LiveNode accepts a proof that comes late, and bans only for false bytes", () => {
  for (const data of [GENUINE, POISON]) {
    const { stage, child } = onProbation();
    const [{ seq, offset }] = child.link.requests as [{ seq: number; offset: number }];
    stage.pass(2 * POLICY.requestTimeoutMs);
    assert(child.link.cancels.length > 0);
    // It was asked again at once.
    child.peer.requests.clear();
    stage.node.block(child.peer, seq, offset, data.subarray(0, 1024));
    assertEquals(child.peer.isProven, data === GENUINE);
    assertEquals(child.link.closedWith?.code, data === GENUINE ? undefined : "protocol_violation");
  }
});

test("LiveNode takes a proof for one after the same block came whole", () => {
  const { stage, child } = onProbation();
  const [{ seq, offset }] = child.link.requests as [{ seq: number; offset: number }];
  stage.node.block(child.peer, seq, offset, GENUINE.subarray(0, 16384));
  stage.node.block(child.peer, seq, offset, GENUINE.subarray(0, 1024));
  assertEquals([child.peer.isProven, child.link.closedWith], [true, undefined]);
});

test("LiveNode takes less of a block than it asks for as no proof", () => {
  const { stage, child } = onProbation();
  const [{ seq, offset }] = child.link.requests as [{ seq: number; offset: number }];
  stage.node.block(child.peer, seq, offset, GENUINE.subarray(0, 1));
  assertEquals([child.peer.isProven, child.childMask, child.link.closedWith], [false, 0, undefined]);
});

test("LiveNode answers the request for the beginning of a block at once, with so much", () => {
  const stage = source(5);
  const [child, asks] = [stage.neighbour(), stage.neighbour()];
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  for (let seq = 5; seq < 8; seq++) publish(stage, seq);
  assertEquals(stage.node.uploader.queueDelayMs > 250, true);
  stage.node.requested(asks.peer, 4, 16384, 16384);
  stage.node.requested(asks.peer, 4, 16384, 1024);
  stage.clock.advance(100);
  stage.echoes(child);
  assertEquals(asks.link.rejects, [{ seq: 4, offset: 16384 }]);
  assertEquals(asks.link.pieces.map(({ data }) => data.length), [1024]);
});

/** A wary source with a child that reports no piece, and was given the first block of piece 5 a second ago. */
function fedInAdvance() {
  const stage = source(5);
  const child = stage.neighbour();
  stage.says(child, { type: "subscribe", mask: 0xff, from: 5 });
  publish(stage, 5);
  assertEquals(child.childMask, 0xff);
  stage.pass(900);
  assertEquals(child.link.requests, []);
  stage.echoes(child);
  stage.pass(100);
  return { stage, child };
}

test("LiveNode asks a child without pieces for a block that it was given, and bans who answers falsely", () => {
  for (const data of [GENUINE, POISON]) {
    const { stage, child } = fedInAdvance();
    const [{ seq, offset }] = child.link.requests as [{ seq: number; offset: number }];
    assert(child.link.pieces.some((piece) => piece.seq === seq && piece.offset === offset));
    stage.node.block(child.peer, seq, offset, data.subarray(0, 1024));
    assertEquals(child.peer.isProven, data === GENUINE);
    assertEquals(child.link.closedWith?.code, data === GENUINE ? undefined : "protocol_violation");
  }
});

test("LiveNode takes its places from a child that gives nothing back for three seconds", () => {
  const { stage, child } = fedInAdvance();
  for (let times = 0; times < 29; times++) {
    for (const { seq, offset } of child.link.requests.splice(0)) stage.node.rejected(child.peer, seq, offset);
    stage.echoes(child);
    stage.pass(100);
  }
  assertEquals(child.childMask, 0xff);
  stage.pass(100);
  assertEquals([child.childMask, child.link.closedWith], [0, undefined]);
  assertEquals(child.link.of("unsubscribe").at(-1), {
    type: "unsubscribe",
    mask: 0xff,
    reason: UnsubscribeReason.full,
  });
  // It comes back for nothing while it gives nothing.
  stage.says(child, { type: "subscribe", mask: 0x01, from: 5 });
  assertEquals([child.childMask, stage.node.probation.heldMask(child.peer)], [0, 1]);
});

test("LiveNode as source asks a neighbour for a block that it has, and bans who answers falsely", () => {
  const stage = source(5);
  const [honest, poisoner] = [stage.neighbour(), stage.neighbour()];
  for (const peer of [honest, poisoner]) stage.window(peer, 0, 5);
  stage.pass(100);
  for (const [peer, data] of [[honest, GENUINE], [poisoner, POISON]] as const) {
    const [{ seq, offset }] = peer.link.requests as [{ seq: number; offset: number }];
    stage.node.block(peer.peer, seq, offset, data.subarray(0, 16384));
  }
  assertEquals([honest.peer.isProven, honest.link.closedWith], [true, undefined]);
  assertEquals(poisoner.link.closedWith?.code, "protocol_violation");
});

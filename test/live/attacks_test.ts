/** One test, at least, for each line of the protocol's list of attacks and answers. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { BOUNDS } from "../../src/live/node/neighbour/bounds.ts";
import { POLICY } from "../../src/live/node/policy.ts";
import { GENUINE, POISON } from "../simulation/live-network.ts";
import { seeded } from "../metainfo/support.ts";
import { publish, source, Stage } from "./support.ts";

test("LiveNode never forwards a forged header and bans the third", () => {
  const { stage, peers: [forger, other] } = Stage.joined();
  for (let i = 0; i < 3; i++) {
    assertEquals(forger!.link.closedWith, undefined);
    stage.header(forger!, 21 + i, { forged: true });
  }
  assertEquals(forger!.link.closedWith?.code, "protocol_violation");
  assertEquals(stage.node.counters.forgedHeaders, 3);
  assertEquals(stage.node.window.newest?.seq, 20);
  assert(!other!.link.of("header").some(({ bytes }) => bytes.at(-1) === 0));
});

test("LiveNode verifies at most fifty headers a second of one peer", () => {
  const { stage, peers: [flooder] } = Stage.joined();
  stage.clock.advance(1000);
  const before = stage.verifications;
  for (let seq = 21; seq < 221; seq++) stage.header(flooder!, seq);
  assertEquals(stage.verifications - before, BOUNDS.headersPerS);
  assertEquals(stage.node.counters.skippedVerifications, 150);
});

test("LiveNode does not verify the same header again", () => {
  const { stage, peers } = Stage.joined();
  const before = stage.verifications;
  for (let i = 0; i < 100; i++) for (const peer of peers) stage.header(peer, 20);
  assertEquals(stage.verifications, before);
});

test("LiveNode bans the sender of a bad block at once, and keeps nothing of it", () => {
  const { stage, peers: [poisoner, honest] } = Stage.joined();
  stage.node.block(poisoner!.peer, 16, 0, POISON.subarray(0, 16384));
  assertEquals(poisoner!.link.closedWith?.code, "protocol_violation");
  assertEquals(honest!.link.closedWith, undefined);
  assertEquals(stage.node.window.get(16)?.blocks[0], null);
  stage.node.block(honest!.peer, 16, 0, GENUINE.subarray(0, 16384));
  assert(stage.node.window.get(16)?.blocks[0] != null);
});

test("LiveNode bans the sender of a block that fits no piece", () => {
  for (const [offset, length] of [[100, 16384], [0, 16383], [65536, 16384], [16384 * 9, 5]] as const) {
    const { stage, peers: [peer] } = Stage.joined();
    stage.node.block(peer!.peer, 16, offset, GENUINE.subarray(0, length));
    assertEquals(peer!.link.closedWith?.code, "protocol_violation");
  }
});

test("LiveNode drops replayed headers: older epochs, older than the window, times that do not grow", () => {
  const { stage, peers: [replayer] } = Stage.joined();
  const before = stage.verifications;
  stage.header(replayer!, 5);
  stage.header(replayer!, 30, { epoch: 0 });
  stage.header(replayer!, 30, { ageMs: 60_000 });
  stage.header(replayer!, 3, { epoch: 2, ageMs: 60_000 });
  assertEquals(stage.verifications, before);
  assertEquals([stage.node.window.newest?.seq, stage.node.window.epoch], [20, 1]);
  assertEquals(replayer!.link.closedWith, undefined);
});

test("LiveNode follows a higher epoch whose time has grown", () => {
  const { stage, peers: [peer] } = Stage.joined();
  stage.header(peer!, 40, { epoch: 2 });
  assertEquals([stage.node.window.epoch, stage.node.window.base], [2, 40]);
});

test("LiveNode keeps searching when the newest header is more than 30 s old", () => {
  const stage = new Stage();
  const replayers = [stage.neighbour(), stage.neighbour(), stage.neighbour()];
  for (const peer of replayers) {
    stage.window(peer, 10, 21);
    stage.header(peer, 20, { ageMs: 31_000 });
  }
  stage.pass(3000);
  assert(!stage.node.joined);
  const honest = stage.neighbour();
  stage.window(honest, 10, 21);
  stage.header(honest, 20);
  stage.pass(300);
  assert(stage.node.joined);
});

test("LiveNode joins at the highest verified place when others replay an older one", () => {
  const stage = new Stage();
  const peers = [stage.neighbour(), stage.neighbour(), stage.neighbour()];
  for (const [i, peer] of peers.entries()) {
    stage.window(peer, 0, i === 2 ? 21 : 9);
    stage.header(peer, i === 2 ? 20 : 8);
  }
  stage.node.tick();
  assertEquals(stage.node.window.newest?.seq, 20);
});

test("LiveNode snubs a peer whose WINDOW was false: 1.5 s unserved, then others are asked", () => {
  const { stage, peers: [liar] } = Stage.joined(1);
  stage.pass(100);
  assert(liar!.link.requests.length > 0);
  stage.pass(POLICY.requestTimeoutMs + 100);
  assert(stage.node.conduct.isSnubbed(liar!.peer, stage.clock.monotonic()));
  const asked = liar!.link.requests.length;
  const honest = stage.neighbour();
  stage.window(honest, 10, 21);
  stage.pass(1000);
  assertEquals(liar!.link.requests.length, asked);
  assert(honest.link.requests.length > 0);
});

test("LiveNode looks no further ahead than it may when a WINDOW claims the future", () => {
  const { stage, peers: [liar] } = Stage.joined(1);
  stage.window(liar!, 10, 2 ** 31);
  stage.pass(1000);
  assert(stage.node.window.get(20 + POLICY.leastPiecesInReach) !== undefined);
  assertEquals(stage.node.window.get(21 + POLICY.leastPiecesInReach), undefined);
});

/** The steps that `run` makes the window of `stage` look for pieces. */
function looksFor(stage: Stage, run: () => void): number {
  const { window } = stage.node;
  const want = window.want.bind(window);
  let looks = 0;
  window.want = (seq) => {
    looks++;
    return want(seq);
  };
  run();
  window.want = want;
  return looks;
}

test("LiveNode looks at few WINDOWs of a flood, and at the last of them in the end", () => {
  const { stage, peers: [flooder] } = Stage.joined();
  const looks = looksFor(stage, () => {
    for (let i = 0; i < 100; i++) {
      stage.window(flooder!, 10, 61);
      stage.window(flooder!, 10, 10);
    }
    stage.window(flooder!, 10, 81);
  });
  // Two of three had a look for each of the forty pieces.
  assert(looks <= BOUNDS.windowsPerS * 40, `${looks}`);
  // All but those and the last, which is still to be looked at.
  assertEquals(stage.node.counters.skippedWindows, 201 - BOUNDS.windowsPerS - 1);
  assertEquals(stage.node.window.get(80), undefined);
  stage.pass(200);
  assert(stage.node.window.get(80) !== undefined);
  assertEquals(flooder!.link.closedWith, undefined);
});

test("LiveNode bans who sends more WINDOWs than a member could have, however long they were under way", () => {
  const { stage, peers: [flooder, member] } = Stage.joined();
  let sent = 0;
  const tell = () => stage.window(member!, 10, 21 + ++sent);
  // As often as a member may, for a minute; then its link stands still for half a minute, and brings all at once.
  for (let ms = 0; ms < 60_000; ms += 100) {
    stage.pass(100);
    if (ms % POLICY.windowIntervalMs === 0) tell();
  }
  stage.clock.advance(35_000);
  for (let ms = 0; ms < 35_000; ms += POLICY.windowIntervalMs) tell();
  assertEquals(member!.link.closedWith, undefined);

  const connectedS = (stage.clock.monotonic() - flooder!.peer.connectedMs) / 1000;
  const most = BOUNDS.windowBacklog + BOUNDS.windowsPerS * connectedS;
  for (let i = 1; i < most; i++) stage.window(flooder!, 10, 21);
  assertEquals(flooder!.link.closedWith, undefined);
  stage.window(flooder!, 10, 21);
  stage.window(flooder!, 10, 21);
  assertEquals(flooder!.link.closedWith?.code, "protocol_violation");
  assert(!stage.node.peers.has(flooder!.peer));
});

test("LiveNode queues at most 64 requests of a peer and rejects the rest", () => {
  // A line so quick that no request is rejected for want of it.
  const stage = source(21, 50_000_000);
  const flooder = stage.neighbour();
  for (let i = 0; i < 500; i++) stage.node.requested(flooder.peer, 16, 16384 * (i % 4), 16384);
  assertEquals(flooder.link.pieces.length, 2);
  assertEquals(flooder.link.rejects.length, 500 - BOUNDS.requestQueueLimit - flooder.link.pieces.length);
  stage.node.requested(flooder.peer, 99, 0, 16384);
  stage.node.requested(flooder.peer, 16, 5, 16384);
  stage.node.requested(flooder.peer, 16, 0, 1 << 17);
  assertEquals(flooder.link.rejects.length, 503 - BOUNDS.requestQueueLimit - flooder.link.pieces.length);
});

test("LiveNode bans the sender of malformed or giant messages", () => {
  for (const bytes of [[], [0], [2, 255], [1, 2, 3], new Array<number>(3000).fill(1)]) {
    const { stage, peers: [peer] } = Stage.joined();
    stage.node.message(peer!.peer, new Uint8Array(bytes));
    assertEquals(peer!.link.closedWith?.code, "protocol_violation");
  }
});

test("LiveNode gives what is old once to who subscribes again and again", () => {
  for (const leaves of [false, true]) {
    const stage = source(10, 10_000_000);
    const { peer, link } = stage.neighbour();
    stage.says({ peer }, { type: "subscribe", mask: 0xff, from: 0 });
    for (let i = 0; i < 100; i++) {
      if (leaves) stage.says({ peer }, { type: "unsubscribe", mask: 0xff, reason: 0 });
      stage.says({ peer }, { type: "subscribe", mask: 0xff, from: 0 });
      stage.clock.advance(10);
      stage.echoes({ peer, link });
    }
    const blocks = new Set(link.pieces.map(({ seq, offset }) => `${seq} ${offset}`));
    assertEquals([blocks.size, link.pieces.length], [7 * 4, 7 * 4]);
    // What is new comes as to any child.
    publish(stage, 10);
    assertEquals(link.pieces.filter(({ seq }) => seq === 10).length > 0, true);
  }
});

test("LiveNode echoes at most ten pings a second", () => {
  const { stage, peers: [pinger] } = Stage.joined();
  const before = pinger!.link.of("ping").length;
  for (let i = 0; i < 200; i++) stage.says(pinger!, { type: "ping", nonce: 1n << 60n });
  assertEquals(pinger!.link.of("ping").length - before, BOUNDS.pongsPerS);
});

test("LiveNode holds few blocks for a header that is still being verified", () => {
  const verdicts: ((genuine: boolean) => void)[] = [];
  const { stage, peers: [peer] } = Stage.joined(1, {
    verifier: {
      header: (header, done) => void (header.seq <= 20 ? done(true) : verdicts.push(done)),
      block: (_data, _hash, done) => done(true),
    },
  });
  stage.header(peer!, 21);
  for (let i = 0; i < 1000; i++) stage.node.block(peer!.peer, 21, 0, GENUINE.subarray(0, 16384));
  const droppedBytes = stage.node.counters.duplicateBytes;
  assertEquals(droppedBytes, 16384 * (1000 - BOUNDS.waitingBlockLimit));
  verdicts[0]!(true);
  assertEquals(stage.node.counters.duplicateBytes - droppedBytes, 16384 * (BOUNDS.waitingBlockLimit - 1));
  assert(stage.node.window.get(21)?.blocks[0] != null);
});

test("LiveNode survives random messages and blocks", () => {
  const random = seeded(21);
  const { stage } = Stage.joined();
  for (let round = 0; round < 5000; round++) {
    const peer = stage.neighbour();
    const bytes = new Uint8Array(Math.floor(random() * 40)).map(() => random() * 256);
    if (bytes.length > 0) bytes[0] = Math.floor(random() * 6);
    stage.node.message(peer.peer, bytes);
    stage.node.block(
      peer.peer,
      Math.floor(random() * 40),
      16384 * Math.floor(random() * 5),
      GENUINE.subarray(0, 16384),
    );
    stage.node.requested(peer.peer, Math.floor(random() * 40), Math.floor(random() * 70_000), 16384);
    if (round % 50 === 0) stage.pass(100);
    stage.node.disconnected(peer.peer);
  }
  assert(stage.node.peers.size <= 3);
});

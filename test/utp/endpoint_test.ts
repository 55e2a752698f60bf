import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { hasCode } from "../../src/errors.ts";
import { decodePacket, encodePacket, PACKET } from "../../src/utp/packet.ts";
import { newToken } from "../../src/utp/utp-endpoint.ts";
import { noise } from "../support/random.ts";
import type { Nat } from "./nat-network.ts";
import { Received, UtpLab } from "./support.ts";

const [A, B, C] = ["198.51.100.1", "203.0.113.1", "192.0.2.1"];

const CASES: { a: Nat; b: Nat; connects: boolean }[] = [
  { a: "cone", b: "cone", connects: true },
  { a: "none", b: "cone", connects: true },
  { a: "none", b: "symmetric", connects: true },
  { a: "symmetric", b: "none", connects: true },
  { a: "lenient", b: "symmetric", connects: true },
  { a: "symmetric", b: "lenient", connects: true },
  { a: "symmetric", b: "cone", connects: false },
  { a: "cone", b: "symmetric", connects: false },
  { a: "symmetric", b: "symmetric", connects: false },
];

for (const { a, b, connects } of CASES) {
  test(`UtpEndpoint.punch() ${connects ? "connects" : "ends with timeout"}: NAT of one end ${a}, of the other ${b}`, async () => {
    const lab = new UtpLab();
    const [endA, endB, common] = [lab.end(A, a), lab.end(B, b), lab.end(C)];
    const seenA = await lab.seenBy(common, endA, C);
    const seenB = await lab.seenBy(common, endB, C);
    const results = await lab.punch([endA, seenA], [endB, seenB]);
    if (!connects) {
      for (const result of results) assert(result.status === "rejected" && hasCode(result.reason, "timeout"));
    } else {
      const [one, other] = results.map((result) => result.status === "fulfilled" ? result.value : null);
      const received = new Received(other!);
      new Received(one!);
      one!.write(noise(50_000));
      await lab.clock.advanceAsync(2_000);
      assertEquals(received.all, noise(50_000));
    }
    for (const end of [endA, endB, common]) end.endpoint.close();
    await lab.clock.advanceAsync(100);
    assertEquals(lab.clock.pendingTimers, 0);
  });
}

test("UtpEndpoint.punch() connects though the first datagrams are lost", async () => {
  const lab = new UtpLab({ loss: 0.3 });
  let connected = 0;
  for (let i = 0; i < 20; i++) {
    const [a, b] = [lab.end(`198.51.100.${i}`, "none"), lab.end(`203.0.113.${i}`, "none")];
    const results = await lab.punch(
      [a, { host: `198.51.100.${i}`, port: await a.endpoint.bind() }],
      [b, { host: `203.0.113.${i}`, port: await b.endpoint.bind() }],
    );
    if (results.every(({ status }) => status === "fulfilled")) connected++;
  }
  assert(connected >= 19, `${connected} of 20`);
});

test("UtpEndpoint replies to no datagram of a stranger but a SYN", async () => {
  const lab = new UtpLab();
  const target = lab.end(A);
  const port = await target.endpoint.bind();
  const stop = target.endpoint.expect(newToken(), () => assert(false, "not that token"))!;
  const stranger = await lab.network.machine(C).bind({});
  const plain = { timestampUs: 1, timestampDifferenceUs: 0, windowBytes: 1000, seq: 1, ack: 1, selectiveAck: null };
  for (const type of Object.values(PACKET)) {
    if (type === PACKET.syn) continue;
    for (let connectionId = 0; connectionId < 50; connectionId++) {
      const packet = { ...plain, type, connectionId, payload: noise(type === PACKET.data ? 100 : 0) };
      await stranger.send(encodePacket(packet), { host: A, port });
    }
  }
  await stranger.send(new TextEncoder().encode("live01234567"), { host: A, port });
  for (let i = 0; i < 200; i++) await stranger.send(noise(i, i), { host: A, port });
  const sent = lab.network.sent;
  await lab.clock.advanceAsync(5_000);
  assertEquals(lab.network.sent, sent);
  stop();
});

test("UtpEndpoint.punch() sends eight small datagrams at most to an end that is not there, and stops when told to", async () => {
  const lab = new UtpLab();
  for (const isInitiator of [true, false]) {
    const { endpoint } = lab.end(A);
    await endpoint.bind();
    const before = lab.network.sent;
    const address = { host: B, port: 9 };
    const ending = new AbortController();
    const tried = endpoint.punch({ token: newToken(), isInitiator, address, signal: ending.signal }).catch((error) =>
      error
    );
    await lab.clock.advanceAsync(10_000);
    assert(hasCode(await tried, "timeout"));
    assertEquals(lab.network.sent - before, 8);
    const second = endpoint.punch({ token: newToken(), isInitiator, address, signal: ending.signal }).catch((error) =>
      error
    );
    await lab.clock.advanceAsync(120);
    ending.abort();
    assert(hasCode(await second, "aborted"));
    await lab.clock.advanceAsync(10_000);
    assertEquals(lab.network.sent - before, 10);
  }
});

test("UtpEndpoint takes 16 arrangements and 64 tokens at once", async () => {
  const lab = new UtpLab();
  const { endpoint } = lab.end(A);
  await endpoint.bind();
  const { signal } = new AbortController();
  const tries = Array.from({ length: 17 }, (_, i) => {
    const token = newToken();
    return endpoint.punch({ token, isInitiator: true, address: { host: `203.0.113.${i}`, port: 9 }, signal })
      .catch((error) => error);
  });
  assert(hasCode(await tries[16], "too_busy"));
  const stops = Array.from({ length: 65 }, () => endpoint.expect(newToken(), () => {}));
  assertEquals([stops[63] === null, stops[64] === null], [false, true]);
  stops[0]!();
  assert(endpoint.expect(newToken(), () => {}) !== null);
  await lab.clock.advanceAsync(10_000);
  for (const tried of tries) await tried;
});

function synOf(connectionId: number): Uint8Array {
  const none = { timestampUs: 1, timestampDifferenceUs: 0, windowBytes: 0, ack: 0, selectiveAck: null };
  return encodePacket({ ...none, type: PACKET.syn, connectionId, seq: 7_000, payload: new Uint8Array(0) });
}

test("UtpEndpoint refuses a stranger's SYN by its own id, in no more bytes", async () => {
  const lab = new UtpLab();
  const [end, stranger] = [lab.end(A), lab.network.machine(B, "none")];
  const to = { host: A, port: await end.endpoint.bind() };
  const socket = await stranger.bind({});
  const replies: Uint8Array[] = [];
  socket.onMessage((data) => void replies.push(data.slice()));
  const syn = synOf(54_321);
  await socket.send(syn, to);
  await lab.clock.advanceAsync(1_000);
  assertEquals(replies.length, 1);
  assert(replies[0]!.length <= syn.length);
  const { type, connectionId, ack } = decodePacket(replies[0]!)!;
  assertEquals({ type, connectionId, ack }, { type: PACKET.reset, connectionId: 54_321, ack: 7_000 });
  end.endpoint.close();
});

test("UtpEndpoint refuses ten SYNs of an address at once, and a hundred of all together", async () => {
  const lab = new UtpLab();
  const end = lab.end(A);
  const to = { host: A, port: await end.endpoint.bind() };
  const counts = new Map<string, number>();
  for (let i = 0; i < 30; i++) {
    const host = `192.0.2.${i + 1}`;
    const socket = await lab.network.machine(host, "none").bind({});
    socket.onMessage(() => void counts.set(host, (counts.get(host) ?? 0) + 1));
    for (let id = 0; id < 100; id++) await socket.send(synOf(id), to);
  }
  await lab.clock.advanceAsync(1_000);
  const all = [...counts.values()];
  assertEquals(Math.max(...all), 10);
  assert(all.reduce((sum, count) => sum + count, 0) <= 100 + 50, `${all}`);
  end.endpoint.close();
});

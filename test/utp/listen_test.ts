import { test } from "node:test";
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { hasCode } from "../../src/errors.ts";
import type { SocketAddress } from "../../src/ports.ts";
import { decodePacket, encodePacket, PACKET, type UtpPacket } from "../../src/utp/packet.ts";
import type { UtpConnection } from "../../src/utp/utp-connection.ts";
import { noise } from "../support/random.ts";
import { type End, Received, UtpLab } from "./support.ts";

const [A, B] = ["198.51.100.1", "203.0.113.1"];
const PLAIN: UtpPacket = {
  type: PACKET.syn,
  connectionId: 700,
  timestampUs: 1,
  timestampDifferenceUs: 0,
  windowBytes: 100_000,
  seq: 7_000,
  ack: 0,
  selectiveAck: null,
  payload: new Uint8Array(0),
};

/** An end that listens, and the connections that came in. */
class Listening {
  readonly end: End;
  readonly accepted: UtpConnection[] = [];
  readonly received: Received[] = [];

  constructor(lab: UtpLab, host: string) {
    this.end = lab.end(host);
    this.end.endpoint.listen((connection) => {
      this.accepted.push(connection);
      this.received.push(new Received(connection));
    });
  }

  bind(): Promise<number> {
    return this.end.endpoint.bind();
  }
}

/** A socket that speaks in single packets. */
async function speaker(lab: UtpLab, host: string, to: SocketAddress) {
  const socket = await lab.network.machine(host, "none").bind({});
  const replies: UtpPacket[] = [];
  socket.onMessage((data) => void replies.push(decodePacket(data)!));
  return {
    replies,
    send: (packet: Partial<UtpPacket>) => socket.send(encodePacket({ ...PLAIN, ...packet }), to),
  };
}

const PATHS: [string, { loss?: number; jitterMs?: number }][] = [
  ["a clean path", {}],
  ["15 % loss and overtaking", { loss: 0.15, jitterMs: 15 }],
];
for (const [name, path] of PATHS) {
  test(`UtpEndpoint.connect() reaches an end that listens over ${name}, and carries bytes both ways`, async () => {
    const lab = new UtpLab(path);
    const listening = new Listening(lab, A);
    const port = await listening.bind();
    const { endpoint } = lab.end(B);
    const dialled = endpoint.connect({ host: A, port }, new AbortController());
    await lab.clock.advanceAsync(2_000);
    const connection = await dialled;
    const received = new Received(connection);
    connection.write(noise(30_000));
    await lab.clock.advanceAsync(10_000);
    assertEquals(listening.accepted.length, 1);
    assertEquals(listening.received[0]!.all, noise(30_000));
    listening.accepted[0]!.write(noise(20_000, 2));
    await lab.clock.advanceAsync(10_000);
    assertEquals(received.all, noise(20_000, 2));
    for (const end of [endpoint, listening.end.endpoint]) end.close();
    await lab.clock.advanceAsync(100);
    assertEquals(lab.clock.pendingTimers, 0);
  });
}

test("UtpEndpoint.connect() fails at once when refused, after 2.5 s without a reply, and when told to stop", async () => {
  const lab = new UtpLab();
  const refusing = lab.end(A);
  const port = await refusing.endpoint.bind();
  const { endpoint } = lab.end(B);
  await endpoint.bind();
  const stopping = new AbortController();
  const errors: unknown[] = [];
  const dial = (address: SocketAddress, options: { signal: AbortSignal }) =>
    endpoint.connect(address, options).catch((error) => errors.push(error));
  void dial({ host: A, port }, new AbortController());
  await lab.clock.advanceAsync(100);
  assert(hasCode(errors[0], "connection_failed"));
  const sent = lab.network.sent;
  void dial({ host: "192.0.2.9", port: 9 }, new AbortController());
  await lab.clock.advanceAsync(2_600);
  assert(hasCode(errors[1], "timeout"));
  assertEquals(lab.network.sent - sent, 3);
  void dial({ host: "192.0.2.9", port: 9 }, stopping);
  await lab.clock.advanceAsync(10);
  stopping.abort();
  await lab.clock.advanceAsync(10);
  assert(hasCode(errors[2], "aborted"));
  endpoint.close();
  refusing.endpoint.close();
  await lab.clock.advanceAsync(100);
  assertEquals(lab.clock.pendingTimers, 0);
});

test("UtpEndpoint accepts a connection when a second packet shows that its reply arrived, not before", async () => {
  const lab = new UtpLab();
  const listening = new Listening(lab, A);
  const { replies, send } = await speaker(lab, B, { host: A, port: await listening.bind() });
  const step = () => lab.clock.advanceAsync(100);
  await send({});
  await send({});
  await step();
  const [first, again] = replies;
  assertEquals([first!.type, first!.connectionId, first!.ack], [PACKET.state, 700, 7_000]);
  assertEquals(again!.seq, first!.seq, "a repeated SYN gets the same number");
  const data = { type: PACKET.data, connectionId: 701, seq: 7_001, payload: noise(10) };
  await send({ ...data, ack: (first!.seq + 5) & 0xffff });
  await step();
  assertEquals(listening.accepted.length, 0);
  await send({ ...data, ack: (first!.seq - 1) & 0xffff });
  await step();
  assertEquals(listening.received[0]?.all, noise(10));
  listening.end.endpoint.close();
});

test("UtpEndpoint.punch() gets the connection of an end whose SYN came before, though the endpoint listens", async () => {
  const lab = new UtpLab();
  const listening = new Listening(lab, A);
  const port = await listening.bind();
  const { endpoint } = lab.end(B);
  const token = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
  const { signal } = new AbortController();
  const address = { host: B, port: await endpoint.bind() };
  const first = endpoint.punch({ token, isInitiator: true, address: { host: A, port }, signal });
  await lab.clock.advanceAsync(25); // its SYN has arrived, its next packet has not
  const second = listening.end.endpoint.punch({ token, isInitiator: false, address, signal });
  await lab.clock.advanceAsync(30);
  (await first).write(noise(68));
  await lab.clock.advanceAsync(100);
  assertEquals(new Received(await second).bytes, 0);
  assertEquals(listening.accepted.length, 0);
  endpoint.close();
  listening.end.endpoint.close();
});

test("UtpEndpoint keeps 512 SYNs at most, and answers fifty of one address at once, in no more bytes than they have", async () => {
  const lab = new UtpLab();
  const listening = new Listening(lab, A);
  const to = { host: A, port: await listening.bind() };
  const flood = await speaker(lab, B, to);
  for (let connectionId = 0; connectionId < 200; connectionId++) await flood.send({ connectionId });
  await lab.clock.advanceAsync(100);
  assertEquals(flood.replies.length, 50);
  for (const reply of flood.replies) assertLessOrEqual(encodePacket(reply).length, encodePacket(PLAIN).length);
  const early = await speaker(lab, "192.0.2.200", to);
  await early.send({});
  await lab.clock.advanceAsync(100);
  // A hundred a second are answered in total.
  for (let i = 1; i <= 11; i++) {
    const { send } = await speaker(lab, `192.0.2.${i}`, to);
    for (let connectionId = 0; connectionId < 50; connectionId++) await send({ connectionId });
    await lab.clock.advanceAsync(500);
  }
  const ack = (early.replies[0]!.seq - 1) & 0xffff;
  const data = { type: PACKET.data, connectionId: 701, seq: 7_001, ack, payload: noise(10) };
  await early.send(data);
  await lab.clock.advanceAsync(100);
  assertEquals(listening.accepted.length, 0, "its SYN was forgotten");
  listening.end.endpoint.close();
});

test("UtpEndpoint answers fifty SYNs of a /64 at once, whichever addresses they come from", async () => {
  const lab = new UtpLab();
  const listening = new Listening(lab, "2a00:9::1");
  const to = { host: "2a00:9::1", port: await listening.bind() };
  const speakers = await Promise.all(
    Array.from({ length: 70 }, (_, i) => speaker(lab, `2a00:1:2:3::${(i + 1).toString(16)}`, to)),
  );
  for (const { send } of speakers) await send({});
  await lab.clock.advanceAsync(100);
  assertEquals(speakers.filter(({ replies }) => replies.length > 0).length, 50);
  listening.end.endpoint.close();
});

test("UtpConnection sends what is written first in packets of their own", async () => {
  const lab = new UtpLab();
  const listening = new Listening(lab, A);
  const port = await listening.bind();
  const dialled = lab.end(B).endpoint.connect({ host: A, port }, new AbortController());
  await lab.clock.advanceAsync(100);
  const connection = await dialled;
  connection.open({ data: () => {}, end: () => {}, drain: () => {}, close: () => {} });
  for (let i = 0; i < 20; i++) connection.write(noise(68));
  await lab.clock.advanceAsync(2_000);
  assertEquals(listening.received[0]!.chunks.map(({ length }) => length), [...Array(8).fill(68), 12 * 68]);
  connection.abort();
  listening.end.endpoint.close();
});

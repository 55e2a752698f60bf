import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { hasCode } from "../../src/errors.ts";
import { UtpConnection } from "../../src/utp/utp-connection.ts";
import { decodePacket, encodePacket, PACKET } from "../../src/utp/packet.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { noise } from "../support/random.ts";
import { Received, UtpLab } from "./support.ts";

/** Writes everything, as fast as the connection takes it. */
function writer(connection: UtpConnection, bytes: Uint8Array, chunkBytes = 16_384) {
  let at = 0;
  const go = () => {
    while (at < bytes.length) {
      const chunk = bytes.subarray(at, at + chunkBytes);
      at += chunk.length;
      if (!connection.write(chunk)) return;
    }
  };
  go();
  return go;
}

/** Moves time on until `done`, at most `limitMs`; returns how long that took. */
async function advanceUntil(clock: FakeClock, done: () => boolean, limitMs: number, step = () => {}): Promise<number> {
  const startMs = clock.monotonic();
  while (!done() && clock.monotonic() - startMs < limitMs) {
    await clock.advanceAsync(50);
    step();
  }
  return clock.monotonic() - startMs;
}

const PATHS = [
  { name: "a clean path", path: {}, limitMs: 4_000 },
  { name: "5 % loss", path: { loss: 0.05 }, limitMs: 30_000 },
  { name: "datagrams that overtake each other", path: { jitterMs: 15 }, limitMs: 30_000 },
  { name: "20 % loss and overtaking", path: { loss: 0.2, jitterMs: 10 }, limitMs: 120_000 },
];

for (const { name, path, limitMs } of PATHS) {
  test(`UtpConnection carries bytes both ways in order over ${name}`, async () => {
    const lab = new UtpLab(path);
    const [a, b] = await lab.pair();
    const [atA, atB] = [new Received(a), new Received(b)];
    const [ab, ba] = [noise(1_000_000, 1), noise(300_000, 2)];
    const steps = [writer(a, ab), writer(b, ba, 777)];
    const done = () => atB.bytes === ab.length && atA.bytes === ba.length;
    const tookMs = await advanceUntil(lab.clock, done, limitMs, () => steps.forEach((step) => step()));
    assert(done(), `${atB.bytes} and ${atA.bytes} bytes in ${tookMs} ms`);
    assertEquals(atB.all, ab);
    assertEquals(atA.all, ba);
    a.end();
    b.end();
    await advanceUntil(lab.clock, () => atA.closes.length + atB.closes.length === 2, 60_000);
    assertEquals([atA.ends, atB.ends, atA.closes, atB.closes], [1, 1, [undefined], [undefined]]);
    assertEquals(lab.clock.pendingTimers, 0);
  });
}

test("UtpConnection ends one direction and goes on in the other", async () => {
  const lab = new UtpLab();
  const [a, b] = await lab.pair();
  const [atA, atB] = [new Received(a), new Received(b)];
  a.write(noise(5000));
  a.end();
  await lab.clock.advanceAsync(1000);
  assertEquals([atB.bytes, atB.ends, atB.closes.length], [5000, 1, 0]);
  b.write(noise(3000));
  await lab.clock.advanceAsync(1000);
  assertEquals([atA.bytes, atA.ends, a.write(noise(1))], [3000, 0, false]);
});

test("UtpConnection holds the sender back while its reader pauses, and goes on after that", async () => {
  const lab = new UtpLab();
  const [a, b] = await lab.pair();
  const atB = new Received(b);
  const atA = new Received(a);
  b.pause();
  const bytes = noise(2_000_000);
  const step = writer(a, bytes);
  await advanceUntil(lab.clock, () => false, 40_000, step);
  assertEquals(atB.bytes, 0);
  assert(a.bufferedBytes > 256 * 1024, "what the reader doesn't take waits at the sender");
  const sent = lab.network.sent;
  await lab.clock.advanceAsync(10_000);
  assert(lab.network.sent - sent < 10, `${lab.network.sent - sent} datagrams while nothing can be taken`);
  assertEquals([atA.closes, atB.closes], [[], []]);
  b.resume();
  await advanceUntil(lab.clock, () => atB.bytes === bytes.length, 60_000, step);
  assertEquals(atB.all, bytes);
  assert(atA.drains > 0);
});

test("UtpConnection: abort() ends both ends at once", async () => {
  const lab = new UtpLab();
  const [a, b] = await lab.pair();
  const [atA, atB] = [new Received(a), new Received(b)];
  a.write(noise(100_000));
  a.abort();
  a.abort();
  await lab.clock.advanceAsync(100);
  assertEquals(atA.closes, [undefined]);
  assertEquals(atB.closes.length, 1);
  assert(hasCode(atB.closes[0], "connection_failed"));
  assertEquals([a.write(noise(1)), lab.clock.pendingTimers], [false, 0]);
});

test("UtpConnection gives up an end that is gone, after some 20 s with data under way", async () => {
  const lab = new UtpLab();
  const [a, b] = await lab.pair();
  const atA = new Received(a);
  b.abort = () => {};
  Object.assign(lab.network, { carry: () => {} });
  a.write(noise(10_000));
  const tookMs = await advanceUntil(lab.clock, () => atA.closes.length > 0, 60_000);
  assert(tookMs >= 20_000 && tookMs <= 40_000, `${tookMs} ms`);
  assert(hasCode(atA.closes[0], "connection_failed"));
  assertEquals(lab.clock.pendingTimers, 0);
});

/** One end alone; the test plays the other. */
function alone() {
  const clock = new FakeClock();
  const sent: Uint8Array[] = [];
  const address = { host: "203.0.113.1", port: 1 };
  const start = { local: address, remote: address, sendId: 7, nextSeq: 0xfff0, lastInOrder: 0xfff8 };
  const connection = new UtpConnection(start, { clock, send: (datagram) => sent.push(datagram), closed: () => {} });
  const packet = (type: number, seq: number, ack: number, bytes = 0, selectiveAck: Uint8Array | null = null) => {
    const rest = { connectionId: 7, timestampUs: 0, timestampDifferenceUs: 0, windowBytes: 1_000_000, selectiveAck };
    const copy = encodePacket({ type, seq, ack, ...rest, payload: new Uint8Array(bytes).fill(seq) });
    connection.receive(decodePacket(copy)!);
  };
  return { clock, sent, connection, packet, at: new Received(connection) };
}

test("UtpConnection keeps at most 512 KiB, whatever a hostile end sends", async () => {
  const { connection, packet, at, sent } = alone();
  connection.pause();
  await settle();
  for (let i = 0; i < 3_000; i++) packet(PACKET.data, (0xfff9 + i) & 0xffff, 0xffef, 1_400);
  connection.resume();
  await settle();
  assert(at.bytes <= 512 * 1024 && at.bytes > 500 * 1024, `${at.bytes}`);
  assert(sent.every((datagram) => datagram.length <= 100), "acknowledgements are small");
  assert(sent.length <= 3_001, "and no more than what came");
});

test("UtpConnection keeps packets after a gap within bounds, and drops those it can't name", async () => {
  const { packet, at, connection } = alone();
  await settle();
  for (let ahead = 2; ahead < 2_000; ahead++) packet(PACKET.data, (0xfff8 + ahead) & 0xffff, 0xffef, 100);
  assertEquals(at.bytes, 0);
  packet(PACKET.data, 0xfff9, 0xffef, 100);
  assertEquals(at.bytes, 100 * 512);
  connection.abort();
});

test("UtpConnection ignores acknowledgements of what it never sent", async () => {
  const { clock, connection, packet, sent } = alone();
  await settle();
  connection.write(noise(3_000));
  await settle();
  assertEquals(sent.length, 3);
  for (const ack of [0xfff3, 0x0000, 0x7000, 0xffee]) packet(PACKET.state, 0xfff9, ack);
  clock.advance(2_000);
  assert(sent.length > 3, "they are sent again");
});

test("UtpConnection sends a packet again at once when three later ones have arrived", async () => {
  const { connection, packet, sent } = alone();
  await settle();
  connection.write(noise(6_000));
  await settle();
  assertEquals(sent.length, 5);
  packet(PACKET.state, 0xfff9, 0xffef, 0, Uint8Array.of(0b0011, 0, 0, 0));
  assertEquals(sent.length, 5);
  packet(PACKET.state, 0xfff9, 0xffef, 0, Uint8Array.of(0b0111, 0, 0, 0));
  assertEquals(sent.length, 6);
  assertEquals(decodePacket(sent[5]!)!.seq, 0xfff0);
  connection.abort();
});

test("UtpConnection paces what it sends once it knows the round trip", async () => {
  const lab = new UtpLab({ latencyMs: 50 });
  const [a, b] = await lab.pair();
  new Received(a);
  const atB = new Received(b);
  const step = writer(a, noise(4_000_000));
  await lab.clock.advanceAsync(400);
  step();
  const gaps: number[] = [];
  for (let i = 0; i < 100; i++) {
    const before = lab.network.sent;
    await lab.clock.advanceAsync(5);
    step();
    gaps.push(lab.network.sent - before);
  }
  assert(atB.bytes > 300_000, `${atB.bytes}`);
  // Without pacing a window leaves in one burst per round trip, and most of these spans are empty.
  const most = Math.max(...gaps);
  const total = gaps.reduce((sum, count) => sum + count, 0);
  assert(most < total / 15, `${most} of ${total} datagrams in one of 100 spans`);
});

import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { HELD_MS, HELD_PACKETS, RtpOrder } from "../../src/inputs/rtp-order.ts";
import { readRtp, type RtpPacket } from "../../src/inputs/rtp-packet.ts";
import { seededBelow } from "../support/random.ts";

const PAYLOAD = new Uint8Array(188 * 7).map((_, i) => i % 188 === 0 ? 0x47 : 0x40);

function rtp(
  sequence: number,
  options: { first?: number; type?: number; csrc?: number; extension?: number; padding?: number } = {},
) {
  const { csrc = 0, padding = 0, type = 33 } = options;
  const extension = options.extension === undefined
    ? []
    : [0xbe, 0xde, 0, options.extension, ...Array(4 * options.extension)];
  const first = options.first ?? (0x80 | csrc | (extension.length > 0 ? 0x10 : 0) | (padding > 0 ? 0x20 : 0));
  const head = [
    first,
    type,
    sequence >> 8,
    sequence & 255,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    7,
    ...Array(4 * csrc).fill(9),
    ...extension,
  ];
  const tail = padding > 0 ? [...Array(padding - 1).fill(0), padding] : [];
  return Uint8Array.from([...head.map(Number).map((n) => n || 0), ...PAYLOAD, ...tail]);
}

test("readRtp() finds the payload after sources and extensions, and before padding", () => {
  for (
    const options of [{}, { csrc: 3 }, { extension: 0 }, { extension: 5 }, { padding: 4 }, {
      csrc: 15,
      extension: 2,
      padding: 9,
    }]
  ) {
    const packet = readRtp(rtp(65535, options));
    assertEquals(packet, { sequence: 65535, ssrc: 7, payload: PAYLOAD }, JSON.stringify(options));
  }
});

test("readRtp() returns null for anything but RTP with a transport stream", () => {
  const table: [string, Uint8Array][] = [
    ["empty", new Uint8Array()],
    ["a bare transport stream", PAYLOAD],
    ["version 1", rtp(1, { first: 0x40 })],
    ["more sources than there is room", rtp(1).subarray(0, 20).map((byte, i) => i === 0 ? 0x8f : byte)],
    ["an extension beyond the end", rtp(1, { extension: 1 }).map((byte, i) => i === 14 ? 255 : byte)],
    ["more padding than payload", rtp(1).subarray(0, 200).map((byte, i) => i === 0 ? 0xa0 : i === 199 ? 255 : byte)],
    ["padding of nothing", rtp(1, { first: 0xa0 }).map((byte, i, all) => i === all.length - 1 ? 0 : byte)],
    ["part of a packet under a type that says nothing", rtp(1, { type: 96 }).subarray(50, 150).fill(0x80, 0, 1)],
    ["other media", rtp(1, { type: 96 }).map((byte, i) => i === 12 ? 0 : byte)],
    ["a stream's own type around nothing", rtp(1).subarray(0, 12)],
  ];
  for (const [name, datagram] of table) assertEquals(readRtp(datagram), null, name);
});

test("readRtp() takes a stream that is cut anywhere, by its packets or its type", () => {
  for (const type of [33, 96]) {
    const packet = readRtp(Uint8Array.from([...rtp(1, { type }).subarray(0, 12), ...PAYLOAD.subarray(100)]));
    assertEquals(packet?.payload, PAYLOAD.subarray(100), String(type));
  }
  assertEquals(readRtp(rtp(1).subarray(0, 100))?.payload, PAYLOAD.subarray(0, 88));
});

test("readRtp() survives every kind of datagram", () => {
  const random = seededBelow(7);
  const genuine = Array.from(
    { length: 50 },
    (_, i) => rtp(1300 * i, { csrc: i % 16, extension: i % 4, padding: i % 5 }),
  );
  for (let round = 0; round < 20_000; round++) {
    const datagram = genuine[random(50)]!.slice(0, random(1500));
    for (let k = random(4); k > 0 && datagram.length > 0; k--) {
      datagram[random(Math.min(datagram.length, 40))] = random(256);
    }
    const packet = readRtp(datagram);
    if (packet === null) continue;
    assert(packet.payload.length > 0 && packet.payload.length <= datagram.length - 12);
    assert(packet.sequence >= 0 && packet.sequence < 65536);
  }
});

const packet = (sequence: number, ssrc = 7): RtpPacket => ({
  sequence: sequence & 0xffff,
  ssrc,
  payload: Uint8Array.of(sequence >> 8 & 255, sequence & 255),
});

/** Pushes packets a millisecond apart; returns the numbers that came out, "cut" where the sender began again. */
function through(order: RtpOrder, packets: readonly RtpPacket[], everyMs = 1, startMs = 0): (number | "cut")[] {
  return packets.flatMap((one, i) => {
    const { payloads, isCut } = order.push(one, startMs + i * everyMs);
    const numbers = payloads.map((bytes) => (bytes[0]! << 8) | bytes[1]!);
    return isCut ? ["cut" as const, ...numbers] : numbers;
  });
}

test("RtpOrder.push() passes on packets in order, across the wrap of their numbers", () => {
  const order = new RtpOrder();
  const numbers = [65533, 65534, 65535, 0, 1, 2];
  assertEquals(through(order, numbers.map((n) => packet(n))), numbers);
  assertEquals([order.lostPackets, order.latePackets], [0, 0]);
});

test("RtpOrder.push() reorders swapped packets, and drops repeats", () => {
  const order = new RtpOrder();
  const numbers = [65534, 1, 65535, 0, 0, 2, 4, 5, 3, 65535, 6];
  assertEquals(through(order, numbers.map((n) => packet(n))), [65534, 65535, 0, 1, 2, 3, 4, 5, 6]);
  assertEquals([order.lostPackets, order.latePackets], [0, 2]);
});

test("RtpOrder.push() waits 0.1 s or 64 packets for a missing packet, then counts it as lost", () => {
  const slow = new RtpOrder();
  assertEquals(through(slow, [10, 11, 13, 14].map((n) => packet(n)), HELD_MS / 3), [10, 11]);
  assertEquals(through(slow, [packet(15)], 0, 2 * HELD_MS), [13, 14, 15]);
  assertEquals(slow.lostPackets, 1);
  const fast = new RtpOrder();
  const burst = [10, ...Array.from({ length: HELD_PACKETS + 1 }, (_, i) => 12 + i)];
  assertEquals(through(fast, burst.map((n) => packet(n)), 0), burst);
  assertEquals(fast.lostPackets, 1);
  assertEquals(through(fast, [packet(11)]), []);
  assertEquals(fast.latePackets, 1);
});

test("RtpOrder.flush() returns held packets in order, and counts the gaps", () => {
  const order = new RtpOrder();
  through(order, [packet(1), packet(5), packet(3)]);
  assertEquals(order.flush(9).map((bytes) => bytes[1]), [3, 5]);
  assertEquals(order.lostPackets, 2);
  assertEquals(through(order, [packet(6)]), [6]);
});

test("RtpOrder.push() cuts over to a sender that began again, not to a stray packet of another", () => {
  const order = new RtpOrder();
  const others = Array.from({ length: 20 }, (_, i) => packet(500 + i, 8));
  assertEquals(through(order, [packet(1), others[0]!, packet(2), others[1]!, packet(3)]), [1, 2, 3]);
  const heard = through(order, others);
  assertEquals(heard, ["cut", 515, 516, 517, 518, 519]);
  // The same sender, its count set back.
  assertEquals(through(order, Array.from({ length: 18 }, (_, i) => packet(40_000 + i, 8))), [
    "cut",
    40_015,
    40_016,
    40_017,
  ]);
});

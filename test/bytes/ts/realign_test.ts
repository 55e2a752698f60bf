import { assertEquals, assertNotEquals } from "@std/assert";
import { test } from "node:test";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { NULL_PID, pidOf } from "../../../src/bytes/ts/packet.ts";
import { detectPackets, readPackets } from "../../../src/bytes/ts/packet-source.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { seeded } from "../../support/random.ts";

const NEVER = new AbortController().signal;
const COUNT = 60;

/** A file of 60 packets with the PIDs 1 to 60 and noise in them, `strideBytes` apart. */
function file(strideBytes: number): Uint8Array {
  const random = seeded(3);
  const bytes = Uint8Array.from({ length: COUNT * strideBytes }, () => Math.floor(random() * 256));
  for (let i = 0; i < COUNT; i++) bytes.set([0x47, 0, i + 1, 0x10], i * strideBytes + (strideBytes === 192 ? 4 : 0));
  return bytes;
}

/** PIDs of the packets, null packets left out. */
const pids = (packets: Uint8Array) =>
  Array.from({ length: packets.length / 188 }, (_, i) => pidOf(packets, i * 188)).filter((pid) => pid !== NULL_PID);
const upTo = (count: number, without: readonly number[] = []) =>
  Array.from({ length: count }, (_, i) => i + 1).filter((pid) => !without.includes(pid));

async function read(bytes: Uint8Array, step = COUNT): Promise<Uint8Array> {
  const source = new MemorySource(bytes);
  const format = (await detectPackets(source, NEVER))!;
  const parts: Uint8Array[] = [];
  for (let first = 0; first < format.packetCount; first += step) {
    parts.push(await readPackets(format, source, first, step, NEVER));
  }
  return concatBytes(parts);
}

/** `bytes` without `count` bytes at `at`, with `more` in their place. */
const cut = (bytes: Uint8Array, at: number, count: number, more = new Uint8Array(0)) =>
  concatBytes([bytes.subarray(0, at), more, bytes.subarray(at + count)]);

for (const stride of [188, 192, 204]) {
  const whole = file(stride);
  const inside = 30 * stride + 40;
  for (
    const { what, bytes, lost } of [
      { what: "it is whole", bytes: whole, lost: [] },
      { what: "100 bytes are missing", bytes: cut(whole, inside, 100), lost: [31] },
      { what: "a packet and a half are missing", bytes: cut(whole, inside, stride + 94), lost: [31, 32] },
      { what: "77 bytes are added", bytes: cut(whole, inside, 0, new Uint8Array(77).fill(5)), lost: [] },
      {
        what: "a sync byte is wrong",
        bytes: cut(whole, 30 * stride + (stride === 192 ? 4 : 0), 1, Uint8Array.of(0)),
        lost: [31],
      },
      { what: "the last packets stand apart", bytes: cut(whole, 56 * stride + 40, 50), lost: [57] },
    ]
  ) {
    test(`readPackets() finds the packets of a file with ${stride} bytes each when ${what}`, async () => {
      const packets = await read(bytes);
      assertEquals(pids(packets), upTo(COUNT, lost));
      for (const step of [5, 7, 10, 31]) assertEquals(await read(bytes, step), packets);
    });
  }
}

test("readPackets() returns as many packets as asked for when bytes are noise", async () => {
  const random = seeded(4);
  for (let round = 0; round < 200; round++) {
    const bytes = file([188, 192, 204][round % 3]!);
    const from = 1200 + Math.floor(random() * 4000);
    const length = Math.floor(random() * 4000);
    // Sync bytes are as frequent as can be in a third of the rounds.
    for (let i = from; i < from + length; i++) {
      bytes[i] = random() < (round % 3) / 3 ? 0x47 : Math.floor(random() * 256);
    }
    const damaged = cut(bytes, from, Math.floor(random() * 300));
    const packets = await read(damaged, 1 + Math.floor(random() * COUNT));
    assertEquals(packets.length % 188, 0);
    assertNotEquals(packets.length, 0);
    for (let at = 0; at < packets.length; at += 188) assertEquals(packets[at], 0x47);
  }
});

test("readPackets() reads nothing after the last packet when its source has more bytes", async () => {
  const source = new MemorySource(file(188));
  const ends: number[] = [];
  const watched = {
    sizeBytes: source.sizeBytes,
    read: (offset: number, length: number, options: { signal: AbortSignal }) => {
      ends.push(offset + length);
      return source.read(offset, length, options);
    },
  };
  await readPackets({ firstAt: 0, strideBytes: 188, packetCount: 20 }, watched, 10, 10, NEVER);
  assertEquals(ends, [20 * 188]);
});

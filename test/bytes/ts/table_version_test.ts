import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { crc32Mpeg } from "../../../src/bytes/ts/crc.ts";
import { raiseTableVersion } from "../../../src/bytes/ts/table-version.ts";
import { clip } from "../../support/fixtures.ts";
import { seededBelow } from "../../support/random.ts";

/** The first packets of PAT and PMT of a clip. */
function tables(name: string): Uint8Array[] {
  const ts = clip(name);
  const found = new Map<number, Uint8Array>();
  for (let at = 0; at < ts.length && found.size < 2; at += 188) {
    const pid = ((ts[at + 1]! & 31) << 8) | ts[at + 2]!;
    if ((pid === 0 || pid === 4096) && !found.has(pid)) found.set(pid, ts.slice(at, at + 188));
  }
  return [...found.values()];
}
const section = (packet: Uint8Array) => packet.subarray(5, 5 + 3 + (((packet[6]! & 15) << 8) | packet[7]!));
const version = (packet: Uint8Array) => (section(packet)[5]! >> 1) & 31;

test("raiseTableVersion() changes the version of PAT and PMT and their checksum, and nothing else", () => {
  const packets = tables("ts-188.ts");
  assertEquals(packets.length, 2);
  for (const packet of packets) {
    const before = packet.slice();
    raiseTableVersion(packet, 0, 3);
    assertEquals([version(packet), crc32Mpeg(section(packet))], [(version(before) + 3) & 31, 0]);
    const end = section(packet).length - 4;
    const changed = [...section(packet)].flatMap((byte, i) => byte === section(before)[i] || i >= end ? [] : [i]);
    assertEquals(changed, [5]);
    raiseTableVersion(packet, 0, 29);
    assertEquals(packet, before, "32 versions, and it begins again");
  }
});

test("raiseTableVersion() does not change incomplete tables", () => {
  const [pat] = tables("ts-188.ts");
  const cases: [string, (packet: Uint8Array) => void][] = [
    ["a damaged one", (packet) => packet[12]! ^= 1],
    ["the middle of one", (packet) => packet[1]! &= ~0x40],
    ["another table", (packet) => packet[5] = 0x42],
    ["one that goes on", (packet) => packet.set([0xb3, 0xff], 6)],
    ["one of no length", (packet) => packet.set([0xb0, 0], 6)],
    ["a pointer beyond the packet", (packet) => packet[4] = 255],
    ["no payload", (packet) => packet[3] = 0x20],
  ];
  for (const [what, change] of cases) {
    const packet = pat!.slice();
    change(packet);
    const before = packet.slice();
    raiseTableVersion(packet, 0, 1);
    assertEquals(packet, before, what);
  }
});

test("raiseTableVersion() takes any bytes, and writes nothing outside the packet", () => {
  const below = seededBelow(7);
  for (let round = 0; round < 5000; round++) {
    const bytes = Uint8Array.from({ length: 3 * 188 }, () => below(256));
    bytes[188 + 1]! |= 0x40;
    const before = bytes.slice();
    raiseTableVersion(bytes, 188, 1);
    assert(bytes.subarray(0, 188).every((byte, i) => byte === before[i]));
    assert(bytes.subarray(376).every((byte, i) => byte === before[376 + i]));
  }
});

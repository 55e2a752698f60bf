import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { NO_PCR, packetsFor, spreadPes, writeNullPacket, writePcrPacket } from "../../../src/media/mux/ts/packets.ts";
import { Payload } from "../../../src/media/mux/ts/payload.ts";
import { crc32Mpeg } from "../../../src/bytes/ts/crc.ts";
import { sectionPackets } from "../../../src/bytes/ts/psi.ts";
import { wrap33 } from "../../../src/bytes/ts/stamps.ts";
import { patSection, pmtSection } from "../../../src/media/mux/ts/psi.ts";
import type { Track } from "../../../src/media/model/types.ts";
import { checkTs } from "../../support/ts-check.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";

/** Payload of the packets of one PID. */
function payloadOf(ts: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < ts.length; at += 188) {
    const field = ts[at + 3]! & 0x20 ? 1 + ts[at + 4]! : 0;
    parts.push(ts.subarray(at + 4 + field, at + 188));
  }
  return concatBytes(parts);
}

test("spreadPes() keeps every byte for any size and number of packets", () => {
  for (const pcr of [NO_PCR, 90000]) {
    for (
      const size of [20, 100, 175, 176, 177, 182, 183, 184, 185, 359, 360, 361, 368, 1000, 5000, 11_776, 11_968, 50_000]
    ) {
      const least = packetsFor(size, pcr === NO_PCR ? 0 : 8);
      for (const packets of [least, least + 1, least + 15]) {
        const payload = Uint8Array.from({ length: size }, (_, i) => (i * 7) & 255);
        const out = new Uint8Array(packets * 188 + 50).fill(0xaa);
        const source = new Payload();
        source.setData(payload, 0, size);
        spreadPes(out, 0, packets, source, size, 0x123, 14, pcr, true);
        assertEquals(payloadOf(out.subarray(0, packets * 188)), payload);
        for (let i = 0; i < packets; i++) {
          assertEquals(out[i * 188], 0x47);
          assertEquals(out[i * 188 + 3]! & 15, (14 + i) & 15);
          assertEquals((out[i * 188 + 1]! & 0x40) !== 0, i === 0);
        }
        assertEquals(out.subarray(packets * 188).every((byte) => byte === 0xaa), true);
      }
    }
  }
});

test("writePcrPacket() writes 33 bits that wrap", () => {
  for (const ticks of [0, 1, 2 ** 33 - 1, 2 ** 33, 2 ** 33 + 5, -3]) {
    const out = new Uint8Array(188);
    writePcrPacket(out, 0, 0x100, 15, ticks);
    const report = checkTs(out, { isRange: true });
    assertEquals(report.pcrs, [wrap33(ticks)]);
  }
  assertEquals(wrap33(2 ** 33 + 5), 5);
  assertEquals(wrap33(-3), 2 ** 33 - 3);
});

test("writeNullPacket() is a packet of PID 0x1fff", () => {
  const out = new Uint8Array(188);
  writeNullPacket(out, 0);
  assertEquals(checkTs(out, { isRange: true }).nullPackets, 1);
});

test("pmtSection() spans packets when there are many tracks", () => {
  const track: Track = {
    id: 1,
    kind: "audio",
    codec: "ac3",
    codecId: "ac-3",
    language: "en",
    isDefault: true,
    codecPrivate: null,
    width: null,
    height: null,
    sampleRate: 48000,
    channels: 2,
  };
  const streams = Array.from(
    { length: 33 },
    (_, i) => ({ pid: 256 + i, streamType: 0x81, registration: "AC-3", track }),
  );
  const section = pmtSection(256, streams);
  assertEquals(crc32Mpeg(section), 0);
  const pmt = sectionPackets(section, 0x1000);
  for (let i = 0; i < pmt.length / 188; i++) pmt[i * 188 + 3] = pmt[i * 188 + 3]! | i;
  const report = checkTs(concatBytes([sectionPackets(patSection(), 0), pmt]), { isSegment: false });
  assertEquals(report.problems, []);
  assertEquals(report.streams.length, 33);
  assertEquals(report.streams[32]!.language, "eng");
});

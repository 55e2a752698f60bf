import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { AccessPointFinder } from "../../../src/bytes/ts/random-access.ts";
import { seeded } from "../../support/random.ts";

/** A packet in which a PES with `data` begins; flagged by random_access_indicator or not. */
function packet(data: readonly number[], isFlagged: boolean): Uint8Array {
  const out = new Uint8Array(188).fill(0xff);
  out.set([0x47, 0x41, 0, 0x30, 1, isFlagged ? 0x40 : 0, 0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0, ...data]);
  return out;
}

const of = (...units: number[][]) => units.flatMap((unit) => [0, 0, 1, ...unit]);
/** First macroblock 0, then the slice type: 5 is P, 7 is I. */
const P_SLICE = [0x41, 0b10011000];
const I_SLICE = [0x41, 0b10001000];

for (
  const { what, codec, data, flagged, plain } of [
    { what: "an IDR of H.264", codec: "h264", data: of([9, 0xf0], [0x65, 0x88]), flagged: true, plain: true },
    { what: "an I picture of H.264", codec: "h264", data: of([9, 0xf0], I_SLICE), flagged: true, plain: false },
    { what: "a P picture of H.264", codec: "h264", data: of([9, 0xf0], P_SLICE), flagged: false, plain: false },
    { what: "an IRAP of HEVC", codec: "hevc", data: of([0x26, 1]), flagged: true, plain: true },
    { what: "another picture of HEVC", codec: "hevc", data: of([2, 1, 0]), flagged: true, plain: false },
    { what: "an I picture of MPEG-2", codec: "mpeg2video", data: of([0, 0, 0x0f, 0xff]), flagged: true, plain: false },
    { what: "a P picture of MPEG-2", codec: "mpeg2video", data: of([0, 0, 0x17, 0xff]), flagged: false, plain: false },
    { what: "a P picture of MPEG-4", codec: "mpeg4", data: of([0xb6, 0x50]), flagged: false, plain: false },
    { what: "sound", codec: "aac", data: [0xff, 0xf1], flagged: true, plain: false },
  ]
) {
  test(`AccessPointFinder takes ${what} for a random access point ${flagged ? "if" : "not even if"} it is flagged`, () => {
    const finds = (isFlagged: boolean) =>
      new AccessPointFinder(codec, codec === "aac" && isFlagged ? "any" : "start", true).push(
        packet(data, isFlagged),
        0,
        5,
      ) !== null;
    assertEquals([finds(true), finds(false)], [flagged, plain]);
    // Without doubts a flag is enough.
    assertEquals(new AccessPointFinder(codec, "start").push(packet(data, true), 0, 5), { packet: 5, pts90k: null });
  });
}

test("AccessPointFinder reports packets that it was given when the stream is noise", () => {
  const random = seeded(9);
  for (const codec of ["h264", "hevc", "mpeg2video", "mpeg4"]) {
    const finder = new AccessPointFinder(codec, "within", true);
    for (let n = 0; n < 3000; n++) {
      const data = Array.from({ length: 160 }, () => Math.floor(random() * (random() < 0.7 ? 2 : 256)));
      const bytes = packet(data, random() < 0.5);
      if (random() < 0.5) bytes[1] = 0x01;
      const found = finder.push(bytes, 0, n);
      if (found !== null) assertEquals(found.packet <= n && found.packet >= n - 20, true);
    }
  }
});

test("AccessPointFinder finds a point within a PES of many pictures when it is asked for those", () => {
  const pictures = of([9, 0xf0], P_SLICE, [9, 0xf0], [0x67, 0x42], [0x65, 0x88]);
  for (const split of [pictures.length, 12, 13, 14, 15]) {
    const [head, tail] = [packet(pictures.slice(0, split), false), new Uint8Array(188).fill(0xff)];
    // The PES goes on after `split` bytes: what is left of its first packet is its adaptation field.
    const body = head.subarray(6, 15 + split).slice();
    head.set([0x47, 0x41, 0, 0x30, 183 - body.length, 0]);
    head.fill(0xff, 6, 188 - body.length);
    head.set(body, 188 - body.length);
    tail.set([0x47, 0x01, 0, 0x11, ...pictures.slice(split)]);
    const find = (rule: "start" | "within") => {
      const finder = new AccessPointFinder("h264", rule, true);
      return finder.push(head, 0, 5) ?? finder.push(tail, 0, 6);
    };
    assertEquals([find("start"), find("within")], [null, { packet: 5, pts90k: null }], `${split}`);
  }
});

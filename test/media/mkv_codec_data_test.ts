/** H.264 and HEVC in Matroska without codec data, and without flags of random access points. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { concatBytes } from "../../src/bytes/hex.ts";
import { unitsOfByteStream } from "../../src/bytes/nal-units.ts";
import { withConfigFrom } from "../../src/media/index/mkv/codec-data.ts";
import { readTrack } from "../../src/media/index/mkv/tracks.ts";
import { checkTs } from "../support/ts-check.ts";
import { MemorySource } from "../support/memory-source.ts";
import { seeded } from "../support/random.ts";
import { cluster, element, matroska, simpleBlock, trackEntry } from "./mkv-support.ts";
import { collect, NEVER, openBytes } from "./support/files.ts";

/** SPS of 320 × 180 in the baseline profile, PPS, slices of an IDR and of another picture. */
const SPS = [0x67, 0x42, 0xc0, 0x15, 0x8c, 0x8d, 0x40, 0xa0, 0xcb, 0xcf, 0x37, 1];
const PPS = [0x68, 0xce, 0x3c, 0x80];
const IDR = [0x65, 0xb8, 0, 4, 0x13];
const SLICE = [0x41, 0x9a, 1, 2, 3];

const stream = (...units: number[][]) => Uint8Array.from(units.flatMap((unit) => [0, 0, 0, 1, ...unit]));
const byLength = (...units: number[][]) => Uint8Array.from(units.flatMap((unit) => [0, 0, 0, unit.length, ...unit]));
const AVCC = Uint8Array.from([1, 0x42, 0xc0, 0x15, 0xff, 0xe1, 0, 12, ...SPS, 1, 0, 4, ...PPS]);

/** A film of 50 pictures, one group of 10 after the other. */
function film(
  { config, first, other, isFlagged = true }: {
    readonly config: Uint8Array | null;
    readonly first: Uint8Array;
    readonly other: Uint8Array;
    readonly isFlagged?: boolean;
  },
): Uint8Array {
  const extra = [element(0x23e383, 40_000_000), ...(config === null ? [] : [element(0x63a2, config)])];
  const clusters = Array.from({ length: 5 }, (_, group) =>
    cluster(
      group * 400,
      Array.from({ length: 10 }, (_, i) =>
        simpleBlock(1, i * 40, i === 0 && isFlagged ? 0x80 : 0, i === 0 ? first : other)),
    ));
  return matroska(clusters, { tracks: [trackEntry(1, "video", "V_MPEG4/ISO/AVC", extra)] });
}

/** NAL unit types of each picture that the TS has. */
async function pictures(file: Uint8Array): Promise<number[][]> {
  const { ts } = await openBytes(file);
  const whole = await collect(ts.read(0, null, new MemorySource(file), NEVER));
  return checkTs(whole).streams[0]!.units.map(({ data }) => unitsOfByteStream(data, 20).map((unit) => unit[0]! & 31));
}

const GROUP = [[9, 7, 8, 5], ...new Array(9).fill([9, 1])];

for (
  const { what, ...parts } of [
    { what: "the byte stream without codec data", config: null, first: stream(SPS, PPS, IDR), other: stream(SLICE) },
    {
      what: "the byte stream with delimiters",
      config: null,
      first: stream([9, 0x10], SPS, PPS, IDR),
      other: stream([9, 0x30], SLICE),
    },
    {
      what: "the byte stream with sets in codec data of that form",
      config: stream(SPS, PPS),
      first: stream(IDR),
      other: stream(SLICE),
    },
    {
      what: "the byte stream with delimiters and sets in codec data of that form",
      config: stream(SPS, PPS),
      first: stream([9, 0x10], IDR),
      other: stream([9, 0x30], SLICE),
    },
    { what: "lengths without codec data", config: null, first: byLength(SPS, PPS, IDR), other: byLength(SLICE) },
    { what: "no flags", config: AVCC, first: byLength(IDR), other: byLength(SLICE), isFlagged: false },
    {
      what: "no flags and no codec data",
      config: null,
      first: stream(SPS, PPS, IDR),
      other: stream(SLICE),
      isFlagged: false,
    },
  ]
) {
  test(`openMatroska() plays H.264 whole when the file has ${what}`, async () => {
    assertEquals(await pictures(film(parts)), Array.from({ length: 5 }, () => GROUP).flat());
  });
}

test("openMatroska() writes both parameter sets when only one of them is in the picture", async () => {
  const file = film({ config: AVCC, first: byLength(SPS, IDR), other: byLength(SLICE) });
  assertEquals((await pictures(file))[0], [9, 7, 8, 7, 5]);
});

test("withConfigFrom() survives any picture and any codec data", () => {
  const random = seeded(6);
  const noise = () =>
    Uint8Array.from({ length: Math.floor(random() * 80) }, () => Math.floor(random() * (random() < 0.5 ? 3 : 256)));
  for (let round = 0; round < 2000; round++) {
    const codec = round % 2 === 0 ? "h264" : "hevc";
    const codecId = codec === "h264" ? "V_MPEG4/ISO/AVC" : "V_MPEGH/ISO/HEVC";
    const entry = concatBytes([
      element(0xd7, 1),
      element(0x83, 1),
      element(0x86, codecId),
      element(0x63a2, concatBytes([random() < 0.5 ? Uint8Array.of(0, 0, 0, 1) : new Uint8Array(0), noise()])),
    ]);
    const track = { ...readTrack(entry, { left: 100 })!, unsure: { codec, codecId } } as const;
    const known = withConfigFrom(
      track,
      concatBytes([random() < 0.5 ? Uint8Array.of(0, 0, 0, 1) : new Uint8Array(0), noise()]),
    );
    assert(known === null || known.track.codecPrivate!.length > 6);
  }
});

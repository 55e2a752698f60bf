/** Subtitles that are pictures, from Matroska into MPEG TS. */
import { test } from "node:test";
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { concatBytes, toHex } from "../../../src/bytes/hex.ts";
import { elementaryFormat } from "../../../src/media/mux/ts/elementary/carry.ts";
import { pmtSection } from "../../../src/media/mux/ts/psi.ts";
import { subtitlePackets } from "../../../src/media/mux/ts/slot-bound.ts";
import type { Track } from "../../../src/media/model/types.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { checkTs, type TsReport } from "../../support/ts-check.ts";
import { cluster, cues, element, floatBytes, matroska, simpleBlock, trackEntry } from "../mkv-support.ts";
import { collect, NEVER, openBytes, seeded } from "../support/files.ts";
import { discNothing, discPicture, dvbSegments, packed, subtitleEntry } from "../support/picture-subtitles.ts";

const SUBTITLE: Track = {
  id: 3,
  kind: "subtitle",
  codec: "pgs",
  codecId: "S_HDMV/PGS",
  language: "en",
  isDefault: false,
  codecPrivate: null,
  width: null,
  height: null,
  sampleRate: null,
  channels: null,
};

/** Its parts, each of which is decoded on: a display set is as long as all of them together. */
const partsOf = (track: Track, data: Uint8Array) => elementaryFormat(track)!.partsOf!(data);

/** A picture that hardly gets smaller. */
function noise(number: number, width: number, height: number): Uint8Array {
  const random = seeded(number);
  return discPicture({ number, width, height, screen: [640, 360], colour: () => random() < 0.5 ? 1 : 2 });
}

test("pgsFormat() splits a display set between segments where it is too large for a PES", () => {
  const small = noise(1, 100, 20);
  assertEquals(partsOf(SUBTITLE, small).map(toHex), [toHex(small)]);
  const large = noise(2, 600, 300);
  const parts = partsOf(SUBTITLE, large);
  assert(parts.length > 1);
  for (const part of parts) assertLessOrEqual(part.length, 65_000);
  assertEquals(toHex(concatBytes(parts)), toHex(large));
  assertEquals(partsOf(SUBTITLE, small.subarray(0, -2)), [], "a damaged one is left out");
});

test("dvbSubtitleFormat() puts back what Matroska leaves out", () => {
  const dvb: Track = { ...SUBTITLE, codec: "dvbsub", codecId: "S_DVBSUB" };
  const data = dvbSegments([4, 0]);
  assertEquals(partsOf(dvb, data).map(toHex), [`2000${toHex(data)}ff`]);
  const large = dvbSegments([40_000, 40_000]);
  assertEquals(partsOf(dvb, large).map((part) => part.length), [40_009, 40_009]);
  assertEquals(partsOf(dvb, Uint8Array.of(1, 2, 3)), []);
});

test("pmtSection() says for whom sound and subtitles are made", () => {
  const hex = (track: Track) => {
    const { streamType, registration, descriptors = undefined } = elementaryFormat(track)!;
    const one = { pid: 256, streamType, registration, track, ...descriptors && { descriptors } };
    const section = pmtSection(256, [one], "HDMV");
    return toHex(section.subarray(12, -4));
  };
  const sound: Track = { ...SUBTITLE, kind: "audio", codec: "mp3", sampleRate: 48_000 };
  const program = "0504" + "48444d56";
  assertEquals(hex(SUBTITLE), `${program}90e100f0060a04656e6700`);
  assertEquals(hex({ ...SUBTITLE, isForHearingImpaired: true }), `${program}90e100f0060a04656e6702`);
  assertEquals(hex({ ...sound, isForHearingImpaired: true }), `${program}03e100f0060a04656e6702`);
  assertEquals(hex({ ...sound, language: null, isForVisuallyImpaired: true }), `${program}03e100f0060a04756e6403`);
  const dvb: Track = { ...SUBTITLE, codec: "dvbsub", codecPrivate: Uint8Array.of(0, 5, 0, 6, 0x14) };
  assertEquals(hex(dvb), `${program}06e100f00a5908656e671400050006`);
  assertEquals(hex({ ...dvb, isForHearingImpaired: true }), `${program}06e100f00a5908656e672400050006`);
});

const SECONDS = 12;

/** Pictures of a second: the clock stands with each. */
const PICTURES = 10;

/** A film with sound once a second; `subtitles` has the blocks of each second, by track number. */
function film(
  entries: readonly Uint8Array[],
  subtitles: (second: number) => readonly (readonly [track: number, data: Uint8Array])[],
  cuedTracks: readonly number[] = [],
): Uint8Array {
  const media = (bytes: number) => new Uint8Array(bytes).fill(9);
  const clusters = Array.from({ length: SECONDS }, (_, s) =>
    cluster(s * 1000, [
      simpleBlock(1, 0, 0x80, media(20_000)),
      simpleBlock(2, 0, 0x80, media(800)),
      ...subtitles(s).map(([track, data]) => simpleBlock(track, 250, 0x80, data)),
      ...Array.from({ length: PICTURES - 1 }, (_, i) => simpleBlock(1, 100 * (i + 1), 0, media(7000))),
    ]));
  const starts = clusters.map((_, i) => clusters.slice(0, i).reduce((sum, one) => sum + one.length, 0));
  const tracks = [
    trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 100_000_000)]),
    trackEntry(2, "audio", "A_AC3", [element(0xe1, [element(0xb5, floatBytes(48_000))])]),
    ...entries,
  ];
  const after = (base: number) => [
    element(
      0x1c53bb6b,
      starts.flatMap((at, s) =>
        [1, ...cuedTracks].map((track) => cues(base, [[track === 1 ? s * 1000 : s * 1000 + 250, at, null]], track))
      ).map((one) => one.subarray(12)),
    ),
  ];
  return matroska(clusters, { tracks, durationMs: SECONDS * 1000, after });
}

/** The TS of `bytes`, checked: as long as promised, and the same in ranges and segments. */
async function muxed(bytes: Uint8Array): Promise<{ report: TsReport; dropped: number; ts: Uint8Array }> {
  const source = new MemorySource(bytes);
  const { ts, hls, faults } = await openBytes(bytes, { segmentTargetMs: 2000 });
  const whole = await collect(ts.read(0, null, source, NEVER));
  assertEquals(whole.length, ts.sizeBytes);
  const [from, to] = [Math.floor(whole.length * 0.4) + 7, Math.floor(whole.length * 0.6) + 11];
  assertEquals(await collect(ts.read(from, to, source, NEVER)), whole.subarray(from, to));
  const segments: Uint8Array[] = [];
  for (const { index } of hls.segments) {
    segments.push(await collect(hls.readSegment(index, source, NEVER)));
    assertEquals(segments.at(-1)!.length, hls.segmentBytes(index));
    assertEquals(checkTs(segments.at(-1)!).problems, []);
  }
  assertEquals(concatBytes(segments), whole);
  const report = checkTs(whole);
  assertEquals(report.problems, []);
  return { report, dropped: faults.counts.dropped, ts: whole };
}

const sizesOf = ({ streams }: TsReport, stream: number) => streams[stream]!.units.map(({ data }) => data.length);

test("openMedia() carries PGS and DVB subtitles of a Matroska film, byte for byte, in ranges and segments", async () => {
  const shown = (s: number) => s % 2 === 0 ? noise(s, 300, 40) : discNothing(s, [640, 360]);
  const dvb = dvbSegments([2000, 0]);
  const entries = [
    subtitleEntry(3, "S_HDMV/PGS", { language: "ger", isDeflated: true }),
    subtitleEntry(4, "S_DVBSUB", { language: "fre" }),
    subtitleEntry(5, "S_TEXT/UTF8", { language: "eng" }),
  ];
  const bytes = film(entries, (s) => [[3, packed(shown(s))], [4, dvb], [5, Uint8Array.of(65)]], [3, 4]);
  const { report, dropped } = await muxed(bytes);
  assertEquals(dropped, 0);
  assertEquals(report.streams.map(({ streamType, language }) => [streamType, language]), [
    [0x02, null],
    [0x81, "eng"],
    [0x90, "ger"],
    [0x06, null],
  ]);
  assertEquals(
    report.streams[2]!.units.map(({ data }) => toHex(data)),
    Array.from({ length: SECONDS }, (_, s) => toHex(shown(s))),
  );
  const [picture, subtitle] = [report.streams[0]!, report.streams[2]!].map(({ units }) => units[0]!.pts);
  assertEquals(subtitle! - picture!, 22_500);
  assert(report.streams[3]!.units.every(({ data }) => toHex(data) === `2000${toHex(dvb)}ff`));
});

test("StreamedSlot leaves out subtitles that grow beyond their room, and no picture or sound", async () => {
  // Lines of one colour: a thousand times as large as what zlib makes of them.
  const huge = discPicture({ number: 1, width: 600, height: 9000, screen: [640, 360] });
  const entries = Array.from(
    { length: 6 },
    (_, i) => subtitleEntry(3 + i, "S_HDMV/PGS", { language: "eng", isDeflated: true }),
  );
  const { report, dropped } = await muxed(film(entries, () => entries.map((_, i) => [3 + i, packed(huge)] as const)));
  assert(dropped > 0);
  assertEquals(sizesOf(report, 0).length, PICTURES * SECONDS);
  assertEquals(sizesOf(report, 1).length, SECONDS);
});

test("subtitlePackets() grows with the subtitles, and not beyond an eighth of the run", () => {
  assertEquals(subtitlePackets(0, 1e6, 0), 0);
  assertEquals(subtitlePackets(2, 1e6, 0), 48);
  assertEquals(subtitlePackets(1000, 1e6, 1e9), Math.ceil((125_000 + 32_768) / 184));
});

test("selectTracks() has as many subtitles as a program map has room for", async () => {
  const entries = Array.from({ length: 60 }, (_, i) => subtitleEntry(3 + i, "S_HDMV/PGS", { language: "eng" }));
  const bytes = film(entries, (s) => entries.map((_, i) => [3 + i, discNothing(s, [640, 360])] as const));
  const { outputTracks, warnings } = await openBytes(bytes, { segmentTargetMs: 2000 });
  assertEquals(outputTracks.length, 2 + 48);
  assertEquals(warnings.filter((text) => text.includes("too many")).length, 12);
  assertEquals((await muxed(bytes)).report.streams.length, 50);
});

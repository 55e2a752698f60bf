/** Segments of fragmented MP4: the same bytes in any order, of the sizes foretold, with the source's packets and times. */
import { test } from "node:test";
import { assert, assertEquals, assertLessOrEqual, assertRejects } from "@std/assert";
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from "mediabunny";
import { concatBytes, equalBytes } from "../../../src/bytes/hex.ts";
import { carrierOf, FMP4, pictureCarrierOf, TS } from "../../../src/media/mux/carrier.ts";
import { selectTracks } from "../../../src/media/presentation/select.ts";
import { PacketSink } from "../../../src/media/mux/chunks.ts";
import { FragmentSlot } from "../../../src/media/mux/cmaf/fragment-slot.ts";
import type { CmafStream } from "../../../src/media/mux/cmaf/init-segment.ts";
import { boxesIn, viewOf } from "../../../src/bytes/boxes.ts";
import { renderVodPlaylist } from "../../../src/media/hls/playlist.ts";
import { renderMultivariant, variantFacts } from "../../../src/media/hls/multivariant.ts";
import type { MediaIndex } from "../../../src/media/model/timeline.ts";
import type { IndexedPresentation } from "../../../src/media/model/types.ts";
import { MillraceError } from "../../../src/errors.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { collect, fixture, NEVER, openBytes } from "../support/files.ts";

const FILMS = [
  "webm-vp9-opus.webm",
  "mkv-cues.mkv",
  "mkv-open-gop.mkv",
  "mp4-front.mp4",
  "mp4-audio-delay.mp4",
  "mp4-fragmented-sidx.mp4",
];
const open = (name: string) => openBytes(fixture(name), { fragmented: true, segmentTargetMs: 2000 });

const read = (hls: IndexedPresentation["hls"], n: number, bytes: Uint8Array) =>
  collect(hls.readSegment(n, new MemorySource(bytes), NEVER));

/** Types of the boxes in `bytes`, on one level. */
const typesOf = (bytes: Uint8Array) => [...boxesIn(viewOf(bytes), 0, bytes.length)].map(({ type }) => type);

/** Packets of each track as mediabunny reads them. */
async function packetsOf(bytes: Uint8Array) {
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  const tracks = [];
  for (const track of await input.getTracks()) {
    const packets = [];
    for await (const { timestamp, type, data } of new EncodedPacketSink(track).packets()) {
      packets.push({ timeS: timestamp, isKey: type === "key", bytes: data.length });
    }
    tracks.push({ kind: track.type, packets });
  }
  return tracks;
}

for (const name of FILMS) {
  test(`HlsPlan.readSegment() gives the fragments of ${name} in any order, in the sizes foretold`, async () => {
    const bytes = fixture(name);
    const { hls } = await open(name);
    const { init } = hls.fragmented!;
    const forth: Uint8Array[] = [];
    for (const { index } of hls.segments) forth.push(await read(hls, index, bytes));
    const { hls: other } = await open(name);
    for (const { index } of hls.segments.toReversed()) {
      assert(equalBytes(await read(other, index, bytes), forth[index]!));
      assertEquals(forth[index]!.length, hls.segmentBytes(index));
      assertEquals(new Set(typesOf(forth[index]!)), new Set(["moof", "mdat", "free"]));
    }
    assertEquals(typesOf(init), ["ftyp", "moov"]);
    const [made, source] = [await packetsOf(concatBytes([init, ...forth])), await packetsOf(bytes)];
    assertEquals(made.map(({ kind }) => kind), ["video", "audio"]);
    const offsets = made.map(({ packets }, i) => {
      const theirs = source[i]!.packets;
      assertEquals(packets.map(({ bytes, isKey }) => [bytes, isKey]), theirs.map(({ bytes, isKey }) => [bytes, isKey]));
      const offsetS = packets[0]!.timeS - theirs[0]!.timeS;
      for (const [n, { timeS }] of packets.entries()) {
        assertLessOrEqual(Math.abs(timeS - theirs[n]!.timeS - offsetS), 0.001, `packet ${n}`);
      }
      return offsetS;
    });
    // mediabunny leaves what decoders skip of Opus (312 samples) in the times of Matroska.
    const earlyS = name.endsWith(".webm") ? 312 / 48_000 : 0;
    assertLessOrEqual(Math.abs(offsets[0]! - earlyS - offsets[1]!), 0.001, "sound beside its pictures");
  });
}

test("fragmented MP4 has no edit list and no composition offset with a sign", async () => {
  for (const name of FILMS) {
    const bytes = fixture(name);
    const { hls } = await open(name);
    const text = new TextDecoder("latin1").decode(hls.fragmented!.init);
    assert(!text.includes("edts"), name);
    const segment = await read(hls, 0, bytes);
    const at = new TextDecoder("latin1").decode(segment).indexOf("trun");
    // Version 0: offsets are unsigned.
    assertEquals(segment[at + 4], 0);
  }
});

test("openMedia() makes fragmented MP4 unasked only of what MPEG TS cannot carry", async () => {
  const webm = await openBytes(fixture("webm-vp9-opus.webm"));
  assertEquals([webm.hlsOnly, webm.hls.fragmented?.codecs.at(-1)], [true, "Opus"]);
  const film = await openBytes(fixture("mkv-cues.mkv"));
  assertEquals([film.hlsOnly, film.hls.fragmented], [undefined, undefined]);
  const error = await assertRejects(
    () => openBytes(fixture("webm-vp9-opus.webm"), { fragmented: false }),
    MillraceError,
    "MPEG TS cannot carry vp9: HLS can",
  );
  assertEquals([error.code, error.detail], ["unsupported_media", { hls: true }]);
  await assertRejects(() => openBytes(fixture("ts-188.ts"), { fragmented: true }), MillraceError, "transport stream");
});

test("carrierOf() takes fragmented MP4 for sound only after it was not converted", async () => {
  const [picture] = (await openBytes(fixture("mkv-cues.mkv"))).tracks;
  const [, opus] = (await openBytes(fixture("webm-vp9-opus.webm"))).tracks;
  const tracks = [picture!, opus!];
  const index = { tracks, timeline: { kind: "streamed", runs: [] } } as unknown as MediaIndex;
  assertEquals([pictureCarrierOf(index, {}), carrierOf(index, {})], [TS, FMP4]);
  assertEquals([carrierOf(index, { fragmented: false }), pictureCarrierOf(index, { fragmented: true })], [TS, FMP4]);
  assertEquals(carrierOf({ ...index, tracks: [opus!] }, {}), TS);
});

test("selectTracks() takes one track of sound for fragmented MP4, the preferred one", () => {
  const sound = (id: number, language: string) => ({
    ...VIDEO.track,
    id,
    kind: "audio" as const,
    codec: "aac" as const,
    codecPrivate: Uint8Array.of(0x11, 0x90),
    language,
  });
  const tracks = [sound(2, "eng"), sound(3, "ger")];
  const { indexes, warnings } = selectTracks(tracks, "de", () => true, "", FMP4);
  assertEquals([indexes, warnings], [[1], ["audio track 2 left out: one is carried"]]);
});

test("playlists of fragmented MP4 name the init segment, the codecs, the size and the bit rates", async () => {
  const { hls, outputTracks } = await open("webm-vp9-opus.webm");
  const list = renderVodPlaylist(hls, (n) => n === "init" ? "init.mp4" : `${n}.m4s`);
  assert(list.startsWith("#EXTM3U\n#EXT-X-VERSION:7\n"));
  assert(list.includes('\n#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-MAP:URI="init.mp4"\n'), list);
  assert(list.includes(",\n0.m4s\n"));
  const facts = variantFacts(hls, outputTracks, 1);
  const bytes = hls.segments.reduce((sum, { index }) => sum + hls.segmentBytes(index)!, 0);
  const seconds = hls.segments.reduce((sum, { durationMs }) => sum + durationMs / 1000, 0);
  assertEquals(facts.averageBandwidth, Math.ceil(bytes * 8 / seconds));
  assert(facts.bandwidth >= facts.averageBandwidth!);
  const { width, height } = outputTracks[0]!;
  assert(
    renderMultivariant({ videoUrl: "film.m3u8", sounds: [], subtitles: [], variants: [facts] }).includes(
      `AVERAGE-BANDWIDTH=${facts.averageBandwidth},CODECS="${
        facts.codecs.join(",")
      }",RESOLUTION=${width}x${height},FRAME-RATE=${outputTracks[0]!.frameRate!.toFixed(3)}\n`,
    ),
  );
});

const VIDEO: CmafStream = {
  track: {
    id: 1,
    kind: "video",
    codec: "vp9",
    codecId: "",
    language: null,
    isDefault: true,
    codecPrivate: null,
    width: 64,
    height: 64,
    sampleRate: null,
    channels: null,
  },
  trackIndex: 0,
  id: 1,
  entry: new Uint8Array(),
  codecs: "",
  frame90k: null,
  early90k: 0,
};

/** A slot of `sizeBytes` with a picture of 1000 bytes every 40 ms. */
async function slotOf(sizeBytes: number | null, pictures: number, stream = VIDEO) {
  const sink = new PacketSink();
  const slot = new FragmentSlot(
    [stream],
    { run: 0, sizeBytes, timedFragments: 100, endDts90k: null, fileEnd90k: Infinity, offset90k: 0 },
    sink,
  );
  const out: Uint8Array[] = [];
  for (let i = 0; i < pictures; i++) {
    const time = i * 3600;
    slot.push({ track: 0, pts90k: time, dts90k: time, keyframe: i === 0, data: new Uint8Array(1000) });
    slot.keep();
    for (const chunk of sink.take()) out.push(chunk.slice());
  }
  slot.finish();
  do for (const chunk of sink.take()) out.push(chunk.slice()); while (slot.pad());
  return {
    bytes: await collect((async function* () {
      yield* out;
    })()),
    tally: slot.tally,
  };
}

test("FragmentSlot writes access units as their format trims them", async () => {
  const whole = await slotOf(null, 10);
  const { bytes, tally } = await slotOf(null, 10, { ...VIDEO, trim: (unit) => unit.subarray(400) });
  assertEquals([bytes.length, tally.lost], [whole.bytes.length - 4000, 0]);
});

test("FragmentSlot holds the reads of a fragment until it is written, and copies none of their parts", () => {
  let held = 0;
  const lender = { hold: () => void held++, release: () => void held-- };
  const options = { run: 0, sizeBytes: null, timedFragments: 9, endDts90k: null, fileEnd90k: Infinity, offset90k: 0 };
  const slot = new FragmentSlot([VIDEO], options, new PacketSink(), lender);
  // Four reads with six pictures each, less than a second and 2 MiB in all.
  const reads = Array.from({ length: 4 }, () => new Uint8Array(512 * 1024));
  for (let i = 0; i < 24; i++) {
    const data = reads[Math.floor(i / 6)]!.subarray((i % 6) * 80_000, (i % 6 + 1) * 80_000);
    slot.push({ track: 0, pts90k: i * 3600, dts90k: i * 3600, keyframe: i === 0, data });
    slot.keep();
  }
  assertEquals(held, 24);
  slot.finish();
  assertEquals(held, 0);
});

test("FragmentSlot leaves out what does not fit, counts it, and keeps the size", async () => {
  const { bytes, tally } = await slotOf(20_000, 50);
  assertEquals([bytes.length, tally.units], [20_000, 50]);
  assert(tally.dropped > 25 && tally.dropped < 40, `${tally.dropped} dropped`);
  assertEquals(typesOf(bytes).at(-1), "free");
  const empty = await slotOf(20_000, 0);
  assertEquals([typesOf(empty.bytes), empty.bytes.length, empty.tally.empty], [["free"], 20_000, 1]);
});

test("FragmentSlot cuts fragments of a second, and fills nothing where the size is not known", async () => {
  const { bytes, tally } = await slotOf(null, 100);
  assertEquals([typesOf(bytes).join(), tally.dropped], ["moof,mdat,moof,mdat,moof,mdat,moof,mdat", 0]);
});

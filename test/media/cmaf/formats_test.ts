/** Codec strings and sample entries of fragmented MP4. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { ac3Config, eac3Config } from "../../../src/media/codec/ac3-config.ts";
import { aacString, av1String, avcString, hevcString, vpxString } from "../../../src/media/codec/codec-strings.ts";
import { cmafFormat } from "../../../src/media/mux/cmaf/formats.ts";
import { vp9ConfigFrom } from "../../../src/media/codec/vpx-config.ts";
import type { Codec, Track } from "../../../src/media/model/types.ts";
import { ac3Frame, concatBytes, eac3Frame } from "../support/audio-builder.ts";
import { fixture, openBytes, seeded } from "../support/files.ts";

const bytes = (hex: string) => Uint8Array.from(hex.replaceAll(" ", "").match(/../g)!, (pair) => parseInt(pair, 16));

function track(codec: Codec, codecPrivate: Uint8Array | null, more: Partial<Track> = {}): Track {
  const isSound = ["aac", "opus", "flac", "ac3", "eac3"].includes(codec);
  return {
    id: 1,
    kind: isSound ? "audio" : "video",
    codec,
    codecId: codec,
    language: null,
    isDefault: true,
    codecPrivate,
    width: isSound ? null : 640,
    height: isSound ? null : 360,
    sampleRate: isSound ? 48_000 : null,
    channels: isSound ? 2 : null,
    ...more,
  };
}

const OPUS = bytes("4f707573486561640102380180bb0000000000");
const FLAC = bytes(`664c61430000002210001000${"00".repeat(30)}`);

test("codec strings say what the codec data says", () => {
  for (
    const [name, of, config] of [
      ["avc1.64001F", avcString, "0164001fffe1"],
      ["av01.0.05M.08", av1String, "81050c00"],
      ["av01.0.09H.10", av1String, "8109cc00"],
      ["av01.2.13M.12", av1String, "814d6000"],
      ["hvc1.1.6.L93.90", hevcString, "01016000000090000000000 05df000fcfdf8f800000f00"],
      ["hvc1.2.4.H150.90", hevcString, "0122200000009000000000 0096f000fcfdfafa00000f00"],
      ["mp4a.40.2", aacString, "1190"],
      ["mp4a.40.5", aacString, "2b11880 0"],
      ["mp4a.40.42", aacString, "f94640"],
      ["vp09.02.31.10", (config: Uint8Array) => vpxString("vp09", config), "021fa20202020000"],
      ["vp09.00.10.08.01.01.01.01.00", (config: Uint8Array) => vpxString("vp09", config), "000a820101010000"],
    ] as const
  ) assertEquals(of(bytes(config)), name);
});

test("codec strings are null for codec data that is cut off", () => {
  const none = new Uint8Array(1);
  assertEquals([avcString(none), av1String(none), hevcString(none), aacString(none), vpxString("vp09", none)], [
    null,
    null,
    null,
    null,
    null,
  ]);
});

test("vp9ConfigFrom() reads profile, depth and colours of a first picture, and of no other", () => {
  const text = (config: Uint8Array | null) => config === null ? null : vpxString("vp09", config);
  assertEquals(text(vp9ConfigFrom(bytes("82498342200027f0"), 640, 360)), "vp09.00.21.08");
  // Profile 2: ten bits, BT.709.
  assertEquals(
    text(vp9ConfigFrom(bytes("92498342 20000000"), 1920, 1080)),
    "vp09.02.40.10.01.01.01.01.00",
  );
  assertEquals(vp9ConfigFrom(bytes("8649834220000000"), 640, 360), null);
  assertEquals(vp9ConfigFrom(bytes("0249834220000000"), 640, 360), null);
  assertEquals(vp9ConfigFrom(new Uint8Array(), 640, 360), null);
});

test("cmafFormat() takes the priming of Opus into the times, and has none in the sample entry", () => {
  const format = cmafFormat(track("opus", OPUS))!;
  assertEquals([format.codecs, format.early90k], ["Opus", 585]);
  const at = format.entry.length - 11;
  assertEquals([...format.entry.subarray(at)], [0, 2, 0, 0, 0, 0, 0xbb, 0x80, 0, 0, 0]);
});

test("cmafFormat() keeps of FLAC its STREAMINFO alone, and knows the length of its frames", () => {
  const format = cmafFormat(track("flac", FLAC))!;
  assertEquals([format.codecs, format.frame90k], ["fLaC", 4096 * 90_000 / 48_000]);
});

test("ac3Config() and eac3Config() say what frames say", async () => {
  // 48 kHz, version 8, 3/2 channels and a low-frequency one, 448 kbit/s.
  assertEquals(ac3Config(ac3Frame()), bytes("103de0"));
  // 512 bytes in 32 ms: 128 kbit/s; version 16, 3/2.1.
  assertEquals(eac3Config(eac3Frame(512)), bytes("0400200f00"));
  // Left and right at the back (a pair), in a substream that depends on the first.
  const more = eac3Frame(512, 1);
  more.set([0x10, 0x20], 6);
  assertEquals(eac3Config(concatBytes([eac3Frame(512), more])), bytes("0800200f0280"));
  assertEquals([ac3Config(eac3Frame(512)), eac3Config(ac3Frame()), ac3Config(new Uint8Array(5))], [null, null, null]);
  const film = fixture("mp4-ac3.mp4");
  const { tracks } = await openBytes(film);
  const told = tracks.find(({ codec }) => codec === "ac3")!.codecPrivate!;
  const at = film.findIndex((_, i) => film[i] === 0x0b && film[i + 1] === 0x77 && ac3Config(film.subarray(i)) !== null);
  assertEquals(ac3Config(film.subarray(at)), told);
});

test("a film in Matroska has AC-3 in fragmented MP4, and reads its frames for that alone", async () => {
  const film = fixture("mkv-hevc-eac3.mkv");
  const { outputTracks, hls } = await openBytes(film, { fragmented: true });
  assertEquals(outputTracks.map(({ codec }) => codec), ["hevc", "eac3"]);
  assertEquals(hls.fragmented!.codecs[1], "ec-3");
  assertEquals((await openBytes(film)).outputTracks[1]!.codecPrivate, null);
});

test("cmafFormat() refuses what it cannot describe", () => {
  const avc = bytes("0164001fffe1");
  assert(cmafFormat(track("h264", avc)) !== null);
  assertEquals(cmafFormat(track("h264", avc, { isFramed: true })), null);
  assertEquals(cmafFormat(track("h264", avc, { width: null })), null);
  assertEquals(cmafFormat(track("vp9", null)), null);
  assertEquals(cmafFormat(track("mp3", null, { kind: "audio" })), null);
  assertEquals(cmafFormat(track("h264", avc, { kind: "subtitle" })), null);
});

test("cmafFormat() and vp9ConfigFrom() survive any codec data", () => {
  const random = seeded(45);
  const seeds: readonly (readonly [Codec, Uint8Array])[] = [
    ["h264", bytes("0164001fffe1")],
    ["hevc", bytes("010160000000b000000000005df000fcfdf8f800000f00")],
    ["av1", bytes("81050c00")],
    ["vp9", bytes("021fa20202020000")],
    ["aac", bytes("1190")],
    ["opus", OPUS],
    ["flac", FLAC],
    ["ac3", bytes("103de0")],
    ["eac3", bytes("0400200f00")],
  ];
  for (let round = 0; round < 3000; round++) {
    const [codec, seed] = seeds[round % seeds.length]!;
    const data = seed.slice(0, Math.ceil(random() * seed.length));
    for (let i = 0; i < 3; i++) data[Math.floor(random() * data.length)] = Math.floor(random() * 256);
    const format = cmafFormat(track(codec, data));
    if (format !== null) {
      assertEquals(new DataView(format.entry.buffer).getUint32(0), format.entry.length);
      assert(!/NaN|undefined|null/.test(format.codecs), format.codecs);
      assert((format.frame90k ?? 1) > 0 && format.early90k >= 0);
    }
    vp9ConfigFrom(data, 640, 360);
    const frame = round % 2 === 0 ? ac3Frame() : concatBytes([eac3Frame(64), eac3Frame(64, 1)]);
    for (let i = 0; i < 4; i++) frame[2 + Math.floor(random() * 70)] = Math.floor(random() * 256);
    for (const config of [ac3Config(frame), eac3Config(frame)]) assert(config === null || config.length <= 40);
  }
});

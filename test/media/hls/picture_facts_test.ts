/** What playlists and init segments say of pictures: frame rate, range of brightness, Dolby Vision. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { cmafFormat } from "../../../src/media/mux/cmaf/formats.ts";
import { pictureAttributes } from "../../../src/media/codec/picture-facts.ts";
import type { Track } from "../../../src/media/model/types.ts";
import { cluster, element, matroska, simpleBlock, trackEntry } from "../mkv-support.ts";
import { openBytes } from "../support/files.ts";

const PICTURE: Track = {
  id: 1,
  kind: "video",
  codec: "av1",
  codecId: "V_AV1",
  language: null,
  isDefault: true,
  codecPrivate: Uint8Array.of(0x81, 0x05, 0x0c, 0),
  width: 64,
  height: 64,
  sampleRate: null,
  channels: null,
};
const colours = (transfer: number) => ({ primaries: 9, transfer, matrix: 9, isFullRange: false });
/** Profile 10, level 9, base layer with a fallback of this compatibility. */
const dolbyVision = (compatibility: number) => ({
  profile: 10,
  compatibility,
  config: Uint8Array.of(1, 0, 10 << 1, (9 << 3) | 5, compatibility << 4),
});

test("pictureAttributes() names the frame rate, the range of brightness and what Dolby Vision adds", () => {
  const cases: readonly (readonly [Partial<Track>, readonly string[]])[] = [
    [{}, []],
    [{ frameRate: 24_000 / 1001, colours: colours(1) }, ["FRAME-RATE=23.976", "VIDEO-RANGE=SDR"]],
    [{ colours: colours(16) }, ["VIDEO-RANGE=PQ"]],
    [{ colours: colours(18), dolbyVision: dolbyVision(4) }, [
      'SUPPLEMENTAL-CODECS="dav1.10.09/db4h"',
      "VIDEO-RANGE=HLG",
    ]],
    [{ codec: "hevc", dolbyVision: { ...dolbyVision(1), profile: 8 } }, ['SUPPLEMENTAL-CODECS="dvh1.08.09/db1p"']],
    // Others show nothing right of it: it is no supplement.
    [{ dolbyVision: dolbyVision(0) }, []],
  ];
  for (const [facts, expected] of cases) assertEquals(pictureAttributes({ ...PICTURE, ...facts }), expected);
});

test("cmafFormat() puts colours and Dolby Vision's record into the sample entry", () => {
  const entry = (facts: Partial<Track>) =>
    new TextDecoder("latin1").decode(cmafFormat({ ...PICTURE, ...facts })!.entry);
  assert(!/colr|dv[cv]C/.test(entry({})));
  const both = entry({ colours: colours(16), dolbyVision: dolbyVision(1) });
  assert(both.includes("\0\0\0\x13colrnclx\0\x09\0\x10\0\x09\0"), both);
  assert(both.includes("\0\0\0\x20dvvC\x01\0\x14\x4d\x10"), both);
});

test("openMatroska() reads the colours and the frame rate of a track", async () => {
  const colour = element(0x55b0, [element(0x55b1, 9), element(0x55b9, 1), element(0x55ba, 16), element(0x55bb, 9)]);
  const size = element(0xe0, [element(0xb0, 64), element(0xba, 64), colour]);
  const tracks = [trackEntry(1, "video", "V_AV1", [
    element(0x23e383, 40_000_000),
    element(0x63a2, PICTURE.codecPrivate!),
    size,
  ])];
  const clusters = [cluster(0, [simpleBlock(1, 0, 0x80, new Uint8Array(100))])];
  const { tracks: [track] } = await openBytes(matroska(clusters, { tracks, durationMs: 1000 }));
  assertEquals([track!.colours, track!.frameRate], [colours(16), 25]);
});

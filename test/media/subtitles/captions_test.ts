/** Captions in pictures. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { CaptionFinder } from "../../../src/media/codec/captions.ts";
import { renderMultivariant } from "../../../src/media/hls/multivariant.ts";
import { seeded } from "../../support/random.ts";

/** A picture with these constructs, each a head and two bytes, in the SEI of H.264. */
function picture(...constructs: readonly (readonly [number, number, number])[]): Uint8Array {
  const data = [0x40 | constructs.length, 0xff, ...constructs.flat(), 0xff];
  return Uint8Array.of(0, 0, 1, 6, 4, 8 + data.length, 0xb5, 0, 0x31, 0x47, 0x41, 0x39, 0x34, 3, ...data, 0x80);
}

const found = (...pictures: readonly Uint8Array[]) => {
  const finder = new CaptionFinder();
  for (const one of pictures) finder.push(one);
  return finder.found;
};

test("CaptionFinder names the captions of both kinds, and none that are only room for some", () => {
  assertEquals(found(picture([0xfc, 0x80, 0x80])), ["CC1"]);
  assertEquals(found(picture([0xfc, 0x94, 0x20], [0xfd, 0x80, 0x80])), ["CC1"]);
  assertEquals(found(picture([0xfd, 0x15, 0x2c])), ["CC3"]);
  assertEquals(found(picture([0xff, 0x02, 0x21], [0xfe, 0x41, 0])), ["SERVICE1"]);
  assertEquals(found(picture([0xff, 0x42, 0x41], [0xfc, 0x80, 0x80])), ["CC1", "SERVICE2"]);
  assertEquals(found(picture([0xf8, 0x94, 0x20], [0xfa, 0, 0]), Uint8Array.of(0, 0, 1, 9, 0x47, 0x41)), []);
});

test("CaptionFinder survives any bytes", () => {
  const random = seeded(9);
  for (let round = 0; round < 500; round++) {
    const bytes = picture([0xfc, 0x94, 0x20], [0xff, 0x02, 0x21]).slice(0, Math.ceil(random() * 30));
    bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    assert(found(bytes).every((name) => /^(?:CC[13]|SERVICE[1-6])$/.test(name)));
  }
});

test("renderMultivariant() lists captions, and says to which variant they belong", () => {
  const variant = { bandwidth: 1000, averageBandwidth: null, codecs: [], width: null, height: null };
  const of = (captions: readonly string[]) =>
    renderMultivariant({ videoUrl: "v", sounds: [], subtitles: [], captions, variants: [variant] }).split("\n");
  assertEquals(of(["CC1", "SERVICE1"]), [
    "#EXTM3U",
    "#EXT-X-VERSION:7",
    '#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="captions",NAME="CC1",DEFAULT=NO,AUTOSELECT=NO,INSTREAM-ID="CC1"',
    '#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="captions",NAME="SERVICE1",DEFAULT=NO,AUTOSELECT=NO,INSTREAM-ID="SERVICE1"',
    '#EXT-X-STREAM-INF:BANDWIDTH=1000,CLOSED-CAPTIONS="captions"',
    "v",
    "",
  ]);
  assertEquals(of([]), ["#EXTM3U", "#EXT-X-VERSION:4", "#EXT-X-STREAM-INF:BANDWIDTH=1000", "v", ""]);
});

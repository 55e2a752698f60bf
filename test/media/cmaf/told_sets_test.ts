/** Parameter sets of H.264 and HEVC in fragmented MP4: in the sample entry, and not among the pictures. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { unitsByLength } from "../../../src/bytes/nal-units.ts";
import { toldSetsTrimmer } from "../../../src/media/mux/cmaf/told-sets.ts";
import { configOf, type NalCodec, setsIn, typeOf } from "../../../src/media/codec/parameter-sets.ts";
import { fixture, openBytes } from "../support/files.ts";

const LENGTH_BYTES = 4;
const withLengths = (units: readonly Uint8Array[]) =>
  concatBytes(units.flatMap((unit) => [Uint8Array.of(0, 0, unit.length >> 8, unit.length & 255), unit]));

/** The sets of a real film, and its codec data. */
async function setsOf(name: string): Promise<[Uint8Array[], Uint8Array]> {
  const { outputTracks } = await openBytes(fixture(name), { fragmented: true });
  const { codec, codecPrivate } = outputTracks[0]!;
  // Sets stand after a count and their lengths; nothing else in these files looks like one.
  const units: Uint8Array[] = [];
  for (let at = codec === "h264" ? 6 : 26; at + 2 < codecPrivate!.length;) {
    const length = codecPrivate![at]! * 256 + codecPrivate![at + 1]!;
    units.push(codecPrivate!.subarray(at + 2, at + 2 + length));
    at += 2 + length + (codec === "h264" ? 1 : 3);
  }
  const sets = setsIn(codec as NalCodec, units);
  return [sets.flat(), configOf(codec as NalCodec, sets, LENGTH_BYTES)!];
}

/** By codec: a film, a delimiter, SEI, a slice, and their types with those of the sets. */
const KINDS = [
  ["h264", "mp4-front.mp4", [9, 0xf0], [6, 1, 2], [0x65, 3, 4], [9, 7, 8, 6, 5]],
  ["hevc", "mp4-hevc.mp4", [0x46, 1, 0x50], [0x4e, 1, 2], [0x26, 1, 3], [35, 32, 33, 34, 39, 19]],
] as const;

for (const [codec, name, delimiter, sei, slice, types] of KINDS) {
  test(`toldSetsTrimmer() leaves out the sets of ${codec} that the sample entry has, and no others`, async () => {
    const [sets, config] = await setsOf(name);
    const trim = toldSetsTrimmer(codec, config);
    const picture = (own: readonly Uint8Array[]) =>
      withLengths([Uint8Array.from(delimiter), ...own, Uint8Array.from(sei), Uint8Array.from(slice)]);
    const typesIn = (bytes: Uint8Array) => unitsByLength(bytes, LENGTH_BYTES)!.map((unit) => typeOf(codec, unit));
    assertEquals(typesIn(picture(sets)), [...types]);
    const setTypes: ReadonlySet<number> = new Set(sets.map((unit) => typeOf(codec, unit)));
    assertEquals(typesIn(trim(picture(sets))), types.filter((type) => !setTypes.has(type)));
    const others = sets.map((unit) => concatBytes([unit, Uint8Array.of(1)]));
    assertEquals(typesIn(trim(picture(others))), [...types]);
    // Nothing is copied where nothing is left out, nor where the sets come first.
    const plain = picture([]);
    assertEquals(trim(plain), plain);
    assert(trim(plain) === plain);
    const first = withLengths([...sets, Uint8Array.from(slice)]);
    assertEquals(trim(first).buffer, first.buffer);
    assertEquals(trim(withLengths(sets)), withLengths(sets));
    assertEquals(trim(Uint8Array.of(0, 0, 0, 200, 7)), Uint8Array.of(0, 0, 0, 200, 7));
  });
}

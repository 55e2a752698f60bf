/** Fragmented MP4 of HLS as a transport stream. */
import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { MillraceError } from "../../../src/errors.ts";
import { TsUnits } from "../../../src/media/verify/ts-units.ts";
import { FragmentMuxer } from "../../../src/playback/channel/fragment-muxer.ts";
import { checkTs } from "../../support/ts-check.ts";
import { seededBelow } from "../../support/random.ts";
import { fragmentsOf, renamed } from "./fragments.ts";

const { init, segments } = fragmentsOf();

/** The stream of `parts`, a segment each, in chunks of `bytes()`. */
function muxed(parts: readonly Uint8Array[], bytes: () => number, muxer = new FragmentMuxer()): Uint8Array {
  return concatBytes(parts.flatMap((part) => {
    const out: Uint8Array[] = [];
    muxer.begin(init);
    for (let at = 0; at < part.length;) out.push(muxer.push(part.subarray(at, at += bytes())));
    return [...out, muxer.end()];
  }));
}

const unitsOf = (ts: Uint8Array) => {
  const units = new TsUnits(true);
  units.push(ts);
  return units.finish().map(({ units }) => units);
};

test("FragmentMuxer makes a sound transport stream of every picture and frame, in chunks of any size", () => {
  const whole = muxed(segments, () => Infinity);
  const { problems, streams, pcrs } = checkTs(whole, { isSegment: false });
  assertEquals([problems, streams.map(({ streamType }) => streamType)], [[], [0x1b, 0x0f]]);
  assertEquals(unitsOf(whole), [150, 283]);
  assert(pcrs.length >= 150);
  const below = seededBelow(7);
  assertEquals(muxed(segments, () => 1 + below(9000)), whole);
});

test("FragmentMuxer keeps the times of the fragments, so that playlists of one clock stay together", () => {
  const first = (ts: Uint8Array) => checkTs(ts, { isSegment: false }).streams.map(({ units }) => units[0]!.pts);
  const later = first(muxed(segments.slice(1), () => Infinity));
  const all = checkTs(muxed(segments, () => Infinity), { isSegment: false }).streams;
  assert(later.every((pts, i) => all[i]!.units.some((unit) => unit.pts === pts)));
  const exact = first(muxed(segments.slice(1), () => Infinity, new FragmentMuxer({ keepsTimes: true })));
  assertEquals(later.map((pts, i) => pts - exact[i]!), [126_000, 126_000]);
});

test("FragmentMuxer puts fragments of single tracks together, and forgets a segment that broke off", () => {
  const muxer = new FragmentMuxer();
  muxer.begin(init);
  muxer.push(segments[0]!.subarray(0, 5000));
  const whole = muxed(segments, () => Infinity);
  assertEquals(muxed(segments, () => Infinity, muxer), whole);
  // A movie box inside the segment does as well.
  const inside = new FragmentMuxer();
  inside.begin(null);
  const out = concatBytes([inside.push(concatBytes([init, ...segments])), inside.end()]);
  assertEquals(unitsOf(out), [150, 283]);
});

test("FragmentMuxer.begin() refuses what is encrypted, and codecs that MPEG TS does not carry", () => {
  const table: [Uint8Array, string][] = [
    [renamed(init, "avc1", "encv"), "they are encrypted (DRM)"],
    [renamed(init, "avc1", "av01"), "MPEG TS cannot carry them (av01, mp4a)"],
    [init.subarray(0, 24), "has no movie box"],
  ];
  for (const [map, says] of table) {
    assertThrows(() => new FragmentMuxer().begin(map), MillraceError, says);
  }
});

test("FragmentMuxer.push() refuses fragments larger than any, and damaged ones", () => {
  const muxer = new FragmentMuxer();
  muxer.begin(init);
  const moof = segments[0]!.slice(0, new DataView(segments[0]!.buffer).getUint32(0));
  muxer.push(moof);
  const header = new Uint8Array(8);
  new DataView(header.buffer).setUint32(0, 2 ** 30);
  header.set(new TextEncoder().encode("mdat"), 4);
  assertThrows(() => muxer.push(header), MillraceError, "more than 32 MiB");
  muxer.begin(init);
  assertThrows(() => muxer.push(new Uint8Array(32)), MillraceError, "no MP4 box");
  muxer.begin(init);
  assert(muxer.push(segments[0]!).length > 0, "the next segment plays");
});

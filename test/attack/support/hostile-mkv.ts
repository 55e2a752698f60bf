/** Matroska files that no muxer makes: each is small and demands much. */
import { concatBytes } from "../../../src/bytes/hex.ts";
import {
  cluster,
  EBML_HEAD,
  element,
  floatBytes,
  simpleBlock,
  trackEntry,
  uintBytes,
} from "../../media/mkv-support.ts";

const MIB = 1024 * 1024;
const SEGMENT = 0x18538067;
const VIDEO = trackEntry(1, "video", "V_MPEG2");
const AUDIO = trackEntry(2, "audio", "A_AC3");
const MP3 = (number: number) => trackEntry(number, "audio", "A_MPEG/L3");

/** A file of one segment of unknown size. */
function file(
  children: readonly Uint8Array[],
  options: { durationMs?: number; tracks?: readonly Uint8Array[] } = {},
): Uint8Array {
  const info = element(
    0x1549a966,
    options.durationMs === undefined ? [] : [
      element(0x4489, floatBytes(options.durationMs)),
    ],
  );
  const head = concatBytes([
    EBML_HEAD,
    uintBytes(SEGMENT),
    new Uint8Array([1, 255, 255, 255, 255, 255, 255, 255]),
    info,
    element(0x1654ae6b, options.tracks ?? [VIDEO, AUDIO]),
  ]);
  return concatBytes([head, ...children]);
}

/** `bytes` again and again until they fill `size` bytes, without a torn one at the end. */
function repeated(bytes: Uint8Array, size: number): Uint8Array {
  const count = Math.floor(size / bytes.length);
  const out = new Uint8Array(count * bytes.length);
  out.set(bytes);
  for (let filled = bytes.length; filled < out.length; filled *= 2) {
    out.copyWithin(filled, 0, Math.min(filled, out.length - filled));
  }
  return out;
}

/** An MPEG-2 picture of this many bytes. */
const picture = (size: number) => new Uint8Array(size).fill(0x41);
const keyframe = cluster(0, [simpleBlock(1, 0, 0x80, picture(1000))]);

/** A Cues element of points made by `point`. */
function cuesOf(
  count: number,
  point: (i: number) => readonly [time: number, position: number, block: number],
): Uint8Array {
  const points = Array.from({ length: count }, (_, i) => {
    const [time, position, block] = point(i);
    return element(0xbb, [
      element(0xb3, time),
      element(0xb7, [element(0xf7, 1), element(0xf1, position), element(0xf0, block)]),
    ]);
  });
  return element(0x1c53bb6b, points);
}

/** A film with nothing wrong, of 8 Mbit/s. */
export function harmless(): Uint8Array {
  const clusters = Array.from(
    { length: 60 },
    (_, second) =>
      cluster(
        second * 1000,
        Array.from({ length: 25 }, (_, i) => simpleBlock(1, i * 40, i === 0 ? 0x80 : 0, picture(40_000))),
      ),
  );
  return file(clusters, { durationMs: 60_000, tracks: [VIDEO] });
}

/** The files by name, each made when it is asked for. */
export const HOSTILE: Readonly<Record<string, () => Uint8Array>> = {
  "one run whose pictures all have one time": () =>
    file([
      repeated(
        cluster(0, [
          simpleBlock(1, 0, 0x80, picture(131_072)),
          ...Array.from({ length: 7 }, () => simpleBlock(1, 0, 0, picture(131_072))),
        ]),
        120 * MIB,
      ),
    ], { durationMs: 1000 }),
  "a hundred thousand years": () => file([keyframe], { durationMs: 1e15 }),
  "a hundred thousand years of voids": () =>
    file([keyframe, repeated(new Uint8Array([0xec, 0x80]), 4 * MIB)], { durationMs: 1e15 }),
  "cues for 250 tracks": () =>
    file([cuesOf(30_000, (i) => [i * 2000, 0, i]), keyframe], {
      tracks: [VIDEO, ...Array.from({ length: 249 }, (_, i) => trackEntry(i + 2, "audio", "A_AC3"))],
    }),
  "cues that run backwards": () => file([cuesOf(60_000, (i) => [1e9 - i, 1e6 - (i % 1000), 60_000 - i]), keyframe]),
  "cues of empty elements": () =>
    file([element(0x1c53bb6b, repeated(new Uint8Array([0xbb, 0x80]), 15 * MIB)), keyframe]),
  "a track of empty elements": () =>
    file([keyframe], {
      tracks: [VIDEO, element(0xae, repeated(new Uint8Array([0xd7, 0x80]), 7 * MIB))],
    }),
  "seek heads without end": () =>
    file([
      element(
        0x114d9b74,
        Array.from({ length: 60_000 }, (_, i) =>
          element(0x4dbb, [element(0x53ab, 0x10000000 + i), element(0x53ac, uintBytes(50, 8))])),
      ),
      keyframe,
    ]),
  "voids of no bytes": () =>
    file([
      element(0x1f43b675, [
        element(0xe7, 0),
        simpleBlock(1, 0, 0x80, picture(1000)),
        repeated(new Uint8Array([0xec, 0x80]), 12 * MIB),
      ]),
    ], { durationMs: 2000 }),
  "laces of empty frames": () =>
    file([
      cluster(0, [
        simpleBlock(1, 0, 0x80, picture(1000)),
        repeated(simpleBlock(2, 0, 0x84, new Uint8Array([0xff])), 12 * MIB),
      ]),
    ], { durationMs: 10_000 }),
  "laces of small frames with long stripped headers": () =>
    file([
      cluster(0, [
        simpleBlock(1, 0, 0x80, picture(1000)),
        repeated(simpleBlock(2, 0, 0x84, new Uint8Array(257).fill(0x55, 1).fill(0xff, 0, 1)), 8 * MIB),
      ]),
    ], {
      durationMs: 10_000,
      tracks: [
        VIDEO,
        trackEntry(2, "audio", "A_MPEG/L3", [
          element(0x6d80, [element(0x6240, [element(0x5034, [
            element(0x4254, 3),
            element(0x4255, new Uint8Array(1024).fill(0xff)),
          ])])]),
        ]),
      ],
    }),
  "block groups of empty elements": () =>
    file([
      cluster(0, [
        simpleBlock(1, 0, 0x80, picture(1000)),
        repeated(element(0xa0, repeated(new Uint8Array([0xfb, 0x80]), 7 * MIB)), 21 * MIB),
      ]),
    ], { durationMs: 10_000 }),
  "clusters that are damaged at once": () =>
    file([
      keyframe,
      repeated(concatBytes([uintBytes(0x1f43b675), new Uint8Array([0xff, 0xe7, 0x81, 0x00, 0x00])]), 12 * MIB),
    ], { durationMs: 10_000 }),
  "pictures of 7 MiB": () =>
    file([repeated(cluster(0, [simpleBlock(1, 0, 0x80, picture(7 * MIB))]), 60 * MIB)], { durationMs: 10_000 }),
  "pictures of 31 MiB": () =>
    file([repeated(cluster(0, [simpleBlock(1, 0, 0x80, picture(31 * MIB))]), 63 * MIB)], { durationMs: 10_000 }),
  "small pictures apart from one another": () =>
    file([
      repeated(cluster(0, [simpleBlock(1, 0, 0, picture(10)), element(0xec, new Uint8Array(520 * 1024))]), 70 * MIB),
    ], { durationMs: 10_000, tracks: [VIDEO, MP3(2)] }),
};

/** Fragmented MP4 as different muxers write it: a clip of one video and one audio track, cut into fragments of a second. */
import { concatBytes } from "../../../src/bytes/hex.ts";
import { aacEntry, avcEntry, box, fullBox, movieBox, nalUnit, text, type TrackSpec, u32, u64 } from "./mp4-builder.ts";

/** An access unit of the clip. */
interface Unit {
  readonly data: Uint8Array;
  readonly keyframe: boolean;
}

/** A track of the clip. */
interface ClipTrack {
  readonly id: number;
  readonly kind: "vide" | "soun";
  readonly timescale: number;
  readonly delta: number;
  readonly entry: Uint8Array;
  readonly perSecond: number;
  readonly units: readonly Unit[];
}

/** Units of `seconds` seconds, each second with 25 pictures that begin with a random access point, and some 47 frames of sound. */
export function clipOf(seconds: number): readonly [ClipTrack, ClipTrack] {
  const pictures = Array.from({ length: 25 * seconds }, (_, i) => {
    const keyframe = i % 25 === 0;
    return { keyframe, data: nalUnit(keyframe ? 0x65 : 0x41, keyframe ? 3000 : 400 + i % 50) };
  });
  const sound = Array.from({ length: 47 * seconds }, (_, i) => {
    return { keyframe: true, data: new Uint8Array(150 + i % 100).fill(i) };
  });
  return [
    { id: 1, kind: "vide", timescale: 25_000, delta: 1000, entry: avcEntry(), perSecond: 25, units: pictures },
    { id: 2, kind: "soun", timescale: 48_000, delta: 1024, entry: aacEntry(), perSecond: 47, units: sound },
  ];
}

/** A piece of the file, and where it goes. */
interface Fragment {
  readonly second: number;
  readonly tracks: readonly ClipTrack[];
  readonly bytes: Uint8Array;
  /** Place of each track's first access unit in the fragment. */
  readonly dataAt: readonly number[];
}

/** How a fragment states its time. */
export type TimeForm = "tfdt" | "tfxd";

const TFXD = [0x6d, 0x1d, 0x9b, 0x05, 0x42, 0xd5, 0x44, 0xe6, 0x80, 0xe2, 0x14, 0x1d, 0xaf, 0xf7, 0x57, 0xb2];

/** The fragment of `tracks` for `second`, with its data; it says that it begins `earlyUnits` before its time. */
export function clipFragment(
  tracks: readonly ClipTrack[],
  second: number,
  form: TimeForm = "tfdt",
  earlyUnits = 0,
): Fragment {
  const own = tracks.map(({ units, perSecond }) => units.slice(second * perSecond, (second + 1) * perSecond));
  const sizes = own.map((units) => units.reduce((sum, { data }) => sum + data.length, 0));
  const moof = (starts: readonly number[]) =>
    box(
      "moof",
      fullBox("mfhd", 0, 0, u32(second + 1)),
      ...tracks.map((track, t) => {
        const time = Math.max(0, second * track.perSecond * track.delta - earlyUnits);
        const run = own[t]!.map(({ data, keyframe }) => u32(data.length, keyframe ? 0x2000000 : 0x1010000));
        return box(
          "traf",
          fullBox("tfhd", 0, 0x20008, u32(track.id, track.delta)),
          form === "tfdt"
            ? fullBox("tfdt", 1, 0, u64(time))
            : box("uuid", Uint8Array.from(TFXD), u32(0x1000000), u64(time, track.perSecond * track.delta)),
          fullBox("trun", 0, 0x601, u32(own[t]!.length, starts[t]!), ...run),
        );
      }),
    );
  const head = moof(tracks.map(() => 0)).length + 8;
  const dataAt = tracks.map((_, t) => head + sizes.slice(0, t).reduce((sum, size) => sum + size, 0));
  const media = own.flatMap((units) => units.map(({ data }) => data));
  return { second, tracks, bytes: concatBytes([moof(dataAt), box("mdat", ...media)]), dataAt };
}

const EMPTY = [
  fullBox("stts", 0, 0, u32(0)),
  fullBox("stsc", 0, 0, u32(0)),
  fullBox("stsz", 0, 0, u32(0, 0)),
  fullBox("stco", 0, 0, u32(0)),
];

/** `moov` of the clip, with the tables from `tables` or none; `fragmented`: fragments follow. */
export function clipMovie(
  clip: readonly ClipTrack[],
  fragmented: boolean,
  tables: (track: ClipTrack) => readonly Uint8Array[] = () => EMPTY,
): Uint8Array {
  const movie = movieBox(clip.map((track): TrackSpec => ({ ...track, tables: tables(track) })));
  if (!fragmented) return movie;
  const defaults = box("mvex", ...clip.map(({ id }) => fullBox("trex", 0, 0, u32(id, 1, 0, 0, 0))));
  return concatBytes([u32(movie.length + defaults.length), movie.subarray(4), defaults]);
}

/** Tables for access units of `track` in chunks at `chunks`, `perChunk` in each. */
export function clipTables(track: ClipTrack, chunks: readonly number[], perChunk: number): Uint8Array[] {
  const units = track.units.slice(0, chunks.length * perChunk);
  const keyframes = units.flatMap(({ keyframe }, i) => keyframe ? [i + 1] : []);
  return [
    fullBox("stts", 0, 0, u32(1, units.length, track.delta)),
    fullBox("stsc", 0, 0, u32(1, 1, perChunk, 1)),
    fullBox("stsz", 0, 0, u32(0, units.length, ...units.map(({ data }) => data.length))),
    fullBox("stco", 0, 0, u32(chunks.length, ...chunks)),
    ...(track.kind === "vide" ? [fullBox("stss", 0, 0, u32(keyframes.length, ...keyframes))] : []),
  ];
}

/** `sidx` of `track` with references of these sizes, one second each. */
export function sidx(track: ClipTrack, sizes: readonly number[], startS = 0): Uint8Array {
  const references = sizes.map((size) => u32(size, track.timescale, 0x90000000));
  return fullBox(
    "sidx",
    0,
    0,
    u32(track.id, track.timescale, startS * track.timescale, 0, sizes.length),
    ...references,
  );
}

/** `mfra` of `track` whose fragments of the seconds 0, 1 … begin at `offsets`. */
export function mfra(track: ClipTrack, offsets: readonly number[]): Uint8Array {
  const duration = track.perSecond * track.delta;
  const entries = offsets.map((offset, second) => u32(second * duration, offset, 0x01010100));
  const list = fullBox(
    "tfra",
    0,
    0,
    u32(track.id, 0, offsets.length),
    ...entries.map((entry) => entry.subarray(0, 11)),
  );
  const tail = (size: number) => fullBox("mfro", 0, 0, u32(size));
  return box("mfra", list, tail(8 + list.length + tail(0).length));
}

/** `ftyp`. */
export const FTYP = box("ftyp", text("isom"), u32(0), text("isom"));

/** Joins parts; `at` is the place of each. */
export function layOut(parts: readonly Uint8Array[]): { readonly bytes: Uint8Array; readonly at: readonly number[] } {
  let offset = 0;
  const at = parts.map((part) => (offset += part.length) - part.length);
  return { bytes: concatBytes(parts), at };
}

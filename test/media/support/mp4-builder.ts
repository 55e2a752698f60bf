/** Builds small MP4 files for tests: just boxes, with every number in the test's hands. */
import { concatBytes } from "../../../src/bytes/hex.ts";

/** Bytes of big-endian 32-bit numbers. */
export function u32(...values: number[]): Uint8Array {
  const out = new Uint8Array(values.length * 4);
  const view = new DataView(out.buffer);
  for (const [i, value] of values.entries()) view.setUint32(i * 4, value >>> 0);
  return out;
}

/** Bytes of big-endian 64-bit numbers. */
export function u64(...values: number[]): Uint8Array {
  return u32(...values.flatMap((value) => [Math.floor(value / 2 ** 32), value % 2 ** 32]));
}

/** ASCII. */
export function text(characters: string): Uint8Array {
  return Uint8Array.from(characters, (character) => character.charCodeAt(0));
}

/** A box. */
export function box(type: string, ...parts: Uint8Array[]): Uint8Array {
  const body = concatBytes(parts);
  return concatBytes([u32(body.length + 8), text(type), body]);
}

/** A full box. */
export function fullBox(type: string, version: number, flags: number, ...parts: Uint8Array[]): Uint8Array {
  return box(type, u32(version * 2 ** 24 + flags), ...parts);
}

/** A video or audio track of the movie. */
export interface TrackSpec {
  readonly id: number;
  readonly kind: "vide" | "soun";
  readonly timescale: number;
  readonly entry: Uint8Array;
  /** Sample entries after that one. */
  readonly moreEntries?: readonly Uint8Array[];
  /** Boxes of `stbl` but `stsd`. */
  readonly tables: readonly Uint8Array[];
  readonly language?: string;
  readonly edits?: Uint8Array;
  readonly isEnabled?: boolean;
  /** First two numbers of the matrix: cosine and sine of the turn. */
  readonly turn?: readonly [number, number];
}

/** An H.264 sample entry whose configuration has NAL unit lengths of `lengthBytes`. */
export function avcEntry(lengthBytes = 4, sps = [0x67, 1, 2, 3], pps = [0x68, 4]): Uint8Array {
  const config = [
    1,
    100,
    0,
    31,
    0xfc | (lengthBytes - 1),
    0xe1,
    sps.length >> 8,
    sps.length & 0xff,
    ...sps,
    1,
    0,
    pps.length,
    ...pps,
  ];
  const fixed = new Uint8Array(78);
  fixed.set([0, 64, 0, 48], 24);
  return box("avc1", fixed, box("avcC", Uint8Array.from(config)));
}

/** An AAC LC sample entry, 48 kHz stereo unless told otherwise. */
export function aacEntry(config = [0x11, 0x90]): Uint8Array {
  const fixed = new Uint8Array(28);
  fixed.set([0, 2], 16);
  fixed.set([0xbb, 0x80], 24);
  const specific = [5, config.length, ...config];
  const decoder = [4, 13 + specific.length, 0x40, 0x15, ...new Array(11).fill(0), ...specific];
  const descriptor = Uint8Array.from([3, 3 + decoder.length, 0, 0, 0, ...decoder]);
  return box("mp4a", fixed, fullBox("esds", 0, 0, descriptor));
}

/** `trak`. */
export function trackBox(spec: TrackSpec): Uint8Array {
  const letters = spec.language ?? "und";
  const packed = [...letters].reduce((bits, letter) => bits * 32 + letter.charCodeAt(0) - 0x60, 0);
  const entries = [spec.entry, ...spec.moreEntries ?? []];
  const rest = new Uint8Array(60);
  if (spec.turn) rest.set(u32(...spec.turn.map((value) => value * 0x10000)), 16);
  const edits = spec.edits === undefined ? [] : [box("edts", spec.edits)];
  return box(
    "trak",
    fullBox("tkhd", 0, spec.isEnabled === false ? 0 : 1, u32(0, 0, spec.id, 0, 0), rest),
    ...edits,
    box(
      "mdia",
      fullBox("mdhd", 0, 0, u32(0, 0, spec.timescale, 0, packed * 65536)),
      fullBox("hdlr", 0, 0, u32(0), text(spec.kind), new Uint8Array(13)),
      box("minf", box("stbl", fullBox("stsd", 0, 0, u32(entries.length), ...entries), ...spec.tables)),
    ),
  );
}

/** `moov` of tracks. */
export function movieBox(tracks: readonly TrackSpec[], timescale = 1000, duration = 0): Uint8Array {
  return box(
    "moov",
    fullBox("mvhd", 0, 0, u32(0, 0, timescale, duration), new Uint8Array(80)),
    ...tracks.map(trackBox),
  );
}

/** Sample table boxes for access units that lie one after the other from `offset`. */
export function contiguousTables(sizes: readonly number[], delta: number, offset: number): Uint8Array[] {
  return [
    fullBox("stts", 0, 0, u32(1, sizes.length, delta)),
    fullBox("stsc", 0, 0, u32(1, 1, sizes.length, 1)),
    fullBox("stsz", 0, 0, u32(0, sizes.length, ...sizes)),
    fullBox("stco", 0, 0, u32(1, offset)),
  ];
}

/** An access unit of one NAL unit of `size` bytes in all, with a length field of `lengthBytes`. */
export function nalUnit(type: number, size: number, lengthBytes = 4): Uint8Array {
  const out = new Uint8Array(size).fill(0x55);
  for (let i = 0, rest = size - lengthBytes; i < lengthBytes; i++, rest = Math.floor(rest / 256)) {
    out[lengthBytes - 1 - i] = rest % 256;
  }
  out[lengthBytes] = type;
  return out;
}

const FTYP = box("ftyp", text("isom"), u32(0), text("isom"));

/** A file with the movie in front: `movie` gets the position of the media. */
export function fileOf(movie: (mediaOffset: number) => Uint8Array, media: readonly Uint8Array[]): Uint8Array {
  const offset = FTYP.length + movie(0).length + 8;
  return concatBytes([FTYP, movie(offset), box("mdat", ...media)]);
}

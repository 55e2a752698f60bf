/** Hostile media files: small on the wire, with large claims. */
import { concatBytes } from "../../../src/bytes/hex.ts";
import { FLAC_RATE, flacHead } from "./lossless-builder.ts";
import { avcEntry, box, fileOf, fullBox, movieBox, text, type TrackSpec, u32, u64 } from "./mp4-builder.ts";

/** A video track with these tables. */
function video(tables: readonly Uint8Array[], timescale = 90_000, entry = avcEntry()): TrackSpec {
  return { id: 1, kind: "vide", timescale, entry, tables };
}

/** `count` access units of `size` bytes, `delta` ticks of 90 kHz apart, all random access points unless `keyframes` names them. */
export function tabledFile(
  { count, size = 1, delta, keyframes, entry, mediaBytes }: {
    count: number;
    size?: number;
    delta: number;
    keyframes?: readonly number[];
    entry?: Uint8Array;
    mediaBytes?: number;
  },
): Uint8Array {
  const tables = (offset: number) => [
    fullBox("stts", 0, 0, u32(1, count, delta)),
    fullBox("stsc", 0, 0, u32(1, 1, count, 1)),
    fullBox("stsz", 0, 0, u32(size, count)),
    fullBox("stco", 0, 0, u32(1, offset)),
    ...(keyframes === undefined ? [] : [fullBox("stss", 0, 0, u32(keyframes.length, ...keyframes))]),
  ];
  return fileOf((offset) => movieBox([video(tables(offset), 90_000, entry)]), [
    new Uint8Array(mediaBytes ?? count * size),
  ]);
}

/** A film whose index has `count` small access units, no two of them alike: its tables are as large as they claim. */
export function irregularFile(count: number): Uint8Array {
  let seed = 1;
  const random = (below: number) => (seed = (seed * 16807) % 0x7fffffff) % below;
  const sizes = new DataView(new ArrayBuffer(count * 4));
  const shifts = new DataView(new ArrayBuffer(count * 8));
  let mediaBytes = 0;
  for (let i = 0; i < count; i++) {
    const size = 1 + random(5);
    mediaBytes += size;
    sizes.setUint32(i * 4, size);
    shifts.setUint32(i * 8, 1);
    shifts.setUint32(i * 8 + 4, random(60_000));
  }
  const bytesOf = (view: DataView) => new Uint8Array(view.buffer);
  const keyframes = Array.from({ length: Math.ceil(count / 500) }, (_, i) => i * 500 + 1);
  const tables = (offset: number) => [
    fullBox("stts", 0, 0, u32(1, count, 900)),
    fullBox("ctts", 0, 0, concatBytes([u32(count), bytesOf(shifts)])),
    fullBox("stsc", 0, 0, u32(1, 1, count, 1)),
    fullBox("stsz", 0, 0, concatBytes([u32(0, count), bytesOf(sizes)])),
    fullBox("stco", 0, 0, u32(1, offset)),
    fullBox("stss", 0, 0, u32(keyframes.length, ...keyframes)),
  ];
  return fileOf((offset) => movieBox([video(tables(offset))]), [new Uint8Array(mediaBytes)]);
}

/** An H.264 entry whose parameter sets have `bytes` bytes; they are repeated before every random access point. */
export function entryWithParameters(bytes: number): Uint8Array {
  return avcEntry(4, [0x67, ...new Array(bytes).fill(1)]);
}

/** Access units of 1 MiB, all of them at the same place of the file. */
export function sharedBytesFile(count: number): Uint8Array {
  const size = 1024 * 1024;
  const tables = (offset: number) => [
    fullBox("stts", 0, 0, u32(1, count, 3600)),
    fullBox("stsc", 0, 0, u32(1, 1, 1, 1)),
    fullBox("stsz", 0, 0, u32(0, count, ...new Array(count).fill(size))),
    fullBox("stco", 0, 0, u32(count, ...new Array(count).fill(offset))),
  ];
  return fileOf((offset) => movieBox([video(tables(offset))]), [new Uint8Array(size)]);
}

const EMPTY_TABLES = [
  fullBox("stts", 0, 0, u32(0)),
  fullBox("stsc", 0, 0, u32(0)),
  fullBox("stsz", 0, 0, u32(0, 0)),
  fullBox("stco", 0, 0, u32(0)),
];

/** A movie that continues in fragments; `duration` in milliseconds. */
export function fragmentedMovie(duration = 0): Uint8Array {
  const movie = movieBox([video(EMPTY_TABLES)], 1000, duration);
  const defaults = box("mvex", fullBox("trex", 0, 0, u32(1, 1, 3000, 0, 0)));
  return concatBytes([u32(movie.length + defaults.length), movie.subarray(4), defaults]);
}

/** A fragment of one run that declares `count` access units of `size` bytes in 16 bytes; their time is `time` (32 bits). */
export function fragment(count: number, size: number, time = 0): Uint8Array {
  return box(
    "moof",
    fullBox("mfhd", 0, 0, u32(1)),
    box(
      "traf",
      fullBox("tfhd", 0, 0x20010, u32(1, size)),
      fullBox("tfdt", 0, 0, u32(time)),
      fullBox("trun", 0, 0, u32(count)),
    ),
  );
}

const FTYP = box("ftyp", text("isom"), u32(0), text("isom"));

/** A fragmented movie whose last `tailBytes` are fragments of many empty access units that never end properly. */
export function fragmentTail(tailBytes: number, size = 0): Uint8Array {
  const one = fragment(100_000, size);
  const tail = new Array(Math.floor(tailBytes / one.length)).fill(one);
  const media = new Uint8Array(1024 * 1024);
  const first = fragment(1, media.length);
  return concatBytes([FTYP, fragmentedMovie(), first, box("mdat", media), ...tail, u32(8), Uint8Array.of(1, 2, 3)]);
}

/** A fragmented movie that says it lasts `durationMs`. */
export function longFragments(durationMs: number): Uint8Array {
  const media = new Uint8Array(1000);
  return concatBytes([FTYP, fragmentedMovie(durationMs), fragment(1, media.length), box("mdat", media)]);
}

/** A fragmented movie whose index names `count` parts of two gigabytes. */
export function sidxFile(count: number): Uint8Array {
  const references = Array.from({ length: count }, () => u32(0x7fffffff, 90_000 * 2, 0x90000000));
  const head = concatBytes([u32(1, 90_000), u64(0, 0), u32(count)]);
  const media = new Uint8Array(1000);
  return concatBytes([
    FTYP,
    fragmentedMovie(),
    fullBox("sidx", 1, 0, head, concatBytes(references)),
    fragment(1, media.length),
    box("mdat", media),
  ]);
}

/** A movie box with `count` empty boxes in its only track. */
export function crowdedTrack(count: number): Uint8Array {
  const movie = movieBox([video(EMPTY_TABLES)]);
  const junk = new Uint8Array(count * 8);
  for (let i = 0; i < count; i++) junk.set([0, 0, 0, 8, 0x6a, 0x75, 0x6e, 0x6b], i * 8);
  // The track is the last box of the movie, after the movie's header.
  const track = 8 + new DataView(movie.buffer, movie.byteOffset).getUint32(8);
  const whole = concatBytes([movie.subarray(0, track + 8), junk, movie.subarray(track + 8)]);
  const view = new DataView(whole.buffer);
  view.setUint32(0, whole.length);
  view.setUint32(track, view.getUint32(track) + junk.length);
  return concatBytes([FTYP, whole]);
}

/** AAC in frames of eight bytes, which decode to 4096 samples each as they say. */
export function tinyAac(frames: number): Uint8Array {
  const frame = [0xff, 0xf1, 0x6c, 0x80, 1, 0x1f, 0xff, 0];
  const out = new Uint8Array(frames * frame.length);
  for (let i = 0; i < frames; i++) out.set(frame, i * frame.length);
  return out;
}

/** FLAC with the longest possible frames, whose sound consists of frame headers. */
export function flacOfHeaders(bytes: number): Uint8Array {
  const head = flacHead(FLAC_RATE * 3600);
  // Blocks of 65,535 samples, 8 channels of 32 bits.
  head.set([0xff, 0xff, 0xff, 0xff], 8);
  new DataView(head.buffer).setUint32(18, FLAC_RATE * 4096 + (7 << 9) + (31 << 4));
  const sound = new Uint8Array(bytes);
  for (let i = 0; i < bytes; i++) sound[i] = i % 2 === 0 ? 0xff : 0xf8;
  return concatBytes([head, sound]);
}

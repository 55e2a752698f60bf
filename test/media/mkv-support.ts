/** Builds Matroska files element by element, and sources that count or pretend. */
import { readFileSync } from "node:fs";
import type { ByteSource, ReadOptions } from "../../src/bytes/source.ts";
import { MemorySource } from "../support/memory-source.ts";
import { openMatroska } from "../../src/media/index/mkv/open-matroska.ts";
import type { MediaIndex, RunSample, StreamedTimeline } from "../../src/media/model/timeline.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
export { seeded } from "../support/random.ts";

/** The bytes of a clip of test/fixtures. */
export function fixture(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`../fixtures/${name}`, import.meta.url)));
}

/** Big-endian bytes of a non-negative integer, as few as hold it or `length`. */
export function uintBytes(value: number, length?: number): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; rest > 0 || bytes.length === 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  while (length !== undefined && bytes.length < length) bytes.unshift(0);
  return new Uint8Array(bytes);
}

/** An 8-byte size, so that sizes never move anything. */
export function sizeBytes(size: number): Uint8Array {
  const bytes = uintBytes(size, 8);
  bytes[0] = 1;
  return bytes;
}

/** An element; a number is stored as an unsigned integer, text as UTF-8. */
export function element(id: number, body: Uint8Array | number | string | readonly Uint8Array[]): Uint8Array {
  const data = typeof body === "number"
    ? uintBytes(body)
    : typeof body === "string"
    ? new TextEncoder().encode(body)
    : body instanceof Uint8Array
    ? body
    : concatBytes(body);
  return concatBytes([uintBytes(id), sizeBytes(data.length), data]);
}

/** An element of unknown size. */
export function openElement(id: number, children: readonly Uint8Array[]): Uint8Array {
  return concatBytes([uintBytes(id), new Uint8Array([0xff]), ...children]);
}

export function floatBytes(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value);
  return bytes;
}

export const EBML_HEAD = element(0x1a45dfa3, [element(0x4282, "matroska")]);

/** A TrackEntry; `more` adds elements. */
export function trackEntry(
  number: number,
  type: "video" | "audio",
  codecId: string,
  more: readonly Uint8Array[] = [],
): Uint8Array {
  return element(0xae, [
    element(0xd7, number),
    element(0x83, type === "video" ? 1 : 2),
    element(0x86, codecId),
    ...more,
  ]);
}

/** A SimpleBlock; `flags` 0x80 = keyframe, lacing in bits 1–2 with `payload` holding the lace sizes. */
export function simpleBlock(track: number, time: number, flags: number, payload: Uint8Array): Uint8Array {
  return element(0xa3, [new Uint8Array([0x80 | track, (time >> 8) & 255, time & 255, flags]), payload]);
}

/** A BlockGroup; a reference makes it no keyframe. */
export function blockGroup(track: number, time: number, reference: number | null, payload: Uint8Array): Uint8Array {
  const block = element(0xa1, [new Uint8Array([0x80 | track, (time >> 8) & 255, time & 255, 0]), payload]);
  return element(0xa0, reference === null ? [block] : [block, element(0xfb, reference)]);
}

export function cluster(time: number, children: readonly Uint8Array[]): Uint8Array {
  return element(0x1f43b675, [element(0xe7, time), ...children]);
}

/** A whole file: MPEG-2 video as track 1 (reordering depth 1, no codec data) and AC-3 as track 2 unless told otherwise. */
export function matroska(
  clusters: readonly Uint8Array[],
  options: { tracks?: readonly Uint8Array[]; durationMs?: number; after?: (base: number) => readonly Uint8Array[] } =
    {},
): Uint8Array {
  const tracks = options.tracks ??
    [
      trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 40_000_000)]),
      trackEntry(2, "audio", "A_AC3", [element(0xe1, [element(0xb5, floatBytes(48000))])]),
    ];
  const info = element(0x1549a966, [
    element(0x2ad7b1, 1_000_000),
    ...(options.durationMs === undefined ? [] : [element(0x4489, floatBytes(options.durationMs))]),
  ]);
  const trackList = element(0x1654ae6b, tracks);
  // One Seek entry of fixed length (8-byte position) to what follows the clusters.
  const seekHead = (position: number) =>
    element(0x114d9b74, [
      element(0x4dbb, [element(0x53ab, uintBytes(0x1c53bb6b)), element(0x53ac, uintBytes(position, 8))]),
    ]);
  const head = seekHead(0).length + info.length + trackList.length;
  const media = clusters.reduce((sum, part) => sum + part.length, 0);
  const after = options.after?.(head) ?? [];
  const children = [seekHead(head + media), info, trackList, ...clusters, ...after];
  return concatBytes([EBML_HEAD, element(0x18538067, children)]);
}

/** Cues of track 1: [time, cluster position relative to the segment's first cluster, block position or null]. */
export function cues(
  base: number,
  points: readonly (readonly [number, number, number | null])[],
  track = 1,
): Uint8Array {
  return element(
    0x1c53bb6b,
    points.map(([time, position, relative]) =>
      element(0xbb, [
        element(0xb3, time),
        element(0xb7, [
          element(0xf7, track),
          element(0xf1, base + position),
          ...(relative === null ? [] : [element(0xf0, relative)]),
        ]),
      ])
    ),
  );
}

/** A source that counts what is read. */
export class CountingSource implements ByteSource {
  readonly sizeBytes: number;
  bytesRead = 0;
  largestRead = 0;
  /** End of the read that went furthest. */
  furthestByte = 0;
  readonly #inner: ByteSource;

  constructor(inner: ByteSource) {
    this.#inner = inner;
    this.sizeBytes = inner.sizeBytes;
  }

  read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    this.bytesRead += length;
    this.largestRead = Math.max(this.largestRead, length);
    this.furthestByte = Math.max(this.furthestByte, offset + length);
    return this.#inner.read(offset, length, options);
  }
}

/** A huge file that has bytes only in some places; the rest is zero. */
export class SparseSource implements ByteSource {
  readonly sizeBytes: number;
  readonly #parts: readonly { readonly at: number; readonly bytes: Uint8Array }[];

  constructor(sizeBytes: number, parts: readonly { at: number; bytes: Uint8Array }[]) {
    this.sizeBytes = sizeBytes;
    this.#parts = parts;
  }

  read(offset: number, length: number, _options: ReadOptions): Promise<Uint8Array> {
    const out = new Uint8Array(length);
    for (const { at, bytes } of this.#parts) {
      const from = Math.max(at, offset);
      const to = Math.min(at + bytes.length, offset + length);
      if (from < to) out.set(bytes.subarray(from - at, to - at), from - offset);
    }
    return Promise.resolve(out);
  }
}

export const never = new AbortController().signal;

/** Opens a file in memory; its timeline is streamed. Light runs end after 2 s. */
export async function open(
  bytes: Uint8Array | ByteSource,
): Promise<{ index: MediaIndex; timeline: StreamedTimeline; source: ByteSource }> {
  const source = bytes instanceof Uint8Array ? new MemorySource(bytes) : bytes;
  const index = await openMatroska(source, { fileName: "a.mkv", signal: never, segmentTargetMs: 2000 });
  if (index.timeline.kind !== "streamed") throw new Error("not streamed");
  return { index, timeline: index.timeline, source };
}

/** The access units of a run, or of all runs. */
export async function samples(
  { index, timeline, source }: { index: MediaIndex; timeline: StreamedTimeline; source: ByteSource },
  run?: number,
): Promise<RunSample[]> {
  const wanted = new Set(index.tracks.keys());
  const list: RunSample[] = [];
  const runs = run === undefined ? timeline.runs.map((r) => r.index) : [run];
  for (const n of runs) for await (const batch of timeline.readRun(n, wanted, source, never)) list.push(...batch);
  return list;
}

/** A copy with bytes changed, ranges moved, or the end cut off. */
export function mutate(bytes: Uint8Array, random: () => number): Uint8Array {
  const out = bytes.slice();
  const place = () => Math.floor(random() < 0.5 ? random() * Math.min(out.length, 2000) : random() * out.length);
  for (let n = 1 + Math.floor(random() * 12); n > 0; n--) {
    const kind = random();
    if (kind < 0.6) out[place()] = Math.floor(random() * 256);
    else if (kind < 0.8) out[place()] = random() < 0.5 ? 0xff : 0;
    else {
      const from = place();
      out.copyWithin(place(), from, from + Math.floor(random() * 300));
    }
  }
  return random() < 0.2 ? out.subarray(0, Math.floor(random() * out.length)) : out;
}

/** A cluster of one second at `time`, ms: a keyframe and sound, half a second later another picture; after `lead`. */
export const second = (time: number, lead: readonly Uint8Array[] = []): Uint8Array =>
  cluster(time, [
    ...lead,
    simpleBlock(1, 0, 0x80, new Uint8Array([1, time / 1000])),
    simpleBlock(2, 0, 0x80, new Uint8Array([2])),
    simpleBlock(1, 500, 0, new Uint8Array([3])),
  ]);

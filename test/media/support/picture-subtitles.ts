/** Subtitles that are pictures, as discs and DVB have them. */
import { deflateSync } from "node:zlib";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { element } from "../mkv-support.ts";

const u16 = (value: number) => [value >> 8, value & 255];

function segment(type: number, body: readonly number[] | Uint8Array): Uint8Array {
  return concatBytes([Uint8Array.of(type, ...u16(body.length)), Uint8Array.from(body)]);
}

/** Where a picture of PGS stands. */
export interface DiscPicture {
  readonly number: number;
  readonly width: number;
  readonly height: number;
  /** Size of the film. */
  readonly screen: readonly [width: number, height: number];
  /** Colour of pixel `n` of a line, 1 or 2: a line of one colour is a few bytes. Default: one colour. */
  readonly colour?: (x: number, y: number) => number;
}

/** A display set of PGS (US 2009/0185789): a picture at the bottom left, in lines of runs. */
export function discPicture({ number, width, height, screen, colour = () => 1 }: DiscPicture): Uint8Array {
  const at = [...u16(16), ...u16(screen[1] - height - 8)];
  const lines: number[] = [];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width;) {
      const one = colour(x, y);
      let run = 1;
      while (x + run < width && colour(x + run, y) === one) run++;
      if (run < 3) lines.push(...Array.from({ length: run }, () => one));
      else if (run < 64) lines.push(0, 0x80 | run, one);
      else lines.push(0, 0xc0 | run >> 8, run & 255, one);
      x += run;
    }
    lines.push(0, 0);
  }
  const pixels = Uint8Array.from(lines);
  const size = pixels.length + 4;
  const first = [...u16(0), 0, 0, size >> 16, ...u16(size & 0xffff), ...u16(width), ...u16(height)];
  const objects: Uint8Array[] = [];
  for (let from = 0; from < pixels.length;) {
    const isFirst = from === 0;
    const to = Math.min(pixels.length, from + MAX_OBJECT_BYTES);
    const head = isFirst ? first : [...u16(0), 0, 0];
    head[3] = (isFirst ? 0x80 : 0) | (to === pixels.length ? 0x40 : 0);
    objects.push(segment(0x15, [...head, ...pixels.subarray(from, to)]));
    from = to;
  }
  return concatBytes([
    segment(0x16, [...u16(screen[0]), ...u16(screen[1]), 0x10, ...u16(number), 0x80, 0, 0, 1, ...u16(0), 0, 0, ...at]),
    segment(0x17, [1, 0, ...at, ...u16(width), ...u16(height)]),
    segment(0x14, [0, 0, 1, 235, 128, 128, 255, 2, 16, 128, 128, 255]),
    ...objects,
    segment(0x80, []),
  ]);
}

const MAX_OBJECT_BYTES = 60_000;

/** A display set of PGS that shows nothing. */
export function discNothing(number: number, [width, height]: readonly [number, number]): Uint8Array {
  return concatBytes([
    segment(0x16, [...u16(width), ...u16(height), 0x10, ...u16(number), 0, 0, 0, 0]),
    segment(0x17, [1, 0, ...u16(16), ...u16(16), ...u16(16), ...u16(16)]),
    segment(0x80, []),
  ]);
}

/** What Matroska has of a DVB subtitle: segments of page 1, here of the type that ends a display set. */
export function dvbSegments(sizes: readonly number[]): Uint8Array {
  return concatBytes(
    sizes.map((size) => concatBytes([Uint8Array.of(0x0f, 0x80, 0, 1, ...u16(size)), new Uint8Array(size).fill(7)])),
  );
}

const dvbSegment = (type: number, body: readonly number[]) =>
  Uint8Array.of(0x0f, type, ...u16(DVB_PAGE), ...u16(body.length), ...body);

/** The page of the subtitles, and its track's codec data. */
const DVB_PAGE = 1;
export const DVB_PRIVATE = Uint8Array.of(0, DVB_PAGE, 0, DVB_PAGE, 0x10);

/** A display set of DVB subtitles (EN 300 743): a white box of `width` × `height` at 20, 100; nothing if `width` is 0. */
export function dvbBox(number: number, width: number, height: number): Uint8Array {
  const version = (number & 15) << 4;
  const isEmpty = width === 0;
  const page = dvbSegment(0x10, [30, version | 0x08, ...isEmpty ? [] : [1, 0xff, ...u16(20), ...u16(100)]]);
  const end = dvbSegment(0x80, []);
  if (isEmpty) return concatBytes([page, end]);
  // Runs of colour 1 with 8 bits a pixel; the lines of both fields.
  const line = [0x12, 0x00, 0x80 | width, 1, 0x00, 0x00, 0xf0];
  const field = Array.from({ length: height / 2 }, () => line).flat();
  return concatBytes([
    page,
    // A pixel is free after each line: ffmpeg looks for the end of a line only where there is one.
    dvbSegment(0x11, [
      1,
      version | 0x0f,
      ...u16(width + 1),
      ...u16(height),
      0x6f,
      1,
      0,
      0x0f,
      ...u16(1),
      0,
      0,
      0xf0,
      0,
    ]),
    dvbSegment(0x12, [1, version | 0x0f, 1, 0x3f, 235, 128, 128, 0]),
    dvbSegment(0x13, [...u16(1), version | 1, ...u16(field.length), ...u16(field.length), ...field, ...field]),
    end,
  ]);
}

/** A TrackEntry of subtitles; zlib packs its blocks if `isDeflated`, which `packed` does. */
export function subtitleEntry(
  number: number,
  codecId: string,
  { language, isDeflated = false, more = [] }: {
    readonly language: string;
    readonly isDeflated?: boolean;
    readonly more?: readonly Uint8Array[];
  },
): Uint8Array {
  const encoding = element(0x6d80, [element(0x6240, [element(0x5034, [element(0x4254, 0)])])]);
  return element(0xae, [
    element(0xd7, number),
    element(0x83, 17),
    element(0x86, codecId),
    element(0x22b59c, language),
    ...isDeflated ? [encoding] : [],
    ...more,
  ]);
}

/** `data` as a track packed by zlib has it. */
export const packed = (data: Uint8Array): Uint8Array => new Uint8Array(deflateSync(data));

/** Display sets of PGS as a file (`.sup`): each segment with its time. */
export function supFile(shown: readonly (readonly [atMs: number, displaySet: Uint8Array])[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [atMs, set] of shown) {
    for (let at = 0; at < set.length;) {
      const end = at + 3 + (set[at + 1]! << 8 | set[at + 2]!);
      const head = new Uint8Array(10);
      head.set([0x50, 0x47]);
      new DataView(head.buffer).setUint32(2, atMs * 90);
      parts.push(head, set.subarray(at, end));
      at = end;
    }
  }
  return concatBytes(parts);
}

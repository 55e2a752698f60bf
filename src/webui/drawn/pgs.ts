/** Presentation graphics of discs (PGS, US 2009/0185789): display sets, and the picture that each of them shows. */

/** "PG", presentation and decoding time; then a segment's type, and its length. */
const SUP_HEAD_BYTES = 13;
const PALETTE = 0x14;
const OBJECT = 0x15;
const COMPOSITION = 0x16;
/** Objects of a picture; the format has two, and a few more do no harm. */
const MAX_OBJECTS = 16;
/** Largest side of a screen or an object, px: that of pictures of 4K. */
const MAX_SIDE = 4096;
/** Palette entries. */
const COLOURS = 256;

interface Segment {
  readonly type: number;
  readonly body: Uint8Array;
}

/** What is shown from a time on. */
export interface DisplaySet {
  /** Seconds. */
  readonly atS: number;
  /** Whether its picture needs no set before it. */
  readonly isWhole: boolean;
  readonly composition: Uint8Array;
  readonly segments: readonly Segment[];
}

/** An object in its place. */
export interface PlacedObject {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** Four bytes per pixel. */
  readonly rgba: Uint8ClampedArray<ArrayBuffer>;
}

/** What a display set shows. */
export interface PgsPicture {
  readonly width: number;
  readonly height: number;
  readonly objects: readonly PlacedObject[];
}

const u16 = (data: Uint8Array, at: number) => (data[at] ?? 0) << 8 | (data[at + 1] ?? 0);

/** The display sets of a `.sup` file, in its order; it ends where it is damaged. */
export function readSup(file: Uint8Array): DisplaySet[] {
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const sets: DisplaySet[] = [];
  let open: { atS: number; composition: Uint8Array; segments: Segment[] } | null = null;
  const close = () => {
    if (open === null) return;
    const isWhole = open.composition[7] !== 0;
    sets.push({ ...open, isWhole });
    open = null;
  };
  for (let at = 0; at + SUP_HEAD_BYTES <= file.length;) {
    if (view.getUint16(at) !== 0x5047) break;
    const end = at + SUP_HEAD_BYTES + view.getUint16(at + 11);
    if (end > file.length) break;
    const type = file[at + 10]!;
    const body = file.subarray(at + SUP_HEAD_BYTES, end);
    if (type === COMPOSITION && body.length >= 11) {
      close();
      open = { atS: view.getUint32(at + 2) / 90_000, composition: body, segments: [] };
    } else (open as { segments: Segment[] } | null)?.segments.push({ type, body });
    at = end;
  }
  close();
  return sets;
}

/** The picture of `sets[n]`. It looks back to the last set that needs none before it. */
export function pictureOf(sets: readonly DisplaySet[], n: number): PgsPicture {
  let first = n;
  while (first > 0 && !sets[first]!.isWhole) first--;
  const palettes = new Map<number, Uint8ClampedArray>();
  const objects = new Map<number, { width: number; height: number; parts: Uint8Array[] }>();
  const { composition } = sets[n]!;
  const [width, height] = [u16(composition, 0), u16(composition, 2)];
  const isHd = height > 576;
  for (const { segments } of sets.slice(first, n + 1)) {
    for (const { type, body } of segments) {
      if (type === PALETTE) readPalette(body, palettes, isHd);
      else if (type === OBJECT && body.length > 4) {
        const id = u16(body, 0);
        // Length and size stand in the first part.
        if (body[3]! & 0x80) {
          objects.set(id, { width: u16(body, 7), height: u16(body, 9), parts: [body.subarray(11)] });
        } else objects.get(id)?.parts.push(body.subarray(4));
      }
    }
  }
  const palette = palettes.get(composition[9]!);
  const placed: PlacedObject[] = [];
  if (palette === undefined || !isSize(width, height)) return { width, height, objects: placed };
  let at = 11;
  for (let k = 0; k < Math.min(composition[10]!, MAX_OBJECTS) && at + 8 <= composition.length; k++) {
    const object = objects.get(u16(composition, at));
    const isCropped = (composition[at + 3]! & 0x80) !== 0;
    const [x, y] = [u16(composition, at + 4), u16(composition, at + 6)];
    const crop = isCropped
      ? [8, 10, 12, 14].map((more) => u16(composition, at + more)) as [number, number, number, number]
      : null;
    at += isCropped ? 16 : 8;
    // Each pixel of a screen once: an object as large as the screen, many times over, would be work.
    if (object === undefined || !isSize(object.width, object.height)) continue;
    if (placed.reduce((sum, one) => sum + one.width * one.height, object.width * object.height) > MAX_SIDE ** 2) break;
    placed.push(cropped({ x, y, ...drawn(object, palette) }, crop));
  }
  return { width, height, objects: placed };
}

function isSize(width: number, height: number): boolean {
  return width > 0 && height > 0 && width <= MAX_SIDE && height <= MAX_SIDE;
}

/** Entries of number, Y, Cr, Cb and alpha; after the numbers of palette and version. */
function readPalette(body: Uint8Array, palettes: Map<number, Uint8ClampedArray>, isHd: boolean): void {
  const id = body[0] ?? 0;
  let palette = palettes.get(id);
  if (palette === undefined) palettes.set(id, palette = new Uint8ClampedArray(4 * COLOURS));
  for (let at = 2; at + 5 <= body.length; at += 5) {
    const y = 1.164 * (body[at + 1]! - 16);
    const [cr, cb] = [body[at + 2]! - 128, body[at + 3]! - 128];
    // BT.709, or BT.601 of discs in standard definition.
    const rgb = isHd
      ? [y + 1.793 * cr, y - 0.213 * cb - 0.533 * cr, y + 2.112 * cb]
      : [y + 1.596 * cr, y - 0.392 * cb - 0.813 * cr, y + 2.017 * cb];
    palette.set([...rgb, body[at + 4]!], 4 * body[at]!);
  }
}

type Drawn = Pick<PlacedObject, "width" | "height" | "rgba">;

/** The runs of an object as pixels; what is missing stays clear. */
function drawn(
  { width, height, parts }: { readonly width: number; readonly height: number; readonly parts: readonly Uint8Array[] },
  palette: Uint8ClampedArray,
): Drawn {
  const rgba = new Uint8ClampedArray(4 * width * height);
  const pixels = new Uint32Array(rgba.buffer);
  const colours = new Uint32Array(palette.buffer);
  const runs = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let to = 0;
  for (const part of parts) {
    runs.set(part, to);
    to += part.length;
  }
  let x = 0;
  let line = 0;
  for (let at = 0; at < runs.length && line < height;) {
    let colour = runs[at++]!;
    let count = 1;
    if (colour === 0) {
      const told = runs[at++] ?? 0;
      if (told === 0) {
        x = 0;
        line++;
        continue;
      }
      count = told & 0x40 ? (told & 0x3f) << 8 | (runs[at++] ?? 0) : told & 0x3f;
      colour = told & 0x80 ? runs[at++] ?? 0 : 0;
    }
    const end = Math.min(width, x + count);
    pixels.fill(colours[colour]!, line * width + x, line * width + end);
    x = end;
  }
  return { width, height, rgba };
}

/** The part of `object` that `crop` names: left, top, width and height. */
function cropped(object: PlacedObject, crop: readonly [number, number, number, number] | null): PlacedObject {
  if (crop === null) return object;
  const [left, top] = crop;
  const width = Math.min(crop[2], object.width - left);
  const height = Math.min(crop[3], object.height - top);
  if (width <= 0 || height <= 0) return { ...object, width: 0, height: 0 };
  const rgba = new Uint8ClampedArray(4 * width * height);
  for (let line = 0; line < height; line++) {
    const from = 4 * ((top + line) * object.width + left);
    rgba.set(object.rgba.subarray(from, from + 4 * width), 4 * line * width);
  }
  return { x: object.x, y: object.y, width, height, rgba };
}

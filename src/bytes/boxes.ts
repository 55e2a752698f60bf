/** ISO base media boxes (ISO/IEC 14496-12, 4.2) in memory. Every offset is checked against the box that holds it. */

/** A box whose body is `[start, end)` of `view`. */
export interface Box {
  /** Four characters. */
  readonly type: string;
  readonly view: DataView;
  readonly start: number;
  readonly end: number;
}

/** A view of `bytes`. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Four characters at `at`. */
export function fourCharacters(view: DataView, at: number): string {
  return String.fromCharCode(view.getUint8(at), view.getUint8(at + 1), view.getUint8(at + 2), view.getUint8(at + 3));
}

/** Header of a box: `sizeBytes` null = to the end of the file. */
export interface BoxHeader {
  readonly type: string;
  readonly headerBytes: number;
  readonly sizeBytes: number | null;
}

/** Reads a header at `at`; null when it does not fit before `end` or declares a size smaller than itself. */
export function readBoxHeader(view: DataView, at: number, end: number): BoxHeader | null {
  if (at + 8 > end) return null;
  const size = view.getUint32(at);
  const type = fourCharacters(view, at + 4);
  if (size === 0) return { type, headerBytes: 8, sizeBytes: null };
  if (size === 1) {
    if (at + 16 > end) return null;
    const large = view.getUint32(at + 8) * 0x100000000 + view.getUint32(at + 12);
    return large < 16 || large > Number.MAX_SAFE_INTEGER ? null : { type, headerBytes: 16, sizeBytes: large };
  }
  return size < 8 ? null : { type, headerBytes: 8, sizeBytes: size };
}

/**
 * Most boxes read inside another. `moov` has one per track, `stbl` a dozen, a fragment one per run of its access units;
 * more only serve to make `child` walk them again and again.
 */
const MAX_CHILDREN = 2048;

/**
 * The boxes in `[start, end)` of `view`, one level, the first 2048. A box that claims to extend beyond `end` is cut;
 * damage ends the walk.
 */
export function* boxesIn(view: DataView, start: number, end: number): Generator<Box> {
  for (let at = start, seen = 0; at < end && seen < MAX_CHILDREN; seen++) {
    const header = readBoxHeader(view, at, end);
    if (header === null) return;
    const boxEnd = header.sizeBytes === null ? end : Math.min(end, at + header.sizeBytes);
    yield { type: header.type, view, start: at + header.headerBytes, end: boxEnd };
    at = boxEnd;
  }
}

/** The first box of `type` in the body of `box`, or null. */
export function child(box: Box, type: string): Box | null {
  for (const inner of boxesIn(box.view, box.start, box.end)) if (inner.type === type) return inner;
  return null;
}

/** Follows `types` down from `box`; null when one is missing. */
export function descend(box: Box, ...types: string[]): Box | null {
  let current: Box | null = box;
  for (const type of types) {
    if (current === null) return null;
    current = child(current, type);
  }
  return current;
}

/** Copy of the body. */
export function bodyOf(box: Box): Uint8Array {
  return new Uint8Array(box.view.buffer, box.view.byteOffset + box.start, box.end - box.start).slice();
}

/** Unsigned 64 bits as a number; values beyond 2^53 lose precision (and are damage). */
export function uint64(view: DataView, at: number): number {
  return view.getUint32(at) * 0x100000000 + view.getUint32(at + 4);
}

/** Signed 64 bits as a number. */
export function int64(view: DataView, at: number): number {
  return view.getInt32(at) * 0x100000000 + view.getUint32(at + 4);
}

/**
 * A full box (version and flags) that lists entries: position of the first, and the declared count bounded by the room in
 * the box. `countAt` is the offset of the count in the body.
 */
export function entriesOf(box: Box, countAt: number, entryBytes: number): { at: number; count: number } {
  if (box.start + countAt + 4 > box.end) return { at: box.end, count: 0 };
  const at = box.start + countAt + 4;
  const declared = box.view.getUint32(box.start + countAt);
  return { at, count: Math.min(declared, Math.floor((box.end - at) / entryBytes)) };
}

/** Version of a full box; 0 when it is too short to have one. */
export function versionOf(box: Box): number {
  return box.start + 4 <= box.end ? box.view.getUint8(box.start) : 0;
}

/** Splits ADTS (ISO/IEC 14496-3, 1.A.3) into raw access units. */

/** Access units of `bytes`, views of it; what is no frame, or is cut off, ends the list. */
export function adtsFrames(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at + 7 <= bytes.length;) {
    if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xf6) !== 0xf0) break;
    const header = (bytes[at + 1]! & 1) === 1 ? 7 : 9;
    const length = ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5);
    if (length < header || at + length > bytes.length) break;
    frames.push(bytes.subarray(at + header, at + length));
    at += length;
  }
  return frames;
}

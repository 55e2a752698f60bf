/** NAL units of H.264 and HEVC in the two forms in which containers store them (ISO/IEC 14496-10, annex B; 14496-15, 5.3.4.2). */

/** True when `bytes` begin with a start code. */
export function beginsWithStartCode(bytes: Uint8Array): boolean {
  return bytes[0] === 0 && bytes[1] === 0 && (bytes[2] === 1 || (bytes[2] === 0 && bytes[3] === 1));
}

/** The first `most` NAL units between start codes, as views of `bytes`. */
export function unitsOfByteStream(bytes: Uint8Array, most: number): Uint8Array[] {
  const units: Uint8Array[] = [];
  let start = -1;
  const close = (end: number) => {
    // Zeros before a start code belong to it, or fill up.
    while (end > start && bytes[end - 1] === 0) end--;
    if (start >= 0 && end > start) units.push(bytes.subarray(start, end));
  };
  for (let at = bytes.indexOf(1, 2); at >= 0 && units.length < most; at = bytes.indexOf(1, at + 1)) {
    if (bytes[at - 1] !== 0 || bytes[at - 2] !== 0) continue;
    close(at - 2);
    start = at + 1;
  }
  if (units.length < most) close(bytes.length);
  return units;
}

/** The NAL units, each after its length in `lengthBytes`; null when they do not fill `bytes` exactly. */
export function unitsByLength(bytes: Uint8Array, lengthBytes: number): Uint8Array[] | null {
  const units: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    if (at + lengthBytes >= bytes.length) return null;
    let length = 0;
    for (let i = 0; i < lengthBytes; i++) length = length * 256 + bytes[at++]!;
    if (length === 0 || at + length > bytes.length) return null;
    units.push(bytes.subarray(at, at + length));
    at += length;
  }
  return units;
}

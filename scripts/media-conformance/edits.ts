/** Changes of MP4 and Matroska files to forms that no muxer at hand writes. */

const STSZ = [0x73, 0x74, 0x73, 0x7a];
const STZ2 = [0x73, 0x74, 0x7a, 0x32];
const FREE = [0x66, 0x72, 0x65, 0x65];

/** Each `stsz` of `file` as `stz2` with sixteen bits for each size (14496-12, 8.7.3.3), and free space to its end. */
export function withCompactSizes(file: Uint8Array): Uint8Array {
  const out = file.slice();
  const view = new DataView(out.buffer);
  for (let at = out.indexOf(STSZ[0]!, 4); at >= 0; at = out.indexOf(STSZ[0]!, at + 1)) {
    if (!STSZ.every((byte, i) => out[at + i] === byte)) continue;
    const start = at - 4;
    const boxBytes = view.getUint32(start);
    const count = view.getUint32(at + 12);
    // Sizes that are all the same have no entries.
    if (view.getUint32(at + 8) !== 0 || boxBytes !== 20 + 4 * count) continue;
    const sizes = Array.from({ length: count }, (_, i) => view.getUint32(at + 16 + 4 * i));
    if (sizes.some((size) => size > 0xffff)) continue;
    const usedBytes = 20 + 2 * count;
    view.setUint32(start, usedBytes);
    out.set(STZ2, at);
    view.setUint32(at + 8, 16);
    for (const [i, size] of sizes.entries()) view.setUint16(at + 16 + 2 * i, size);
    view.setUint32(start + usedBytes, boxBytes - usedBytes);
    out.set(FREE, start + usedBytes + 4);
    out.fill(0, start + usedBytes + 8, start + boxBytes);
  }
  return out;
}

/** Every `from` of `file` as `to`, of the same length: names of codecs. */
export function renamed(file: Uint8Array, from: string, to: string): Uint8Array {
  const out = file.slice();
  const [old, next] = [from, to].map((name) => Uint8Array.from(name, (letter) => letter.charCodeAt(0))) as [
    Uint8Array,
    Uint8Array,
  ];
  for (let at = out.indexOf(old[0]!); at >= 0; at = out.indexOf(old[0]!, at + 1)) {
    if (old.every((byte, i) => out[at + i] === byte)) out.set(next, at);
  }
  return out;
}

/** `file` with an empty list of random access points. */
export function withoutKeyframes(file: Uint8Array): Uint8Array {
  const out = file.slice();
  const at = new TextDecoder("latin1").decode(file).indexOf("stss");
  out.fill(0, at + 8, at + 12);
  return out;
}

const CUES = [0x1c, 0x53, 0xbb, 0x6b];
/** CueClusterPosition with one of these lengths, as muxers write it. */
const POSITION = 0xf1;
const POSITION_BYTES = [0x81, 0x82, 0x83, 0x84];
/** By how much the places of all clusters but the first are wrong, as if they were counted from the file's beginning. */
const MOVED_BYTES = 48;

/** A Matroska file whose Cues point into its clusters. */
export function withMovedCues(file: Uint8Array): Uint8Array {
  const out = file.slice();
  let at = out.length - 1;
  while (!CUES.every((byte, i) => out[at + i] === byte)) at = out.lastIndexOf(CUES[0]!, at - 1);
  for (let isFirst = true; (at = out.indexOf(POSITION, at + 1)) >= 0;) {
    const length = POSITION_BYTES.indexOf(out[at + 1]!) + 1;
    // CueTrack comes before it.
    if (length === 0 || out[at - 3] !== 0xf7) continue;
    let value = 0;
    for (let i = 0; i < length; i++) value = value * 256 + out[at + 2 + i]!;
    if (!isFirst) value += MOVED_BYTES;
    isFirst = false;
    for (let i = length - 1; i >= 0; i--, value = Math.floor(value / 256)) out[at + 2 + i] = value % 256;
  }
  return out;
}

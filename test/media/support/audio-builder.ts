/** Long files of frames without sound in them. */
import { concatBytes } from "../../../src/bytes/hex.ts";
import { seeded } from "./files.ts";

const KBITS = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const RATE = 44100;

/** A frame of MPEG-1 layer III, 44.1 kHz stereo, of `kbits` kb/s; its payload is `fill`. */
export function mp3Frame(kbits: number, isPadded: boolean, fill = 0): Uint8Array {
  const frame = new Uint8Array(Math.floor(144_000 * kbits / RATE) + (isPadded ? 1 : 0)).fill(fill);
  frame.set([0xff, 0xfb, (KBITS.indexOf(kbits) << 4) | (isPadded ? 2 : 0), 0]);
  return frame;
}

/** Frames of one bit rate, padded as encoders do. */
export function constantMp3(frames: number, kbits = 128): Uint8Array[] {
  const mean = 144_000 * kbits / RATE;
  return Array.from({ length: frames }, (_, n) => {
    const isPadded = Math.floor((n + 1) * mean) - Math.floor(n * mean) > Math.floor(mean);
    return mp3Frame(kbits, isPadded, n & 0x7f);
  });
}

/** Frames of bit rates at random, the first of 128 kb/s. */
export function variableMp3(frames: number, seed = 1): Uint8Array[] {
  const random = seeded(seed);
  return Array.from({ length: frames }, (_, n) => {
    return mp3Frame(n === 0 ? 128 : KBITS[1 + Math.floor(random() * 14)]!, random() < 0.5, n & 0x7f);
  });
}

/** A header frame that states the number of frames, and their size unless `bytes` is 0. */
export function vbrHeader(name: "Xing" | "Info" | "VBRI", frames: number, bytes = 0): Uint8Array {
  const frame = mp3Frame(128, false);
  const view = new DataView(frame.buffer);
  frame.set(new TextEncoder().encode(name), 36);
  if (name === "VBRI") {
    view.setUint32(46, bytes);
    view.setUint32(50, frames);
  } else {
    view.setUint32(40, bytes > 0 ? 3 : 1);
    view.setUint32(44, frames);
    view.setUint32(48, bytes);
  }
  return frame;
}

/** Frames of ADTS: AAC LC, 48 kHz stereo, of sizes at random. */
export function adtsFrames(frames: number, seed = 1): Uint8Array[] {
  const random = seeded(seed);
  return Array.from({ length: frames }, (_, n) => {
    const frame = new Uint8Array(200 + Math.floor(random() * 400)).fill(n & 0x7f);
    const size = frame.length;
    frame.set([0xff, 0xf1, 0x4c, 0x80 | (size >> 11), (size >> 3) & 0xff, ((size & 7) << 5) | 0x1f, 0xfc]);
    return frame;
  });
}

/** A frame of AC-3 of 48 kHz, 5.1 and 448 kb/s. */
export function ac3Frame(fill = 0): Uint8Array {
  const frame = new Uint8Array(1792).fill(fill);
  frame.set([0x0b, 0x77, 0, 0, 30, 8 << 3, 0xe1]);
  return frame;
}

/** A substream's frame of E-AC-3 of 48 kHz and 1536 samples, `type` 0 independent, 1 dependent. */
export function eac3Frame(sizeBytes: number, type: 0 | 1 = 0, id = 0, fill = 0): Uint8Array {
  const frame = new Uint8Array(sizeBytes).fill(fill);
  const words = sizeBytes / 2 - 1;
  frame.set([0x0b, 0x77, (type << 6) | (id << 3) | (words >> 8), words & 0xff, 0x3f, 16 << 3, 0]);
  return frame;
}

/** An ID3v2 tag of `bytes` bytes and its header, in whose body frames seem to begin. */
export function id3Tag(bytes: number): Uint8Array {
  const tag = new Uint8Array(10 + bytes);
  for (let at = 10; at + 417 < tag.length; at += 417) tag.set(mp3Frame(128, false), at);
  tag.set([0x49, 0x44, 0x33, 3, 0, 0, bytes >> 21, (bytes >> 14) & 0x7f, (bytes >> 7) & 0x7f, bytes & 0x7f]);
  return tag;
}

/** ID3v1, which ends a file. */
export function id3v1(): Uint8Array {
  const tag = new Uint8Array(128);
  tag.set(new TextEncoder().encode("TAGtitle"));
  return tag;
}

export { concatBytes };

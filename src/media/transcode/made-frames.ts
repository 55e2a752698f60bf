/** Splits an encoder's output: ADTS (ISO/IEC 14496-3, 1.A.3) into raw access units, AC-3 (ETSI TS 102 366) into frames. */
import { adtsFrame } from "../../bytes/audio-frames.ts";

/** Access units in `bytes`, as views of it; the list ends at the first bytes that are not a whole frame. */
export function adtsFrames(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0;;) {
    const frame = adtsFrame(bytes, at);
    if (frame === null || at + frame.sizeBytes > bytes.length) return frames;
    // Headers with a checksum are 2 bytes longer.
    const headerBytes = (bytes[at + 1]! & 1) === 1 ? 7 : 9;
    frames.push(bytes.subarray(at + headerBytes, at += frame.sizeBytes));
  }
}

/** AC-3 frames of `frameBytes` each, as views of `bytes`; the list ends at the first that does not begin with a sync word. */
export function ac3Frames(bytes: Uint8Array, frameBytes: number): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at + frameBytes <= bytes.length && bytes[at] === 0x0b && bytes[at + 1] === 0x77; at += frameBytes) {
    frames.push(bytes.subarray(at, at + frameBytes));
  }
  return frames;
}

/** Splits what an encoder made: ADTS (ISO/IEC 14496-3, 1.A.3) into raw access units, AC-3 (ETSI TS 102 366) into frames. */
import { adtsFrame } from "../../bytes/audio-frames.ts";

/** Access units of `bytes`, views of it; what is no frame, or is cut off, ends the list. */
export function adtsFrames(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0;;) {
    const frame = adtsFrame(bytes, at);
    if (frame === null || at + frame.sizeBytes > bytes.length) return frames;
    // Without the checksum that some have.
    const headerBytes = (bytes[at + 1]! & 1) === 1 ? 7 : 9;
    frames.push(bytes.subarray(at + headerBytes, at += frame.sizeBytes));
  }
}

/** Frames of AC-3 of one bit rate, `frameBytes` each, views of `bytes`; what does not begin with a sync word ends the list. */
export function ac3Frames(bytes: Uint8Array, frameBytes: number): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at + frameBytes <= bytes.length && bytes[at] === 0x0b && bytes[at + 1] === 0x77; at += frameBytes) {
    frames.push(bytes.subarray(at, at + frameBytes));
  }
  return frames;
}

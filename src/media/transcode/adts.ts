/** Splits ADTS (ISO/IEC 14496-3, 1.A.3) into raw access units. */
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

/**
 * The frame without sound that encoders put first to describe the others: Xing and Info (as LAME documents them) and VBRI
 * (Fraunhofer).
 */
import type { AudioFrame } from "../../../bytes/audio-frames.ts";

/** The content of a VBR header frame. */
export interface VbrHeader {
  /** Frames after it; null when it does not say. */
  readonly frames: number | null;
  /** Bytes of the stream; null when it does not say. */
  readonly bytes: number | null;
  /** The header says that all frames have one bit rate. */
  readonly isConstant: boolean;
}

const HAS_FRAMES = 1;
const HAS_BYTES = 2;
const LOWEST_MPEG1_RATE = 32000;
const VBRI_AT = 36;

/** Reads it from the frame `data`; null when it is a frame of sound. */
export function readVbrHeader(frame: AudioFrame, data: Uint8Array): VbrHeader | null {
  if (frame.kind !== 3) return null;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const nameAt = (at: number) => at + 4 <= data.length ? String.fromCharCode(...data.subarray(at, at + 4)) : "";
  // It follows the side information, which is empty.
  const isMpeg1 = frame.sampleRate >= LOWEST_MPEG1_RATE;
  const side = isMpeg1 ? (frame.channels === 1 ? 17 : 32) : (frame.channels === 1 ? 9 : 17);
  const at = 4 + side;
  const name = nameAt(at);
  if ((name === "Xing" || name === "Info") && at + 16 <= data.length) {
    const flags = view.getUint32(at + 4);
    const frames = (flags & HAS_FRAMES) !== 0 ? view.getUint32(at + 8) : 0;
    const bytes = (flags & HAS_BYTES) !== 0 ? view.getUint32(at + ((flags & HAS_FRAMES) !== 0 ? 12 : 8)) : 0;
    return { frames: frames || null, bytes: bytes || null, isConstant: name === "Info" };
  }
  if (nameAt(VBRI_AT) === "VBRI" && VBRI_AT + 18 <= data.length) {
    const [bytes, frames] = [view.getUint32(VBRI_AT + 10), view.getUint32(VBRI_AT + 14)];
    return { frames: frames || null, bytes: bytes || null, isConstant: false };
  }
  return null;
}

/** The frames of sound in a transport stream: a PES may hold several, of which only the first has a time of its own. */
import { adtsFrame, mpegAudioFrame } from "../../src/bytes/audio-frames.ts";
import type { CheckedStream } from "./ts-check.ts";

/** A frame; its time is 90 kHz, counted on from that of its PES. */
export interface SoundFrame {
  readonly pts: number;
  readonly data: Uint8Array;
}

/** Frames of AAC or MPEG audio; of other streams, what each PES holds. */
export function soundFrames({ streamType, units }: CheckedStream): SoundFrame[] {
  const syntax = streamType === 0x0f ? adtsFrame : streamType === 3 || streamType === 4 ? mpegAudioFrame : null;
  if (syntax === null) return units.map(({ pts, data }) => ({ pts, data }));
  return units.flatMap(({ pts, data }) => {
    const frames: SoundFrame[] = [];
    for (let at = 0, ticks = 0; at < data.length;) {
      const frame = syntax(data, at);
      if (frame === null) throw new Error("a PES of sound does not consist of frames");
      frames.push({ pts: pts + ticks, data: data.subarray(at, at + frame.sizeBytes) });
      at += frame.sizeBytes;
      ticks += frame.samples * 90_000 / frame.sampleRate;
    }
    return frames;
  });
}

/** The frames of sound in a transport stream: a PES may hold several, and only the first has a timestamp. */
import { adtsFrame, mpegAudioFrame } from "../../src/bytes/audio-frames.ts";
import type { CheckedStream } from "./ts-check.ts";

/** A frame; its time in 90 kHz is computed from that of its PES. */
export interface SoundFrame {
  readonly pts: number;
  readonly data: Uint8Array;
}

/** Bit rates of AC-3 by frame size code, kbit/s (ETSI TS 102 366, table 4.13). */
const AC3_KBITS = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];

/** The frame of AC-3 at `at`, of 48 or 44.1 kHz; null where there is none. */
function ac3Frame(data: Uint8Array, at: number) {
  if (data[at] !== 0x0b || data[at + 1] !== 0x77) return null;
  const [rate, code] = [data[at + 4]! >> 6, data[at + 4]! & 63];
  const kbits = AC3_KBITS[code >> 1]!;
  const words = rate === 0 ? kbits * 2 : Math.floor(kbits * 320 / 147) + (code & 1);
  return { sizeBytes: words * 2, samples: 1536, sampleRate: rate === 0 ? 48_000 : 44_100 };
}

function syntaxOf(streamType: number) {
  if (streamType === 0x0f) return adtsFrame;
  if (streamType === 0x81) return ac3Frame;
  return streamType === 3 || streamType === 4 ? mpegAudioFrame : null;
}

/** Frames of AAC, MPEG audio or AC-3; of other streams, what each PES holds. */
export function soundFrames({ streamType, units }: CheckedStream): SoundFrame[] {
  const syntax = syntaxOf(streamType);
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

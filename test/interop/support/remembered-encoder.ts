/** Sound that was converted once is not converted again: starting ffmpeg takes most of what these tests take. */
import { createHash } from "node:crypto";
import { loadPorts } from "../../../platform/detect.ts";
import { FfmpegEncoder } from "../../../src/media/transcode/ffmpeg.ts";
import type { AudioEncoder, EncodeJob } from "../../../src/media/model/audio-target.ts";

/** What an encoder made of a job. */
interface Made {
  readonly output: Uint8Array;
  readonly silentSamples: readonly number[];
}

/**
 * Has ffmpeg make each job once and returns the same bytes for the same job. A presentation that is read in another order
 * gives the same output only if it asks for the same jobs, byte for byte; any other job goes to ffmpeg.
 */
export async function rememberedEncoder(): Promise<AudioEncoder> {
  const { processes, clock } = await loadPorts();
  const ffmpeg = new FfmpegEncoder(processes, clock);
  const made = new Map<string, Promise<Made>>();
  return {
    isAvailable: (signal) => ffmpeg.isAvailable(signal),
    async encode(job, signal) {
      const key = keyOf(job);
      let making = made.get(key);
      if (making === undefined) {
        const silentSamples: number[] = [];
        making = ffmpeg.encode({ ...job, onSilence: (samples) => void silentSamples.push(samples) }, signal)
          .then((output) => ({ output, silentSamples }));
        made.set(key, making);
        making.catch(() => made.delete(key));
      }
      const { output, silentSamples } = await making;
      for (const samples of silentSamples) job.onSilence?.(samples);
      return output.slice();
    },
  };
}

function keyOf({ input, onSilence: _, ...rest }: EncodeJob): string {
  return `${JSON.stringify(rest)} ${createHash("sha256").update(input).digest("hex")}`;
}

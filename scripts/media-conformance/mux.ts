/** Muxes a file by the media layer alone: what the engine should play, and what the muxer counted meanwhile. */
import { readFileSync } from "node:fs";
import { loadPorts } from "../../platform/detect.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import type { ByteSource, ReadOptions } from "../../src/bytes/source.ts";
import { openMedia } from "../../src/media/open-media.ts";
import { FfmpegEncoder } from "../../src/media/transcode/ffmpeg.ts";
import type { Presentation } from "../../src/media/model/types.ts";
import { verifyMedia, type VerifyReport } from "../../src/media/verify/verify.ts";

/** Muxing one file takes no longer, ms. */
const MUX_TIMEOUT_MS = 60_000;

/** A file and its MPEG TS. */
export interface Muxed {
  readonly presentation: Presentation;
  readonly ts: Uint8Array;
  /** What it holds, and what came out of it as MPEG TS and HLS. */
  readonly report: VerifyReport;
}

/** A file that is there. */
class FileSource implements ByteSource {
  readonly sizeBytes: number;
  readonly #bytes: Uint8Array;

  constructor(path: string) {
    // A plain array: slices of a Buffer are views, and what is read belongs to the caller, who may change it.
    this.#bytes = new Uint8Array(readFileSync(path));
    this.sizeBytes = this.#bytes.length;
  }

  read(offset: number, length: number, _options: ReadOptions): Promise<Uint8Array> {
    return Promise.resolve(this.#bytes.slice(offset, offset + length));
  }
}

/** Muxes `file`; `asAac`: with its sound as AAC. Rejects as `openMedia` does. */
export async function mux(file: string, asAac = false): Promise<Muxed> {
  const signal = AbortSignal.timeout(MUX_TIMEOUT_MS);
  const source = new FileSource(file);
  const { processes, clock } = await loadPorts();
  const sound = { transcode: { mp3: true, ac3: true }, audioEncoder: new FfmpegEncoder(processes, clock) };
  const presentation = await openMedia(source, { fileName: file, signal, ...(asAac ? sound : {}) });
  const parts: Uint8Array[] = [];
  const report = await verifyMedia(presentation, source, signal, (chunk) => parts.push(chunk.slice()));
  return { presentation, ts: concatBytes(parts), report };
}

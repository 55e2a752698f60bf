/** Muxers that are libraries rather than programs: each rewrites a file without changing its access units. */
import { Buffer } from "node:buffer";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as mediabunny from "mediabunny";
import { createFile, type ISOFile, MP4BoxBuffer } from "mp4box";

/** Writes `to` from what is in `from`; paths. */
export type Remux = (from: string, to: string) => Promise<void>;

/** By mediabunny, as `format` has it. */
export function byMediabunny(format: () => mediabunny.OutputFormat): Remux {
  return async (from, to) => {
    const source = new mediabunny.BufferSource(new Uint8Array(readFileSync(from)));
    const input = new mediabunny.Input({ source, formats: mediabunny.ALL_FORMATS });
    const target = new mediabunny.BufferTarget();
    const output = new mediabunny.Output({ format: format(), target });
    await (await mediabunny.Conversion.init({ input, output, showWarnings: false })).execute();
    writeFileSync(to, new Uint8Array(target.buffer!));
  };
}

/** The part of mux.js that is used here. */
interface Transmuxer {
  on(event: "data", listener: (data: { initSegment: Uint8Array; data: Uint8Array }) => void): void;
  push(bytes: Uint8Array): void;
  flush(): void;
}

const muxjs = createRequire(import.meta.url)("mux.js") as {
  mp4: { Transmuxer: new (options: { keepOriginalTimestamps: boolean; remux: boolean }) => Transmuxer };
};

/** By mux.js, which makes a fragment of each MPEG TS `from`. */
export function byMuxJs(from: readonly string[], to: string): Promise<void> {
  const transmuxer = new muxjs.mp4.Transmuxer({ keepOriginalTimestamps: true, remux: true });
  const parts: Uint8Array[] = [];
  transmuxer.on("data", ({ initSegment, data }) => {
    if (parts.length === 0) parts.push(initSegment);
    parts.push(data);
  });
  for (const one of from) {
    transmuxer.push(new Uint8Array(readFileSync(one)));
    transmuxer.flush();
  }
  writeFileSync(to, Buffer.concat(parts));
  return Promise.resolve();
}

function parsed(from: string): ISOFile<unknown, unknown> {
  const file = createFile(true);
  const bytes = readFileSync(from);
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0));
  return file;
}

/** By mp4box.js, in fragments of so many access units of one track each, as its segmenter cuts films for MSE. */
export function byMp4box(unitsPerFragment: number, rapAlignement: boolean): Remux {
  return (from, to) => {
    const file = parsed(from);
    const parts: Uint8Array[] = [];
    file.onSegment = (_id, _user, buffer) => parts.push(new Uint8Array(buffer));
    for (const { id } of file.getInfo().tracks) {
      file.setSegmentOptions(id, null, { nbSamples: unitsPerFragment, rapAlignement });
    }
    parts.unshift(new Uint8Array(file.initializeSegmentation().buffer));
    file.start();
    file.flush();
    writeFileSync(to, Buffer.concat(parts));
    return Promise.resolve();
  };
}

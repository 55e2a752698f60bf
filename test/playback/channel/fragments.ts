/** Fragmented MP4 as HLS has it, cut from a clip. */
import { concatBytes } from "../../../src/bytes/hex.ts";
import { boxesIn, viewOf } from "../../../src/bytes/boxes.ts";
import { clip } from "../../support/fixtures.ts";

/** The initialization section of a clip, and its fragments. */
export function fragmentsOf(name = "mp4-fragmented-bare.mp4") {
  const bytes = clip(name);
  const init: Uint8Array[] = [];
  const segments: Uint8Array[] = [];
  let moof: Uint8Array | null = null;
  let at = 0;
  for (const { type, end } of boxesIn(viewOf(bytes), 0, bytes.length)) {
    const box = bytes.slice(at, end);
    at = end;
    if (type === "ftyp" || type === "moov") init.push(box);
    else if (type === "moof") moof = box;
    else if (type === "mdat" && moof !== null) segments.push(concatBytes([moof, box]));
  }
  return { init: concatBytes(init), segments };
}

/** `bytes` with `from` replaced by `to`, four characters each, wherever it stands. */
export function renamed(bytes: Uint8Array, from: string, to: string): Uint8Array {
  const text = new TextDecoder("windows-1252");
  const out = bytes.slice();
  for (let at = 0; at + 4 <= out.length; at++) {
    if (text.decode(out.subarray(at, at + 4)) === from) out.set(new TextEncoder().encode(to), at);
  }
  return out;
}

/** A playlist of `count` segments, which are there to the end. */
export function playlistOf(count: number, ending: string, tags = ""): string {
  const lines = Array.from({ length: count }, (_, i) => `#EXTINF:2.0,\n${i}.${ending}\n`).join("");
  return `#EXTM3U\n#EXT-X-TARGETDURATION:3\n${tags}${lines}#EXT-X-ENDLIST\n`;
}

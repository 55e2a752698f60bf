/** Texts in the fragments of MP4, as ffmpeg writes them, with and without an index. */
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { assertEquals, assertLess } from "@std/assert";
import { temporaryDirectory } from "../support/engine.ts";
import { clipPath } from "../support/fixtures.ts";
import { MemorySource } from "../support/memory-source.ts";
import { run } from "../support/process.ts";
import { NEVER, openBytes } from "../media/support/files.ts";

const SRT = "1\n00:00:01,000 --> 00:00:02,000\nfirst\n\n2\n00:00:04,000 --> 00:00:05,000\nsecond\n";
const FRAGMENTED = "frag_keyframe+empty_moov+default_base_moof";

for (const [name, flags] of [["sidx", `${FRAGMENTED}+dash+global_sidx`], ["no index", `${FRAGMENTED}+skip_trailer`]]) {
  for (const fragmented of [false, true]) {
    test(`SegmentTexts.read() has the texts of fragments with ${name} as ${fragmented ? "fragments" : "MPEG TS"}`, async () => {
      const home = await temporaryDirectory();
      try {
        const [texts, film] = [`${home.path}/texts.srt`, `${home.path}/film.mp4`];
        await writeFile(texts, SRT);
        const inputs = ["-i", clipPath("mp4-front.mp4"), "-i", texts];
        const copied = ["-map", "0", "-map", "1", "-c", "copy", "-c:s", "mov_text", "-movflags", flags!, film];
        const { code, stderr } = await run("ffmpeg", ["-nostdin", "-v", "error", ...inputs, ...copied]);
        assertEquals(code, 0, stderr);
        const bytes = new Uint8Array(await readFile(film));
        const { hls } = await openBytes(bytes, { segmentTargetMs: 2000, fragmented });
        const source = new MemorySource(bytes);
        const found = new Map<string, number>();
        for (const { index } of hls.segments) {
          for (const { text, startMs } of await hls.texts!.read(0, index, source, NEVER)) found.set(text, startMs);
        }
        assertEquals([...found.keys()], ["first", "second"]);
        const zeroMs = hls.zeroPts90k! / 90;
        for (const [text, atMs] of [["first", 1000], ["second", 4000]] as const) {
          assertLess(Math.abs(found.get(text)! - zeroMs - atMs), 100, text);
        }
      } finally {
        await home.remove();
      }
    });
  }
}

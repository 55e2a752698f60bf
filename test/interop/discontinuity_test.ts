/** A playlist with a discontinuity, as ffmpeg's HLS reader sees it. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { seedFiles, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

test("ffmpeg decodes every picture on both sides of EXT-X-DISCONTINUITY", async () => {
  const bytes = concatBytes([clip("ts-188.ts"), clip("ts-188.ts")]);
  const seeder = await seedFiles([{ path: "twice.ts", bytes }], { name: "twice" });
  const served = await serveEngine();
  try {
    const url = `${served.url}/engine/manifest.m3u8?${new URLSearchParams({ magnet: seeder.magnet })}`;
    const playlist = await (await fetch(url)).text();
    assertEquals(playlist.match(/#EXT-X-DISCONTINUITY\n/g)?.length, 1);
    const args = [
      "-v",
      "error",
      "-count_frames",
      "-show_entries",
      "stream=codec_type,nb_read_frames",
      "-of",
      "csv=p=0",
    ];
    const { code, text } = await run("ffprobe", [...args, url]);
    assertEquals(code, 0);
    assertEquals(text.match(/video,(\d+)/)?.[1], "300");
  } finally {
    await served.close();
    await seeder.close();
  }
});

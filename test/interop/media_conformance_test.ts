/** A part of `scripts/media-conformance`: small files whose classes once lost packets or let the clock run back. Needs ffmpeg and mkvmerge. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check, RECIPES } from "../../scripts/media-conformance/run.ts";

const NAMES = [
  "plain.mkv",
  "live.mkv",
  "mkvmerge.mkv",
  "mkvmerge-no-cues-uneven.mkv",
  "mkvmerge-chapters.mkv",
  "mkvmerge-sound-350ms-early.mkv",
  "mkvmerge-picture-500ms-late.mkv",
  "fps-60000-1001.mkv",
  "one-picture-a-second.mkv",
  "one-picture-a-second-mkvmerge.mkv",
  "slides.mkv",
  "interlaced.mkv",
  "low.mkv",
  "sound-only.mka",
  "fragments.mp4",
];

for (const name of NAMES) {
  test(`openMedia() loses nothing and keeps all times of ${name}`, async () => {
    const recipe = RECIPES.find((one) => one.name === name);
    assert(recipe !== undefined);
    const folder = mkdtempSync(join(tmpdir(), "millrace-conformance-"));
    try {
      assertEquals((await check(recipe, folder)).deviations, []);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

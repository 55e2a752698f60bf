/** Part of `scripts/media-conformance`: small files of kinds that once lost packets or let the clock run back. Needs ffmpeg, mkvmerge and Shaka Packager. */
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check, RECIPES, unforced } from "../../scripts/media-conformance/run.ts";
import { SwarmPlayer } from "../../scripts/media-conformance/swarm-player.ts";

const NAMES = [
  "plain.mkv",
  "live.mkv",
  "mkvmerge-no-cues-uneven.mkv",
  "mkvmerge-chapters.mkv",
  "mkvmerge-sound-350ms-early.mkv",
  "mkvmerge-zlib.mkv",
  "cues-into-clusters.mkv",
  "fps-60000-1001.mkv",
  "one-picture-a-second.mkv",
  "slides.mkv",
  "interlaced.mkv",
  "low.mkv",
  "sound-only.mka",
  "fragments.mp4",
  "fragments-turns.mp4",
  "dash.mp4",
  "opening-in-moov.mp4",
  "smooth.ismv",
  "joined-sidx.mp4",
  "joined-bare.mp4",
  "stz2.mp4",
  "late-picture.mp4",
  "late-sound.mp4",
  "negative-shifts.mp4",
  "low.mp4",
  "low-sound-only.m4a",
  "timecode.mov",
  "deep-reorder.mkv",
  "vfr.mkv",
  "eac3.mkv",
  "rate-rises.mkv",
  "rate-rises-sidx.mp4",
  "intra-hevc-sidx.mp4",
  "mkvmerge-appended.mkv",
  "mkvmerge-from-ts.mkv",
  "made-sound-first-mfra.mp4",
  "made-together-sidx-tree.mp4",
  "made-as-bento4.mp4",
  "made-as-gpac-dash.mp4",
  "made-as-obs-hybrid.mp4",
  "made-mfra-wrong.mp4",
  "made-many-runs-no-base.mp4",
  "mediabunny-film-fragments.mp4",
  "mediabunny-hevc.mkv",
  "mediabunny-append-only.mkv",
  "mediabunny.mov",
  "muxjs-fragments.mp4",
  "mp4box-100-aligned.mp4",
  "shaka-video-unaligned.mp4",
  "shaka-segments-sidx.mp4",
  "shaka-audio.mp4",
  "mpeg4.mkv",
  "hdv.mov",
  "late-start.mkv",
  "no-key-list.mp4",
  "mpeg4.mp4",
  "broadcast.ts",
  "disc.m2ts",
  "joined.ts",
  "clock-wraps.ts",
  "open-gop.ts",
  "sound-late.ts",
  "latm.ts",
  "junk-first.ts",
  "to-aac-pcm.mkv",
  "to-aac-tta.mkv",
  "to-aac-ac3.ts",
  "matrix-mkvmerge-h264-pyramid-aac-44.mkv",
  "matrix-mkvmerge-hevc-aac-22.mkv",
  "matrix-mkvmerge-mpeg2-mp2.mkv",
  "matrix-sidx-h264-pyramid-mp3.mp4",
  "matrix-sidx-hevc-ac3.mp4",
  "matrix-dash-mpeg2-mp3.mp4",
  "matrix-mp4-hevc-aac-44.mp4",
];

let folder: string;
let player: SwarmPlayer;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-conformance-"));
  player = await SwarmPlayer.start(folder);
});
after(async () => {
  await player?.close();
  rmSync(folder, { recursive: true, force: true });
});

for (const name of NAMES) {
  test(`a swarm loses nothing and keeps all times of ${name}`, async () => {
    const recipe = RECIPES.find((one) => one.name === name);
    assert(recipe !== undefined);
    assertEquals(unforced(recipe, (await check(recipe, folder, player)).deviations), []);
  });
}

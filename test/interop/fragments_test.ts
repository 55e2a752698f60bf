/** Fragmented MP4 made from films, as ffmpeg sees it: the source's packets, times and pictures. */
import { test } from "node:test";
import { assertEquals, assertLessOrEqual } from "@std/assert";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { concatBytes } from "../../src/bytes/hex.ts";
import { renderVodPlaylist } from "../../src/media/hls/playlist.ts";
import { MemorySource } from "../support/memory-source.ts";
import { collect, NEVER, openBytes } from "../media/support/files.ts";

const QUIET = ["-nostdin", "-v", "error"];

function run(command: string, args: readonly string[]): string {
  const { stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (error !== undefined) throw error;
  assertEquals(stderr, "", `${command} ${args.join(" ")}`);
  return stdout;
}

/** Presentation times in seconds, sizes and flags, in file order. */
function packets(path: string, stream: string) {
  const shown = ["-show_entries", "packet=pts_time,size,flags", "-of", "json"];
  const out = run("ffprobe", ["-v", "error", "-select_streams", stream, ...shown, path]);
  const { packets } = JSON.parse(out) as { packets: { pts_time: string; size: string; flags: string }[] };
  return packets.map(({ pts_time, size, flags }) => ({
    timeS: Number(pts_time),
    unit: `${size}${flags.startsWith("K") ? "K" : ""}`,
  }));
}

/** Hashes of the decoded pictures. */
function pictures(path: string): string[] {
  const out = run("ffmpeg", [...QUIET, "-i", path, "-map", "0:v", "-f", "framemd5", "-"]);
  return out.split("\n").filter((line) => /^\d/.test(line)).map((line) => line.split(",")[5]!.trim());
}

const CODERS: Readonly<Record<string, readonly string[]>> = {
  vp9: ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "30"],
  vp8: ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-g", "30"],
  av1: ["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-g", "30"],
  h264: ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "30"],
  hevc: ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:bframes=2:keyint=30"],
  opus: ["-c:a", "libopus"],
  aac: ["-c:a", "aac"],
  flac: ["-c:a", "flac", "-strict", "-2"],
  ac3: ["-c:a", "ac3"],
  eac3: ["-c:a", "eac3"],
};

/** Codecs and container of films of three seconds. */
const FILMS = [
  ["vp9", "opus", "webm"],
  ["vp8", "opus", "webm"],
  ["av1", "opus", "mkv"],
  ["av1", "aac", "mp4"],
  ["h264", "flac", "mp4"],
  ["hevc", "opus", "mkv"],
  ["h264", "ac3", "mkv"],
  ["h264", "eac3", "mp4"],
] as const;

for (const [picture, sound, container] of FILMS) {
  test(`ffmpeg reads fragmented MP4 of ${picture} and ${sound} in ${container} as the source`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "fragments-"));
    try {
      const source = join(folder, `source.${container}`);
      const inputs = ["testsrc2=s=160x90:r=25:d=3", "sine=440:r=48000:d=3"].flatMap((
        graph,
      ) => ["-f", "lavfi", "-i", graph]);
      run("ffmpeg", [...QUIET, ...inputs, "-pix_fmt", "yuv420p", ...CODERS[picture]!, ...CODERS[sound]!, source]);
      const bytes = new Uint8Array(readFileSync(source));
      const { hls } = await openBytes(bytes, { fragmented: true, segmentTargetMs: 1500 });
      const { init } = hls.fragmented!;
      writeFileSync(join(folder, "init.mp4"), init);
      const parts = [init];
      for (const { index } of hls.segments) {
        parts.push(await collect(hls.readSegment(index, new MemorySource(bytes), NEVER)));
        writeFileSync(join(folder, `${index}.m4s`), parts.at(-1)!);
      }
      const joined = join(folder, "joined.mp4");
      writeFileSync(joined, concatBytes(parts));
      const offsets = ["v:0", "a:0"].map((stream) => {
        const [ours, theirs] = [packets(joined, stream), packets(source, stream)];
        assertEquals(ours.map(({ unit }) => unit), theirs.map(({ unit }) => unit));
        const offsetS = ours[0]!.timeS - theirs[0]!.timeS;
        for (const [i, { timeS }] of ours.entries()) {
          assertLessOrEqual(Math.abs(timeS - theirs[i]!.timeS - offsetS), 0.0011, `${stream} packet ${i}`);
        }
        return offsetS;
      });
      assertLessOrEqual(Math.abs(offsets[0]! - offsets[1]!), 0.0011, "sound beside its pictures");
      assertEquals(pictures(joined), pictures(source));
      // As HLS, too.
      const list = join(folder, "list.m3u8");
      writeFileSync(list, renderVodPlaylist(hls, (n) => n === "init" ? "init.mp4" : `${n}.m4s`));
      assertEquals(packets(list, "v:0").length, packets(source, "v:0").length);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

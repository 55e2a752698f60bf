/** The TS made from MP4 and Matroska, as ffmpeg sees it: decodes cleanly, with the frames and times of `-c copy`. */
import { test } from "node:test";
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MemorySource } from "../support/memory-source.ts";
import { collect, fixture, NEVER, openBytes, seeded } from "../media/support/files.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

const FIXTURES = fileURLToPath(new URL("../fixtures/", import.meta.url));
const NAMES = readdirSync(FIXTURES).filter((name) => /\.(mp4|m4a|mov|mkv|mka|mp3|mp2|aac)$/.test(name));
const QUIET = ["-nostdin", "-v", "error"];

function run(command: string, args: string[]): { out: string; err: string } {
  const { stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (error !== undefined) throw error;
  return { out: stdout, err: stderr };
}

function complaints(path: string): string[] {
  const { err } = run("ffmpeg", [...QUIET, "-i", path, "-f", "null", "-"]);
  return err.split("\n").filter((line) => line !== "");
}

/** Hashes of the decoded frames. */
function frames(path: string, stream: string, copied = false): string[] {
  const { out } = run("ffmpeg", [
    ...QUIET,
    "-i",
    path,
    "-map",
    `0:${stream}`,
    ...copied ? ["-c", "copy"] : [],
    "-f",
    "framemd5",
    "-",
  ]);
  return out.split("\n").filter((line) => /^\d/.test(line)).map((line) => line.split(",")[5]!.trim());
}

interface Packet {
  readonly pts: number;
  readonly keyframe: boolean;
}

/** Presentation times in seconds, in file order. */
function packets(path: string, stream: string): Packet[] {
  const args = [
    "-v",
    "error",
    "-select_streams",
    stream,
    "-show_entries",
    "packet=pts_time,flags",
    "-of",
    "json",
    path,
  ];
  const { packets } = JSON.parse(run("ffprobe", args).out) as { packets: { pts_time: string; flags: string }[] };
  return packets.map((packet) => ({ pts: Number(packet.pts_time), keyframe: packet.flags.startsWith("K") }));
}

for (const name of NAMES) {
  test(`the TS of ${name} has the same frames and times as that of ffmpeg -c copy`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "media-"));
    try {
      const bytes = fixture(name);
      const source = new MemorySource(bytes);
      const { ts, hls, outputTracks } = await openBytes(bytes, { segmentTargetMs: 2000 });
      const ours = join(folder, "ours.ts");
      const whole = await collect(ts.read(0, null, source, NEVER));
      writeFileSync(ours, whole);
      assertEquals(complaints(ours), []);
      // What ffmpeg makes of the source; decoding the source itself would hide what its edit list hides.
      const copy = join(folder, "copy.ts");
      run("ffmpeg", [...QUIET, "-i", FIXTURES + name, "-map", "0:v?", "-map", "0:a?", "-c", "copy", copy]);
      const offsets: number[] = [];
      let audio = 0;
      for (const track of outputTracks) {
        const stream = track.kind === "video" ? "v:0" : `a:${audio++}`;
        // ffmpeg copies the sound that an edit cuts away. What is decoded depends on what came before, so packets are compared.
        const isCut = name.includes("trimmed") && track.kind === "audio";
        const [made, copied] = [frames(ours, stream, isCut), frames(copy, stream, isCut)];
        if (!isCut) assertEquals(made.length, copied.length, `${name} ${stream}`);
        const skipped = isCut ? copied.indexOf(made[0]!) : 0;
        assertEquals(made, copied.slice(skipped, skipped + made.length), `${name} ${stream} frames`);
        const mine = packets(ours, stream);
        // ffmpeg packs several audio frames in a PES and so loses what gaps are between fragments.
        const theirs = packets(name.includes("fragmented") ? FIXTURES + name : copy, stream)
          .slice(skipped, isCut ? skipped + mine.length : undefined);
        assertEquals(mine.length, theirs.length);
        assertEquals(mine.map((packet) => packet.keyframe), theirs.map((packet) => packet.keyframe));
        const offset = mine[0]!.pts - theirs[0]!.pts;
        offsets.push(offset);
        for (const [i, packet] of mine.entries()) {
          assertLessOrEqual(Math.abs(packet.pts - theirs[i]!.pts - offset), 0.001, `${name} ${stream} packet ${i}`);
        }
      }
      assertLessOrEqual(Math.max(...offsets) - Math.min(...offsets), 0.001, "audio against video");
      const parts: Uint8Array[] = [];
      for (const { index } of hls.segments) parts.push(await collect(hls.readSegment(index, source, NEVER)));
      const joined = join(folder, "joined.ts");
      writeFileSync(joined, concatBytes(parts));
      assertEquals(complaints(joined), []);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

test("ffprobe finds video in a random range of the TS", async () => {
  const folder = mkdtempSync(join(tmpdir(), "media-"));
  const random = seeded(3);
  try {
    for (const name of ["mp4-front.mp4", "mp4-hevc.mp4", "mkv-cues.mkv"]) {
      const bytes = fixture(name);
      const { ts } = await openBytes(bytes);
      for (let i = 0; i < 3; i++) {
        const start = Math.floor(random() * ts.sizeBytes! * 0.5);
        const end = start + Math.floor(ts.sizeBytes! * 0.45);
        const path = join(folder, "range.ts");
        writeFileSync(path, await collect(ts.read(start, end, new MemorySource(bytes), NEVER)));
        const { out } = run("ffprobe", ["-v", "quiet", "-show_entries", "stream=codec_type,width", "-of", "csv", path]);
        assert(/video,\d+/.test(out), `${name} from ${start}: ${out}`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

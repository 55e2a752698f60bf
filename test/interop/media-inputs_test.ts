/** What ffmpeg reads in Matroska and MPEG TS clips is what our readers read. Needs ffmpeg and ffprobe. */
import { assert, assertEquals, assertLess } from "@std/assert";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { MemorySource } from "../support/memory-source.ts";
import { fixture, open, samples, seeded } from "../media/mkv-support.ts";
import { gather, never, openTs, segments } from "../media/ts-input-support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

const folder = new URL("../fixtures/", import.meta.url).pathname;
const clips = (pattern: RegExp) => readdirSync(folder).filter((name) => pattern.test(name));

function run(command: string, ...args: string[]): string {
  return execFileSync(command, ["-v", "error", ...args], { encoding: "utf8", maxBuffer: 1 << 28 });
}

/** Decodes; returns ffmpeg's error output. */
function complaints(file: string): string {
  return execFileSync("sh", ["-c", 'ffmpeg -nostdin -v error -i "$0" -f null - 2>&1', file], { encoding: "utf8" })
    .trim();
}

/** Stream, size and hash of every packet as ffmpeg copies it, sorted. */
function copied(file: string): string[] {
  return run("ffmpeg", "-nostdin", "-i", file, "-map", "0:v?", "-map", "0:a?", "-c", "copy", "-f", "framemd5", "-")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(",").map((field) => field.trim()))
    .map((fields) => [fields[0], fields[4], fields[5]].join())
    .sort();
}

test("readRun() yields ffprobe's packets: same bytes, presentation times and keyframes", async () => {
  for (const name of clips(/\.(mkv|mka|webm)$/)) {
    const opened = await open(fixture(name));
    const all = await samples(opened);
    const lines = run(
      "ffprobe",
      "-show_entries",
      "packet=stream_index,pts_time,size,flags,data_hash",
      "-show_data_hash",
      "md5",
      "-of",
      "json",
      folder + name,
    );
    const packets = (JSON.parse(lines) as {
      packets: { stream_index: number; pts_time: string; flags: string; data_hash: string }[];
    }).packets;
    // One offset for the file: opus times are moved by ffprobe to hide its priming.
    const video = opened.index.tracks[0]!.kind === "video" ? 0 : -1;
    for (const track of opened.index.tracks.keys()) {
      if (opened.index.tracks[track]!.codec === "opus") continue;
      const own = all.filter((sample) => sample.track === track);
      const theirs = packets.filter((packet) => packet.stream_index === track);
      const reference = packets.find((packet) => packet.stream_index === Math.max(0, video))!;
      const shift = all.find((sample) => sample.track === Math.max(0, video))!.pts90k -
        Number(reference.pts_time) * 90_000;
      assertEquals(own.length, theirs.length, `${name} track ${track}`);
      for (const [i, sample] of own.entries()) {
        const packet = theirs[i]!;
        // Pictures of a constant rate lie on its grid, up to 1 ms from the times that Matroska rounded.
        assertLess(Math.abs(sample.pts90k - shift - Number(packet.pts_time) * 90_000), 91, `${name} ${track} ${i}`);
        assertEquals(
          `MD5:${createHash("md5").update(sample.data).digest("hex")}`,
          packet.data_hash,
          `${name} ${track} ${i}`,
        );
        assertEquals(sample.keyframe, packet.flags.startsWith("K"), `${name} ${track} ${i}`);
      }
    }
  }
});

for (const name of clips(/^ts-.*\.(ts|m2ts)$/)) {
  test(`TS input ${name} decodes cleanly whole and in segments, with the packets of ffmpeg -c copy`, async () => {
    const directory = mkdtempSync(join(tmpdir(), "millrace-"));
    const random = seeded(5);
    try {
      const bytes = fixture(name);
      const source = new MemorySource(bytes);
      const presentation = await openTs(bytes, { segmentTargetMs: 2000 });
      const save = (label: string, data: Uint8Array) => {
        const path = join(directory, `${label}.ts`);
        writeFileSync(path, data);
        return path;
      };
      const ts = await gather(presentation.ts.read(0, null, source, never));
      const whole = save("whole", ts);
      assertEquals(complaints(whole), "", name);
      assertEquals(copied(whole), copied(folder + name), name);
      const list = await segments(presentation, source);
      const joined = save("joined", concatBytes(list));
      assertEquals(complaints(joined), "", name);
      if (name !== "ts-two-programs.ts") assertEquals(copied(joined), copied(whole), name);
      // Open groups begin with pictures that refer to the previous group: only those may cause decoder errors.
      if (!/open-gop|mpeg2|hevc/.test(name)) {
        for (const [n, segment] of list.entries()) assertEquals(complaints(save("one", segment)), "", `${name} ${n}`);
      }
      const start = Math.floor(random() * ts.length / 2);
      const range = save("range", await gather(presentation.ts.read(start, start + ts.length / 2 | 0, source, never)));
      const types = run("ffprobe", "-show_entries", "stream=codec_type", "-of", "csv=p=0", range);
      assert(name === "ts-audio-only.ts" || types.includes("video"), `${name} from ${start}`);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
}

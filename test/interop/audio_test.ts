/** Long audio files, which are not read whole: ffmpeg makes them, and finds in our TS what its own copy contains. */
import { test } from "node:test";
import { assert, assertEquals, assertLess, assertLessOrEqual } from "@std/assert";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { concatBytes } from "../../src/bytes/hex.ts";
import { openFrames } from "../../src/media/index/audio/frames.ts";
import { openMedia } from "../../src/media/open-media.ts";
import { presentIndex } from "../../src/media/presentation/presentation.ts";
import { MemorySource } from "../support/memory-source.ts";
import { collect, CountingSource, NEVER, UNCOUNTED } from "../media/support/files.ts";

const QUIET = ["-nostdin", "-v", "error"];
/** Loud and quiet stretches, so that variable bit rates vary. */
const SOUND =
  "aevalsrc='(0.2+0.2*sin(t/7))*sin(2*PI*t*(300+200*sin(t/3)))+0.1*gt(mod(t\\,20)\\,10)*random(0)':s=44100:d=150";

function run(command: string, args: string[]): { out: string; err: string } {
  const { stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (error !== undefined) throw error;
  return { out: stdout, err: stderr };
}

/** Hash of each packet, and when it is played. */
function packets(path: string): { hash: string; pts: number }[] {
  const { out } = run("ffprobe", [
    ...["-v", "error", "-select_streams", "a:0", "-show_entries", "packet=pts_time,data_hash"],
    ...["-show_data_hash", "md5", "-of", "json", path],
  ]);
  const { packets } = JSON.parse(out) as { packets: { pts_time: string; data_hash: string }[] };
  return packets.map(({ pts_time, data_hash }) => ({ hash: data_hash, pts: Number(pts_time) }));
}

const CASES: readonly {
  name: string;
  args: string;
  isSized: boolean;
  slackMs?: number;
  wholeBytes?: number;
  isLong?: true;
}[] = [
  { name: "cbr.mp3", args: "-c:a libmp3lame -b:a 128k -metadata title=x", isSized: true },
  {
    name: "bare.mp3",
    args: "-c:a libmp3lame -b:a 96k -ac 2 -write_xing 0 -id3v2_version 0 -write_id3v1 1",
    isSized: true,
  },
  { name: "vbr.mp3", args: "-c:a libmp3lame -q:a 3 -ac 2", isSized: false },
  { name: "short.aac", args: "-c:a aac -b:a 128k -ac 2", isSized: true, wholeBytes: 3_000_000 },
  {
    name: "long.aac",
    args: "-c:a aac -b:a 128k -ac 2",
    isSized: false,
    slackMs: 12_000,
    wholeBytes: 500_000,
    isLong: true,
  },
];

for (const { name, args, isSized, slackMs = 1, wholeBytes = 400_000, isLong = false } of CASES) {
  test(`${name} of 150 s: the packets and times of ffmpeg -c copy, whole and in segments; little is read to start`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "audio-"));
    try {
      const path = join(folder, name);
      run("ffmpeg", [...QUIET, "-f", "lavfi", "-i", SOUND, ...args.split(" "), path]);
      const bytes = new Uint8Array(readFileSync(path));
      assertLess(1024 * 1024, bytes.length);
      const opening = new CountingSource(bytes);
      const { ts, planHls, durationMs } = isLong
        // As if it were too long to be read whole.
        ? await presentIndex(await openFrames(opening, "aac", { signal: NEVER, wholeBytes: 0 }), {}, UNCOUNTED)
        : await openMedia(opening, { fileName: name, signal: NEVER });
      const hls = await planHls(opening, NEVER);
      assert(opening.bytesRead < wholeBytes, `${opening.bytesRead} bytes to open`);
      assertEquals(ts.sizeBytes !== null, isSized);
      assertLessOrEqual(Math.abs(durationMs! - 150_050), 60 + slackMs);
      const source = new CountingSource(bytes);
      const whole = await collect(ts.read(0, null, source, NEVER));
      if (isSized) assertEquals(whole.length, ts.sizeBytes);
      const parts: Uint8Array[] = [];
      for (const { index } of [...hls.segments].reverse()) {
        parts.unshift(await collect(hls.readSegment(index, new MemorySource(bytes), NEVER)));
      }
      const copy = join(folder, "copy.ts");
      // One packet per PES, since ffmpeg reports only the time of the first packet in a PES.
      run("ffmpeg", [...QUIET, "-i", path, "-map", "0:a", "-c", "copy", "-pes_payload_size", "0", copy]);
      const theirs = packets(copy);
      for (const [label, made] of [["whole", whole], ["joined", concatBytes(parts)]] as const) {
        const ours = join(folder, `${label}.ts`);
        writeFileSync(ours, made);
        assertEquals(run("ffmpeg", [...QUIET, "-i", ours, "-f", "null", "-"]).err, "", label);
        const mine = packets(ours);
        assertEquals(mine.map(({ hash }) => hash), theirs.map(({ hash }) => hash), label);
        const offset = mine[0]!.pts - theirs[0]!.pts;
        for (const [i, { pts }] of mine.entries()) {
          assertLessOrEqual(Math.abs(pts - theirs[i]!.pts - offset), 0.001, `${label} packet ${i}`);
        }
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

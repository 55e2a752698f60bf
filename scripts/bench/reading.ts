/**
 * Memory of a download while one client reads what arrives: a film of 0.4 GB from libtorrent seeders whose links are
 * fast enough not to matter, on each runtime. The client takes the bytes as fast as they come.
 *
 *   node scripts/bench/reading.ts [rounds=3] [outputs=file,ts] [runtimes=node,deno,bun] [clip=mkv] [contestant.mjs]
 *
 * Prints MB/s of the output and the peak resident memory of the process, each run and the median. Works under
 * $BENCH_DIR (default: the system's temporary directory).
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { commandOf, type Runtime } from "../support/runtimes.ts";
import { median, usage } from "./children.ts";
import { bundle, type Contender } from "./contenders.ts";
import { Swarm } from "./far-swarm.ts";
import { fresh, mediaUrls, read, Serving, within } from "./serving.ts";
import { makeClips } from "./stream.ts";

/** How often the clip of 59 MB is repeated in the film. */
const REPEATS = 7;
/** Links fast enough not to matter. */
const NEAR = { seeders: 2, bytesPerS: 1e9 };

/** The clip of that kind, several times in a row. */
function makeFilm(work: string, kind: string): string {
  const clip = makeClips(work).find((name) => name.endsWith(`.${kind}`))!;
  const film = path.join(path.dirname(clip), `film.${kind}`);
  if (existsSync(film)) return film;
  const args = ["-v", "error", "-stream_loop", String(REPEATS - 1), "-i", clip, "-c", "copy", film];
  if (spawnSync("ffmpeg", args, { stdio: "inherit" }).status !== 0) throw new Error("ffmpeg failed");
  return film;
}

/** Reads an output of the film from its beginning to its end, while the engine downloads it. */
async function readThrough(who: Contender, swarm: Swarm, work: string): Promise<{ rate: number; peakMB: number }> {
  const serving = await Serving.open(who, swarm, work);
  try {
    let bytes = 0;
    for (const url of await within("the playlist", mediaUrls(serving.url))) {
      await within("the film", read(url, 0, fresh(), (count) => (bytes += count) > 0));
    }
    const seconds = (performance.now() - serving.beganMs) / 1000;
    return { rate: bytes / 1e6 / seconds, peakMB: usage(serving.pid).peakMB };
  } finally {
    await serving.close();
  }
}

const [rounds = "3", outputs = "file,ts", runtimes = "node,deno,bun", kind = "mkv", built] = process.argv.slice(2);
const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "reading-"));
try {
  const ours = built ?? await bundle("scripts/bench/contestant.ts", work);
  const film = makeFilm(work, kind);
  console.log("| runtime, output | MB/s | peak RSS, MB | runs |\n| --- | --- | --- | --- |");
  for (const runtime of runtimes.split(",") as Runtime[]) {
    for (const output of outputs.split(",")) {
      const flags = runtime === "deno" ? ["run", "-A", "--no-check", "--quiet"] : [];
      const start = ["env", `OUTPUT=${output}`, ...commandOf(runtime), ...flags, ours, "stream"];
      const who = { name: runtime, command: (torrent: string, into: string) => [...start, torrent, into] };
      const runs: { rate: number; peakMB: number }[] = [];
      for (let round = 0; round < Number(rounds); round++) {
        const swarm = await Swarm.open(film, work, NEAR);
        try {
          runs.push(await readThrough(who, swarm, work));
        } finally {
          await swarm.close();
        }
      }
      const rate = median(runs.map((run) => run.rate)).toFixed(0);
      const peaks = runs.map(({ peakMB }) => peakMB.toFixed(0));
      console.log(
        `| ${runtime}, ${output} | ${rate} | ${median(runs.map((run) => run.peakMB)).toFixed(0)} | ${peaks} |`,
      );
    }
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}

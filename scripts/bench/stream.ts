/**
 * The waits of a player, against rivals that serve a torrent over HTTP: four libtorrent seeders behind links of 20
 * Mbit/s and 50 ms, all contenders taking turns in each round. First frame (ffmpeg opens the URL until it has decoded
 * one), seek (a request for a part that isn't there), a seeder that freezes, and many clients on a complete file.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { median, start, usage } from "./children.ts";
import { type Contender, isOnPath, streamers } from "./contenders.ts";
import { LINK, SEEDERS, Swarm } from "./far-swarm.ts";
import { fresh, read, Serving, within } from "./serving.ts";

const CLIP_SECONDS = 60;
const SEEKS = 5;
const CLIENTS = 200;
const CLIENT_S = 5;
/** All seeders' rate together, as a multiple of the clip's bitrate, while one of them freezes. */
const FREEZE_RATE = 1.3;
const FREEZE_AFTER_MS = 8000;
const FREEZE_PLAY_S = 30;
/** A link fast enough not to matter. */
const NEAR_BYTES_PER_S = 1e9;
/** A player starts with this much media. */
const PLAYER_BUFFER_S = 2;

/** Clips of 8 Mbit/s whose picture can't be compressed to less; kept in $BENCH_CLIPS, if that names a directory. */
export function makeClips(work: string): [mkv: string, mp4: string, ts: string] {
  const into = process.env["BENCH_CLIPS"] ?? work;
  const base = path.join(into, "clip.mkv");
  const encode = [
    ...["-f", "lavfi", "-i", "testsrc2=s=1280x720:r=25,noise=alls=30:allf=t", "-f", "lavfi", "-i", "sine=r=48000"],
    ...["-t", String(CLIP_SECONDS), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "50"],
    ...["-b:v", "7700k", "-minrate", "7700k", "-maxrate", "7700k", "-bufsize", "3850k"],
    ...["-x264-params", "nal-hrd=cbr:force-cfr=1", "-c:a", "aac", "-b:a", "128k", base],
  ];
  const mp4 = path.join(into, "clip.mp4");
  const ts = path.join(into, "clip.ts");
  if ([base, mp4, ts].every((file) => existsSync(file))) return [base, mp4, ts];
  for (const args of [encode, ["-i", base, "-c", "copy", mp4], ["-i", base, "-c", "copy", ts]]) {
    if (spawnSync("ffmpeg", ["-v", "error", "-y", ...args], { stdio: "inherit" }).status !== 0) {
      throw new Error("ffmpeg failed");
    }
  }
  return [base, mp4, ts];
}

async function firstFrame(who: Contender, swarm: Swarm, work: string): Promise<number> {
  const serving = await Serving.open(who, swarm, work);
  try {
    // This very process serves it, so the child must not block it.
    const ffmpeg = start([
      ...["ffmpeg", "-v", "error", "-nostdin", "-threads", "1", "-i", serving.url],
      ...["-map", "0:v:0", "-frames:v", "1", "-f", "null", "-"],
    ]);
    const code = await within("first frame", new Promise((resolve) => ffmpeg.once("exit", resolve)));
    if (code !== 0) throw new Error(`${who.name}: no frame`);
    return (performance.now() - serving.beganMs) / 1000;
  } finally {
    await serving.close();
  }
}

async function seek(who: Contender, swarm: Swarm, work: string): Promise<number> {
  const serving = await Serving.open(who, swarm, work);
  try {
    const seconds: number[] = [];
    await within("the start", read(serving.url, 0, fresh(), () => false));
    for (let i = 1; i <= SEEKS; i++) {
      // Alternately far ahead and back, never into what was read ahead at the position before.
      const part = i % 2 === 1 ? 0.5 + i * 0.07 : 0.2 + i * 0.05;
      const began = performance.now();
      await within("a seek", read(serving.url, Math.floor(swarm.sizeBytes * part), fresh(), () => false));
      seconds.push((performance.now() - began) / 1000);
    }
    return median(seconds);
  } finally {
    await serving.close();
  }
}

/** Start and stalls, in seconds, of a player of constant bitrate while one of four seeders freezes. */
async function freeze(who: Contender, swarm: Swarm, work: string): Promise<{ startS: number; stalledS: number }> {
  const bytesPerS = swarm.sizeBytes / CLIP_SECONDS;
  const serving = await Serving.open(who, swarm, work);
  const timer = setTimeout(() => swarm.freezeOne(), FREEZE_AFTER_MS);
  try {
    let received = 0;
    let startMs = 0;
    let stalledMs = 0;
    let playedToMs = 0;
    await within(
      "playing",
      read(serving.url, 0, fresh(), (bytes) => {
        received += bytes;
        const now = performance.now();
        if (startMs === 0 && received >= PLAYER_BUFFER_S * bytesPerS) startMs = now;
        if (startMs === 0) return true;
        // The media before this chunk lasted until then; anything beyond that was waiting.
        playedToMs = (received - bytes) / bytesPerS * 1000;
        stalledMs += Math.max(0, now - startMs - stalledMs - playedToMs);
        return received < FREEZE_PLAY_S * bytesPerS;
      }),
    );
    return { startS: (startMs - serving.beganMs) / 1000, stalledS: stalledMs / 1000 };
  } finally {
    clearTimeout(timer);
    await serving.close();
  }
}

/** MB/s of many clients that read a whole file repeatedly (with wrk), and the megabytes that each of them adds. */
export async function fanOut(
  who: Contender,
  swarm: Swarm,
  work: string,
): Promise<{ rate: number; perClientMB: number }> {
  const serving = await Serving.open(who, swarm, work);
  try {
    await within("the whole file", read(serving.url, 0, fresh(), () => true));
    const before = usage(serving.pid).peakMB;
    const wrk = start(["wrk", "-t1", `-c${CLIENTS}`, `-d${CLIENT_S}s`, "--timeout", "60s", serving.url]);
    let told = "";
    wrk.stdout!.on("data", (chunk: Uint8Array) => told += new TextDecoder().decode(chunk));
    await within("many clients", new Promise((resolve) => wrk.once("exit", resolve)));
    const [, seconds, amount, unit] = /in ([\d.]+)s, ([\d.]+)([KMGT]?)B read/.exec(told) ?? [];
    if (seconds === undefined) throw new Error(`wrk said ${told}`);
    const bytes = Number(amount) * 1024 ** " KMGT".indexOf(unit || " ");
    return { rate: bytes / 1e6 / Number(seconds), perClientMB: (usage(serving.pid).peakMB - before) / CLIENTS };
  } finally {
    await serving.close();
  }
}

/** Runs `measure` for each contender, round by round; returns a Markdown table. A contender that fails gives its reason. */
export async function compare<T>(
  title: string,
  columns: readonly string[],
  who: readonly Contender[],
  rounds: number,
  open: () => Promise<Swarm>,
  measure: (who: Contender, swarm: Swarm) => Promise<T>,
  row: (results: readonly T[]) => readonly string[],
): Promise<string[]> {
  const results = new Map<Contender, T[]>(who.map((one) => [one, []]));
  const failures = new Map<Contender, string>();
  for (let round = 0; round < rounds; round++) {
    for (const one of who) {
      const swarm = await open();
      try {
        results.get(one)!.push(await measure(one, swarm));
      } catch (error) {
        failures.set(one, String(error));
      } finally {
        await swarm.close();
      }
    }
  }
  return [
    "",
    `### ${title}`,
    "",
    `| contender | ${columns.join(" | ")} |`,
    `| --- |${" --- |".repeat(columns.length)}`,
    ...who.map((one) => {
      const list = results.get(one)!;
      const cells = list.length === 0 ? [failures.get(one) ?? "–"] : row(list);
      return `| ${one.name} | ${cells.join(" | ")} |`;
    }),
  ];
}

/** All scenarios as Markdown. `ours` is the bundled contestant; needs ffmpeg and libtorrent's binding. */
export async function streaming(work: string, ours: string, rounds: number): Promise<string[]> {
  const [mkv, mp4] = makeClips(work);
  const who = streamers(ours);
  const seconds = (list: readonly number[]) => [median(list).toFixed(2)];
  const far = (clip: string) => () => Swarm.open(clip, work);
  const bitrate = readFileSync(mkv).length / CLIP_SECONDS;
  const tight = () => Swarm.open(mkv, work, { bytesPerS: FREEZE_RATE * bitrate / SEEDERS });
  const near = () => Swarm.open(mkv, work, { bytesPerS: NEAR_BYTES_PER_S });
  const frame = (one: Contender, swarm: Swarm) => firstFrame(one, swarm, work);
  const ms = LINK.delayMs * 2;
  return [
    `## Streaming from ${SEEDERS} seeders, 20 Mbit/s and ${ms} ms each`,
    ...await compare("First frame, MKV", ["seconds"], who, rounds, far(mkv), frame, seconds),
    ...await compare("First frame, MP4 with its index at the end", ["seconds"], who, rounds, far(mp4), frame, seconds),
    ...await compare("Seek to the first byte", ["s"], who, rounds, far(mkv), (o, s) => seek(o, s, work), seconds),
    ...await compare(
      `${FREEZE_RATE} × bitrate, one of the seeders freezes`,
      ["start, s", "stalled, s"],
      who,
      rounds,
      tight,
      (one, swarm) => freeze(one, swarm, work),
      (list) => [median(list.map((r) => r.startS)).toFixed(2), median(list.map((r) => r.stalledS)).toFixed(2)],
    ),
    ...isOnPath("wrk")
      ? await compare(
        `${CLIENTS} clients on one cached file`,
        ["MB/s", "MB a client"],
        who,
        rounds,
        near,
        (one, swarm) => fanOut(one, swarm, work),
        (list) => [median(list.map((r) => r.rate)).toFixed(0), median(list.map((r) => r.perClientMB)).toFixed(2)],
      )
      : ["", "Not installed: wrk (many clients)."],
  ];
}

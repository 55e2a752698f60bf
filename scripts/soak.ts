/**
 * A long run that shows what grows: `deno task soak [minutes] [deno|node|bun]`.
 *
 * The real program plays films and channels, imports lists and broadcasts, while viewers join, seek and leave, and seeders and
 * broadcasters are killed: all in processes of their own on this machine. Afterwards it stands idle. Prints a table of memory,
 * descriptors and stores, with their slope over the second half. Ends by itself; exit code 1 when the engine did not survive
 * or did not end by SIGTERM. Needs ffmpeg; descriptors and resident memory come from /proc.
 *
 *   --csv FILE           all samples, to find steps
 *   --runtime-flag FLAG  for the engine's runtime, such as --inspect=127.0.0.1:9229; repeatable
 *   --load SHARE         fewer actors that rest longer, where the machine has other work: 0.5 is about half (default 1)
 *   --idle SECONDS       how long it stands idle (default 120: sessions end after 60 s)
 */
import { appendFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import { runtimeName } from "../platform/detect.ts";
import { act, pause, type Tally } from "./soak/actors.ts";
import { report } from "./soak/report.ts";
import { readSample, type Sample } from "./soak/sample.ts";
import { exit, isRuntime } from "./support/runtimes.ts";
import { openWorld, type Subject } from "./soak/world.ts";

const DEFAULT_MINUTES = 10;
const MAX_MINUTES = 24 * 60;
const DEFAULT_IDLE_S = 120;
/** Between two samples, ms. */
const SAMPLE_EVERY_MS = 5000;

/** Takes samples until `over` fires, or the engine is gone. */
async function sampled(subject: Subject, over: AbortSignal, csv: string | undefined, into: Sample[]): Promise<void> {
  while (!over.aborted && subject.isAlive()) {
    const sample = await readSample(subject);
    if (csv !== undefined) {
      if (into.length === 0) writeFileSync(csv, `${Object.keys(sample).join(",")}\n`);
      appendFileSync(csv, `${Object.values(sample).join(",")}\n`);
    }
    into.push(sample);
    await pause(SAMPLE_EVERY_MS, over);
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    csv: { type: "string" },
    idle: { type: "string", default: String(DEFAULT_IDLE_S) },
    load: { type: "string", default: "1" },
    "runtime-flag": { type: "string", multiple: true, default: [] },
  },
});
const runtime = positionals.find(isRuntime) ?? runtimeName();
const minutes = Number(positionals.find((word) => !isRuntime(word)) ?? DEFAULT_MINUTES);
const idleS = Number(values.idle);
const load = Number(values.load);
if (!isRuntime(runtime) || !(minutes > 0 && minutes <= MAX_MINUTES) || !(idleS >= 0) || !(load > 0 && load <= 1)) {
  console.error(
    "usage: soak [minutes] [deno|node|bun] [--csv FILE] [--idle SECONDS] [--load SHARE] [--runtime-flag FLAG]",
  );
  exit(false);
}
console.log(`soak on ${runtime}: ${minutes} min, then ${idleS} s idle`);
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupted.abort());
const world = await openWorld(runtime, values["runtime-flag"]);
const tally: Tally = { done: new Map(), failed: new Map(), bytes: 0 };
const busy: Sample[] = [], idle: Sample[] = [];
let survived = false, ended = false;
try {
  const { subject } = world;
  console.log(`engine ${subject.pid} at ${subject.url}`);
  const over = AbortSignal.any([interrupted.signal, AbortSignal.timeout(minutes * 60_000)]);
  await Promise.all([act(world, tally, over, load), sampled(subject, over, values.csv, busy)]);
  const rested = AbortSignal.any([interrupted.signal, AbortSignal.timeout(idleS * 1000)]);
  await sampled(subject, rested, undefined, idle);
  if (subject.isAlive()) idle.push(await readSample(subject));
  survived = subject.isAlive();
} finally {
  ended = await world.close();
}
console.log(report({ busy, idle, tally, log: world.subject.log() }));
console.log(survived ? ended ? "the engine ended by SIGTERM" : "the engine did NOT end by SIGTERM" : "the engine DIED");
exit(survived && ended);

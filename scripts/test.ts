/**
 * Runs the suite: `test.ts [deno] [node] [bun] [part of a path…]`. Default: the runtime that runs this script, without the
 * suites that need other programs (`test/interop`, `test/browser`). `--least`: Deno allows the tests no more than a user has
 * to allow the engine, which is enough for `test/loopback`.
 *
 * A few files that fail are run once more, each alone: many tests wait for other programs and for the network, and a busy
 * machine can let them wait too long. What fails twice fails; what needed its second run is named at the end.
 */
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { runtimeName } from "../platform/detect.ts";
import { ROOT, testFiles } from "./support/files.ts";
import {
  commandOf,
  exit,
  isRuntime,
  LEAST_PERMISSIONS,
  run,
  runAsync,
  type RunOptions,
  type Runtime,
} from "./support/runtimes.ts";
import { failedFiles } from "./support/test-report.ts";

/** Time limit per test, where the runtime supports one, ms: a simulated swarm takes 30 s of processor time, of which it has a share. */
const TEST_TIMEOUT_MS = 120_000;

/** Files tested at once: most tests wait for sockets and clocks, so more files than cores can run. */
const JOBS = 4;

/**
 * These take longest, so they begin first, in this order: one that begins last runs alone at the end, and a core waits for it.
 * (Node orders files itself.)
 */
const LONGEST = [
  ...["simulation/live", "interop/transcode", "interop/media_conformance", "interop/players", "interop/vlc"],
  ...["interop/foreign", "interop/media_test", "interop/broadcast", "interop/web_torrent", "interop/ipv6"],
];

/** More failed files than this are no accident of a busy machine: they are not run again. */
const MAX_SECOND_RUNS = 4;

/** With `--least`; some tests also start a second process. */
const allowed = process.argv.includes("--least") ? [...LEAST_PERMISSIONS, "--allow-run"] : ["-A"];
const FLAGS: Readonly<Record<Runtime, readonly string[]>> = {
  deno: ["test", ...allowed, "--no-check", "-q", "--parallel"],
  node: ["--test", "--test-isolation=none"],
  bun: ["test", `--timeout=${TEST_TIMEOUT_MS}`, `--parallel=${JOBS}`],
};

/**
 * Node would run each file in a process of its own, and load the engine in each, which takes longer than most files do. Of
 * these folders this many run in one process, one after the other.
 */
const FILES_PER_NODE = 12;
const SHARING = [
  ...["api", "bytes", "config", "content", "contract", "discovery", "engine"],
  ...["inputs", "live", "metainfo", "storage", "swarm", "utp", "wire"],
].map((folder) => `./test/${folder}/`);

/**
 * Run one file at a time, with priority: these measure memory and delays, or share one browser, which others on the same
 * cores would distort. They mostly wait, so all others run meanwhile, on what they leave of the processor.
 */
const ALONE = ["./test/memory/", "./test/attack/", "./test/browser/"];
const FLAGS_ALONE: Readonly<Record<Runtime, readonly string[]>> = {
  deno: ["test", ...allowed, "--no-check", "-q"],
  node: ["--test", "--test-concurrency=1"],
  bun: ["test", `--timeout=${TEST_TIMEOUT_MS}`],
};

/** Tests in these folders start the program, some of them ten times. */
const STARTING = ["./test/platform/", "./test/attack/"];

/**
 * Builds the program once for all of them and lets them know where: as a single file it starts in a fraction of the processor
 * time that its sources take. Returns the directory.
 */
function buildProgram(): string {
  const directory = mkdtempSync(path.join(tmpdir(), "millrace-program-"));
  const runtime = runtimeName();
  const flags = runtime === "deno" ? ["run", "-A", "--no-check", "-q"] : [];
  if (!run(commandOf(runtime), [...flags, "scripts/build.ts", "--into", directory], ROOT)) exit(false);
  process.env["TEST_PROGRAM"] = path.join(directory, "millrace.mjs");
  return directory;
}

/** Flags for a report in the JUnit format at `file`, beside what is printed. */
const REPORT: Readonly<Record<Runtime, (file: string) => readonly string[]>> = {
  deno: (file) => [`--junit-path=${file}`],
  node: (file) => [
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    "--test-reporter=junit",
    `--test-reporter-destination=${file}`,
  ],
  bun: (file) => ["--reporter=junit", `--reporter-outfile=${file}`],
};

/** Where the second runs of all suites on this machine are listed, one per line: those that come back are worth a look. */
const SECOND_RUNS = path.join(ROOT, "node_modules/.cache/second-runs.txt");

const secondRuns: string[] = [];

/** Runs `files` once; gives those that failed and may run again, null when that would not help. */
async function pass(
  runtime: Runtime,
  flags: readonly string[],
  files: readonly string[],
  options: RunOptions = {},
): Promise<readonly string[] | null> {
  if (files.length === 0) return [];
  const directory = mkdtempSync(path.join(tmpdir(), "millrace-tests-"));
  try {
    const report = path.join(directory, "report.xml");
    if (await runAsync(commandOf(runtime), [...flags, ...REPORT[runtime](report), ...files], ROOT, options)) return [];
    const failed = failedFiles(readReport(report), files, ROOT);
    return failed.length === 0 || failed.length > MAX_SECOND_RUNS ? null : failed;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** As `pass`, for files that may run at the same time. */
async function passTogether(runtime: Runtime, files: readonly string[], isNice: boolean) {
  if (runtime !== "node") return await pass(runtime, FLAGS[runtime], files, { isNice });
  const queue = batches(files);
  const failed: string[] = [];
  let isHopeless = false;
  const worker = async () => {
    for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) {
      const some = await pass(runtime, FLAGS[runtime], batch, { isNice, isHeld: true });
      if (some === null) isHopeless = true;
      else failed.push(...some);
    }
  };
  await Promise.all(Array.from({ length: JOBS }, worker));
  return isHopeless || failed.length > MAX_SECOND_RUNS ? null : failed;
}

/** `files` as they share processes of Node: neighbours, which load much of the same. */
function batches(files: readonly string[]): string[][] {
  const sharing = files.filter((file) => SHARING.some((folder) => file.startsWith(folder)));
  const alone = files.filter((file) => !sharing.includes(file)).map((file) => [file]);
  const parts = Math.ceil(sharing.length / FILES_PER_NODE);
  const shared = Array.from({ length: parts }, (_, i) => sharing.slice(i * FILES_PER_NODE, (i + 1) * FILES_PER_NODE));
  return [...alone, ...shared];
}

/** Place of `file` among those that begin first; all others come after them. */
function rank(file: string): number {
  const at = LONGEST.findIndex((part) => file.includes(part));
  return at < 0 ? LONGEST.length : at;
}

/** Time between two looks whether the process of `SECOND_RUNS_AFTER_PID` still runs, ms. */
const LOOK_EVERY_MS = 1000;

/** With `SECOND_RUNS_AFTER_PID` in the environment: resolves when that process has ended, so that a second run is one alone. */
async function quiet(): Promise<void> {
  const pid = Number(process.env["SECOND_RUNS_AFTER_PID"] ?? 0);
  for (let isThere = pid > 0; isThere;) {
    try {
      process.kill(pid, 0);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    } catch {
      isThere = false;
    }
  }
}

/** Runs what failed in a pass once more, each file alone; returns whether all passed then. */
async function again(runtime: Runtime, failed: readonly string[] | null): Promise<boolean> {
  if (failed === null) return false;
  if (failed.length > 0) await quiet();
  for (const file of failed) {
    console.log(`\n== again, alone, on ${runtime}: ${file}`);
    if (!await runAsync(commandOf(runtime), [...FLAGS_ALONE[runtime], file], ROOT)) return false;
    secondRuns.push(`${file} on ${runtime}`);
  }
  return true;
}

/** Empty when the runner ended before it could write one: then every file counts as failed. */
function readReport(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const args = process.argv.slice(2).filter((arg) => arg !== "--least");
const named = args.filter(isRuntime);
const files = testFiles(args.filter((arg) => !isRuntime(arg))).map((file) => `./${file}`);
process.env["DENO_JOBS"] ??= String(JOBS);
// On Node every test file is a process: without this cache each would strip and compile the same modules again.
process.env["NODE_COMPILE_CACHE"] ??= path.join(ROOT, "node_modules/.cache/node");
let ok = files.length > 0;
if (!ok) console.error("no test file matches");
const starting = files.filter((file) => STARTING.some((folder) => file.startsWith(folder)));
const built = starting.length > 1 ? buildProgram() : null;
const runtimes = named.length > 0 ? named : [runtimeName()];
const apart = files.filter((file) => ALONE.some((folder) => file.startsWith(folder)));
const together = files.filter((file) => !apart.includes(file)).sort((a, b) => rank(a) - rank(b));

type Failed = readonly [Runtime, readonly string[] | null];
/** Runs `step` for one runtime after the other. */
async function forEachRuntime(step: (runtime: Runtime) => Promise<readonly string[] | null>): Promise<Failed[]> {
  const failed: Failed[] = [];
  for (const runtime of runtimes) failed.push([runtime, await step(runtime)]);
  return failed;
}

const isBoth = apart.length > 0 && together.length > 0;
const outcomes = await Promise.all([
  forEachRuntime((runtime) => {
    console.log(`\n== tests on ${runtime}`);
    return passTogether(runtime, together, isBoth);
  }),
  forEachRuntime((runtime) => pass(runtime, FLAGS_ALONE[runtime], apart, { isHeld: isBoth })),
]);
for (const [runtime, failed] of outcomes.flat()) ok = await again(runtime, failed) && ok;
if (built !== null) rmSync(built, { recursive: true, force: true });
if (secondRuns.length > 0) {
  console.log(`\npassed only when run again, alone:\n  ${secondRuns.join("\n  ")}`);
  mkdirSync(path.dirname(SECOND_RUNS), { recursive: true });
  appendFileSync(SECOND_RUNS, secondRuns.map((run) => `${new Date().toISOString().slice(0, 10)} ${run}\n`).join(""));
}
exit(ok);

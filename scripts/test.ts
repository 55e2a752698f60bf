/**
 * Runs the suite: `test.ts [deno] [node] [bun] [part of a path…]`. Default: the runtime that runs this script, without the
 * suites that need other programs (`test/interop`, `test/browser`).
 *
 * A few files that fail are run once more, each alone: many tests wait for other programs and for the network, and a busy
 * machine can let them wait too long. What fails twice fails; what needed its second run is named at the end.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { runtimeName } from "../platform/detect.ts";
import { ROOT, testFiles } from "./support/files.ts";
import { commandOf, exit, isRuntime, run, type Runtime } from "./support/runtimes.ts";
import { failedFiles } from "./support/test-report.ts";

/** Time limit per test, where the runtime supports one, ms: a simulated swarm takes 30 s of processor time, of which it has a share. */
const TEST_TIMEOUT_MS = 120_000;

/** Files tested at once: most tests wait for sockets and clocks, so more files than cores can run. */
const JOBS = 4;

/**
 * These take longest, so they begin first: one that begins last runs alone at the end, and a core waits for it. (Node orders
 * files itself.)
 */
const LONGEST = ["simulation/live", "interop/players", "interop/media_conformance", "interop/transcode", "interop/vlc"];

/** More failed files than this are no accident of a busy machine: they are not run again. */
const MAX_SECOND_RUNS = 4;

const FLAGS: Readonly<Record<Runtime, readonly string[]>> = {
  deno: ["test", "-A", "--no-check", "-q", "--parallel"],
  node: ["--test", `--test-concurrency=${JOBS}`],
  bun: ["test", `--timeout=${TEST_TIMEOUT_MS}`, `--parallel=${JOBS}`],
};

/** Run one file at a time: these measure memory and delays, or share one browser, which others on the same cores would distort. */
const ALONE = ["./test/memory/", "./test/attack/", "./test/browser/"];
const FLAGS_ALONE: Readonly<Record<Runtime, readonly string[]>> = {
  deno: ["test", "-A", "--no-check", "-q"],
  node: ["--test", "--test-concurrency=1"],
  bun: ["test", `--timeout=${TEST_TIMEOUT_MS}`],
};

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

const secondRuns: string[] = [];

/** Runs `files` and, where it helps, some of them again. */
function pass(runtime: Runtime, flags: readonly string[], files: readonly string[]): boolean {
  if (files.length === 0) return true;
  const directory = mkdtempSync(path.join(tmpdir(), "millrace-tests-"));
  try {
    const report = path.join(directory, "report.xml");
    if (run(commandOf(runtime), [...flags, ...REPORT[runtime](report), ...files], ROOT)) return true;
    const failed = failedFiles(readReport(report), files, ROOT);
    if (failed.length === 0 || failed.length > MAX_SECOND_RUNS) return false;
    for (const file of failed) {
      console.log(`\n== again, alone, on ${runtime}: ${file}`);
      if (!run(commandOf(runtime), [...FLAGS_ALONE[runtime], file], ROOT)) return false;
      secondRuns.push(`${file} on ${runtime}`);
    }
    return true;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Empty when the runner ended before it could write one: then every file counts as failed. */
function readReport(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const args = process.argv.slice(2);
const named = args.filter(isRuntime);
const files = testFiles(args.filter((arg) => !isRuntime(arg))).map((file) => `./${file}`);
process.env["DENO_JOBS"] ??= String(JOBS);
// On Node every test file is a process: without this cache each would strip and compile the same modules again.
process.env["NODE_COMPILE_CACHE"] ??= path.join(ROOT, "node_modules/.cache/node");
let ok = files.length > 0;
if (!ok) console.error("no test file matches");
for (const runtime of named.length > 0 ? named : [runtimeName()]) {
  console.log(`\n== tests on ${runtime}`);
  const apart = files.filter((file) => ALONE.some((folder) => file.startsWith(folder)));
  const isLong = (file: string) => LONGEST.some((part) => file.includes(part));
  const together = files.filter((file) => !apart.includes(file)).sort((a, b) => Number(isLong(b)) - Number(isLong(a)));
  ok = pass(runtime, FLAGS[runtime], together) && ok;
  ok = pass(runtime, FLAGS_ALONE[runtime], apart) && ok;
}
if (secondRuns.length > 0) console.log(`\npassed only when run again, alone:\n  ${secondRuns.join("\n  ")}`);
exit(ok);

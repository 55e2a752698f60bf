/** Runs the suite: `test.ts [deno] [node] [bun] [part of a path…]`. Default: the runtime that runs this script. */
import path from "node:path";
import process from "node:process";
import { runtimeName } from "../platform/detect.ts";
import { ROOT, testFiles } from "./support/files.ts";
import { commandOf, exit, isRuntime, run, type Runtime } from "./support/runtimes.ts";

/** Time limit per test, where the runtime supports one, ms. */
const TEST_TIMEOUT_MS = 60_000;

/** Files tested at once: most tests wait for sockets and clocks, so more files than cores can run. */
const JOBS = 4;

const FLAGS: Readonly<Record<Runtime, readonly string[]>> = {
  deno: ["test", "-A", "--no-check", "-q", "--parallel"],
  node: ["--test", `--test-concurrency=${JOBS}`],
  bun: ["test", `--timeout=${TEST_TIMEOUT_MS}`, `--parallel=${JOBS}`],
};

/** Run one file at a time: these measure memory and delays, which other tests on the same cores would distort. */
const ALONE = ["./test/memory/", "./test/attack/"];
const FLAGS_ALONE: Readonly<Record<Runtime, readonly string[]>> = {
  deno: ["test", "-A", "--no-check", "-q"],
  node: ["--test", "--test-concurrency=1"],
  bun: ["test", `--timeout=${TEST_TIMEOUT_MS}`],
};

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
  const together = files.filter((file) => !apart.includes(file));
  if (together.length > 0) ok = run(commandOf(runtime), [...FLAGS[runtime], ...together], ROOT) && ok;
  if (apart.length > 0) ok = run(commandOf(runtime), [...FLAGS_ALONE[runtime], ...apart], ROOT) && ok;
}
exit(ok);

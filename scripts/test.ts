/** Runs the suite on runtimes: `test.ts [deno] [node] [bun] [part of a path…]`. Default: the runtime that runs this. */
import process from "node:process";
import { runtimeName } from "../platform/detect.ts";
import { ROOT, testFiles } from "./support/files.ts";
import { commandOf, exit, isRuntime, run, type Runtime } from "./support/runtimes.ts";

/** Longest that one test may take where the runtime has a limit of its own, ms. */
const TEST_TIMEOUT_MS = 60_000;

const FLAGS: Readonly<Record<Runtime, readonly string[]>> = {
  deno: ["test", "-A", "--no-check", "-q"],
  node: ["--test"],
  bun: ["test", `--timeout=${TEST_TIMEOUT_MS}`],
};

const args = process.argv.slice(2);
const named = args.filter(isRuntime);
const files = testFiles(args.filter((arg) => !isRuntime(arg))).map((file) => `./${file}`);
let ok = files.length > 0;
if (!ok) console.error("no test has such a path");
for (const runtime of named.length > 0 ? named : [runtimeName()]) {
  console.log(`\n== tests on ${runtime}`);
  ok = run(commandOf(runtime), [...FLAGS[runtime], ...files], ROOT) && ok;
}
exit(ok);

/**
 * Everything that must pass before a change lands: format, lint, types, import directions, regular expressions, docs,
 * tests on three runtimes. `--without-deno-tests` for callers that have already run those.
 */
import process from "node:process";
import { ROOT } from "./support/files.ts";
import { commandOf, exit, run, runAsync } from "./support/runtimes.ts";

const deno = commandOf("deno");
const script = (name: string, ...args: string[]) => () =>
  run(deno, ["run", "-A", "-q", `scripts/${name}.ts`, ...args], ROOT);
const denoTests = process.argv.includes("--without-deno-tests") ? [] : ["deno"];

const steps: readonly (readonly [string, () => boolean | Promise<boolean>])[] = [
  ["format", () => run(deno, ["fmt", "--check", "-q"], ROOT)],
  ["lint", () => run(deno, ["lint", "-q"], ROOT)],
  ["import directions", script("check-imports")],
  ["regular expressions", script("check-regexes")],
  ["docs", script("check-docs")],
  ["web page", script("build-webui", "--check")],
  ["tests", () => runAsync(deno, ["run", "-A", "-q", "scripts/test.ts", ...denoTests, "node", "bun"], ROOT)],
];

/** Work for half a minute on one core, in time that the tests leave. */
const types = runAsync(deno, ["check", "-q", "--doc", "src", "platform", "scripts", "test"], ROOT, {
  isNice: true,
  isHeld: true,
});

const failed: string[] = [];
for (const [name, step] of steps) {
  const before = performance.now();
  console.log(`\n== ${name}`);
  if (!await step()) failed.push(name);
  console.log(`   ${((performance.now() - before) / 1000).toFixed(1)} s`);
}
console.log("\n== types");
if (!await types) failed.push("types");
console.log(failed.length === 0 ? "\nall good" : `\nfailed: ${failed.join(", ")}`);
exit(failed.length === 0);

/**
 * Smoke test of the built file: `test-built.ts [command…]` runs its demo with each command, then the file without
 * `libsql.node` beside it, and then updates it while it plays with all of them. Default: node.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { ROOT } from "./support/files.ts";
import { checkAlone } from "./support/alone-check.ts";
import { exit, LEAST_PERMISSIONS } from "./support/runtimes.ts";
import { playsDemo, serves } from "./support/smoke.ts";
import { checkUpdate } from "./support/update-check.ts";

/** Time limit for the whole demo, ms. */
const DEMO_TIMEOUT_MS = 60_000;

const BUNDLE = path.join(ROOT, "dist", "millrace.mjs");
const commands = process.argv.length > 2 ? process.argv.slice(2) : ["node"];
let ok = true;
for (const command of commands) {
  const [name, ...before] = command.split(" ");
  const args = [...before, BUNDLE, "demo", "--once", "--http-port", "0", "--peer-port", "0"];
  const { status, stdout, stderr } = spawnSync(name!, args, { encoding: "utf8", timeout: DEMO_TIMEOUT_MS, cwd: "/" });
  const good = status === 0 && /MPEG TS: .* good\nHLS: .* good/.test(stdout);
  console.log(`${command}: ${good ? "good" : `failed with ${status}\n${stdout}${stderr}`}`);
  ok &&= good;
  try {
    await checkAlone(command, BUNDLE);
    console.log(`${command}, the file alone: good`);
  } catch (error) {
    console.log(`${command}, the file alone: ${(error as Error).message}`);
    ok = false;
  }
}
if (commands.some((command) => command.startsWith("deno "))) {
  // The demo also starts its second process.
  const start = ["deno", "run", ...LEAST_PERMISSIONS] as const;
  // Below /dev, where a temporary directory in memory may be, Deno lets only `--allow-all` write.
  const env = { TMPDIR: mkdtempSync(path.join(path.dirname(BUNDLE), "temporary-")) };
  try {
    await serves({ command: [...start, BUNDLE], cwd: "/", env });
    await playsDemo({ command: [...start, "--allow-run", BUNDLE], cwd: "/", env });
    console.log(`${start.join(" ")}: good`);
  } catch (error) {
    console.log(`${start.join(" ")}: ${(error as Error).message}`);
    ok = false;
  } finally {
    rmSync(env.TMPDIR, { recursive: true, force: true });
  }
}
try {
  await checkUpdate(commands, path.dirname(BUNDLE));
  console.log("an update while they play: good");
} catch (error) {
  console.log(`an update while they play: ${(error as Error).message}`);
  ok = false;
}
exit(ok);

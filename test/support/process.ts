/** Programs that tests start: line-wise output, a deadline on every wait, no process left running. */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { concatBytes } from "../../src/bytes/hex.ts";

/** Longest wait for a line, ms: on a busy machine a program begins a minute late. */
const WAIT_MS = 100_000;

/** A running program. */
export interface Program {
  readonly child: ChildProcess;
  /** Everything it wrote so far, both streams. */
  readonly output: () => string;
  /** The next stdout line (from the start of the output) that `pattern` matches. */
  line(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  /** Its exit code, -1 when killed by a signal. */
  readonly exited: Promise<number>;
  stop(): Promise<void>;
}

/** Starts a program; a missing one fails the test with its name. */
export function start(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Program {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stdout = "", all = "";
  const listeners = new Set<() => void>();
  let failure: Error | null = null;
  let ended = false;
  const wake = () => listeners.forEach((listener) => listener());
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    all += text;
    wake();
  });
  child.stderr!.setEncoding("utf8").on("data", (text: string) => all += text);
  child.stdin!.on("error", () => {});
  const exited = new Promise<number>((resolve) => {
    child.on("error", (error) => {
      failure = new Error(`${command} could not be started: ${error.message}`);
      ended = true;
      wake();
      resolve(-1);
    });
    child.on("close", (code) => {
      ended = true;
      failure ??= new Error(`${command} ended with ${code}:\n${all.slice(-2000)}`);
      wake();
      resolve(code ?? -1);
    });
  });
  return {
    child,
    output: () => all,
    exited,
    line(pattern, timeoutMs = WAIT_MS) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => done(new Error(`${command}: no line like ${pattern} within ${timeoutMs} ms:\n${all.slice(-2000)}`)),
          timeoutMs,
        );
        const look = () => {
          for (const line of stdout.split("\n").slice(0, -1)) {
            const match = pattern.exec(line);
            if (match !== null) return done(match);
          }
          if (failure !== null) done(failure);
        };
        const done = (result: RegExpExecArray | Error) => {
          clearTimeout(timer);
          listeners.delete(look);
          if (result instanceof Error) reject(result);
          else resolve(result);
        };
        listeners.add(look);
        look();
      });
    },
    async stop() {
      // Not by `signalCode`: after a SIGSTOP Deno's child seems to have ended by it.
      if (!ended) kill(child);
      await exited;
    },
  };
}

/** By its number: a child that took a signal may refuse to pass on another. */
function kill(child: ChildProcess): void {
  try {
    process.kill(child.pid!, "SIGKILL");
  } catch {
    // The process is gone, but its exit event has not come yet.
  }
}

/** Runs a program to its end: exit code and both outputs. */
export async function run(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; timeoutMs?: number } = {},
): Promise<{ code: number; stdout: Uint8Array; text: string; stderr: string }> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const out: Uint8Array[] = [], err: Uint8Array[] = [];
  child.stdout!.on("data", (chunk) => out.push(chunk));
  child.stderr!.on("data", (chunk) => err.push(chunk));
  const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 60_000);
  const code = await new Promise<number>((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`${command} could not be started: ${error.message}`)));
    child.on("close", (code) => resolve(code ?? -1));
  }).finally(() => clearTimeout(timer));
  const stdout = concatBytes(out);
  return { code, stdout, text: new TextDecoder().decode(stdout), stderr: new TextDecoder().decode(concatBytes(err)) };
}

/** Starts, reads, measures and ends the child processes of a benchmark. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** Linux counts CPU time in hundredths of a second. */
const TICKS_PER_SECOND = 100;

/** The line of a child's output that begins with `word`. */
export function line(child: ChildProcess, word: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error(`no ${word} in ${timeoutMs} ms`)), timeoutMs);
    const settle = (step: () => void) => {
      clearTimeout(timer);
      child.stdout!.off("data", look);
      step();
    };
    const look = (chunk: Uint8Array) => {
      text += new TextDecoder().decode(chunk);
      const found = text.split("\n").slice(0, -1).find((candidate) => candidate.startsWith(word));
      if (found !== undefined) settle(() => resolve(found));
    };
    child.stdout!.on("data", look);
    child.once("exit", (code) => settle(() => reject(new Error(`${child.spawnargs.join(" ")} ended with ${code}`))));
  });
}

/** Calls `take` with each further line of a child's output that begins with `word`. */
export function eachLine(child: ChildProcess, word: string, take: (line: string) => void): void {
  const decoder = new TextDecoder();
  let text = "";
  child.stdout!.on("data", (chunk: Uint8Array) => {
    const lines = (text + decoder.decode(chunk, { stream: true })).split("\n");
    text = lines.pop()!;
    for (const said of lines) if (said.startsWith(word)) take(said);
  });
}

/** Starts a command; its standard error is shown. */
export function start(command: readonly string[]): ChildProcess {
  return spawn(command[0]!, command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
}

/** Ends a child at once. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

/** CPU seconds so far and peak resident megabytes of a process. */
export function usage(pid: number): { cpuSeconds: number; peakMB: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { cpuSeconds: ticks / TICKS_PER_SECOND, peakMB: Number(peak?.[1] ?? NaN) * 1024 / 1e6 };
  } catch {
    return { cpuSeconds: NaN, peakMB: NaN };
  }
}

/** Rejects after a time. */
export function deadline(timeoutMs: number, what: string): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not within ${timeoutMs} ms: ${what}`)), timeoutMs).unref();
  });
}

/** The middle value; the upper one of two. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

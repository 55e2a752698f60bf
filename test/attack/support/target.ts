/** An engine to attack: the real program in its own process, watched from outside. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { execFileSync } from "node:child_process";
import { assert, assertLess } from "@std/assert";
import { quietFlags, start, withDirectory } from "../../platform/support.ts";
import type { ServedEngine } from "../../support/engine.ts";

/** No attack may keep another client waiting for longer, ms. */
export const MAX_GAP_MS = 500;
/**
 * No attack may make the engine take more memory than this on top of what it had, MiB. Bun's collector leaves garbage for
 * longer: two films with pictures of 7 MiB, each played twice at once, take 124 to 155 MiB there.
 */
export const MAX_GROWTH_MIB = "Bun" in globalThis ? 200 : 150;
/** The whole life of a target, ms. */
const TARGET_LIFE_MS = 120_000;

/** A running program under attack. */
export interface Target extends Pick<ServedEngine, "url" | "peer"> {
  readonly pid: number;
  readonly stateDir: string;
  readonly cacheDir: string;
  /** The access token that the program made. */
  token(): string;
  /** Everything it logged so far. */
  log(): string;
  /** Resident memory now, MiB. */
  memoryMib(): number;
}

/** What an attack cost, as others saw it. */
export interface Cost {
  /** Longest time in which another client got no answer, ms. */
  readonly longestGapMs: number;
  /** Peak of the resident memory above what it was before, MiB. */
  readonly growthMib: number;
}

/**
 * Runs `body` against a program with `flags`, which may have `descriptors` files and sockets open, and `without` some flags
 * that it has by default (`--no-dht`). Afterwards the program must end by SIGTERM within a few seconds: a frozen one does not.
 */
export async function withTarget(
  body: (target: Target) => Promise<void>,
  flags: readonly string[] = [],
  descriptors?: number,
  without: readonly string[] = [],
) {
  await withDirectory(async (directory) => {
    const quiet = quietFlags(directory).filter((flag) => !without.includes(flag));
    const program = start([...quiet, "--log-level", "debug", ...flags], {}, TARGET_LIFE_MS, descriptors);
    let log = "";
    program.child.stderr!.on("data", (chunk) => log = (log + chunk).slice(-4_000_000));
    try {
      const ready = /^ready (http:\S+) peers (\S+)$/.exec(await program.firstLine);
      assert(ready !== null, program.stdout());
      const pid = program.child.pid!;
      await body({
        url: ready[1]!.replace(/\/$/, ""),
        peer: ready[2]!,
        pid,
        stateDir: path.join(directory, "state"),
        cacheDir: path.join(directory, "cache"),
        token: () => readFileSync(path.join(directory, "state", "access-token"), "utf8").trim(),
        log: () => log,
        memoryMib: () => memoryMib(pid),
      });
      program.kill("SIGTERM");
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<null>((resolve) => timer = setTimeout(resolve, 10_000, null));
      const outcome = await Promise.race([program.ended, late]);
      clearTimeout(timer);
      assert(outcome !== null, "the program did not end by SIGTERM");
    } finally {
      program.child.kill("SIGKILL");
      await program.ended;
    }
  });
}

/** Runs `attack` while another client asks for the version every 20 ms; returns what it cost. */
export async function costOf(target: Pick<Target, "url" | "pid">, attack: () => Promise<void>): Promise<Cost> {
  const watcher = new Worker(new URL("./watcher.ts", import.meta.url), {
    workerData: { url: target.url, pid: target.pid },
  });
  const next = () =>
    new Promise<unknown>((resolve, reject) => {
      watcher.once("message", resolve);
      watcher.once("error", reject);
    });
  try {
    const first = await next();
    assert(first === "watching", JSON.stringify(first));
    const beforeMib = memoryMib(target.pid);
    const peak = peakMib(target.pid, beforeMib);
    await attack();
    const growthMib = peak() - beforeMib;
    const last = next();
    watcher.postMessage("stop");
    const told = await last as { longestGapMs: number; answers: number };
    assert(told.answers > 1, "the watching client was never answered again");
    return { longestGapMs: told.longestGapMs, growthMib };
  } finally {
    await watcher.terminate();
  }
}

/** As `costOf`; fails the test where the attack delayed the other client or took more memory than is allowed. */
export async function assertHarmless(target: Pick<Target, "url" | "pid">, attack: () => Promise<void>): Promise<Cost> {
  const cost = await costOf(target, attack);
  assertLess(cost.longestGapMs, MAX_GAP_MS, "longest time without an answer for another client, ms");
  assertLess(cost.growthMib, MAX_GROWTH_MIB, "memory on top of what the engine had, MiB");
  return cost;
}

function memoryMib(pid: number): number {
  return statusMib(pid, "VmRSS") ?? Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)])) / 1024;
}

/** Peak memory from now on: the kernel's value where it reports one (Linux), else the largest of many samples. */
function peakMib(pid: number, beforeMib: number): () => number {
  if (statusMib(pid, "VmHWM") !== null) {
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
    return () => statusMib(pid, "VmHWM") ?? 0;
  }
  let most = beforeMib;
  const timer = setInterval(() => most = Math.max(most, memoryMib(pid)), 100);
  return () => {
    clearInterval(timer);
    return most;
  };
}

function statusMib(pid: number, field: string): number | null {
  try {
    const match = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return match === null ? null : Number(match[1]) / 1024;
  } catch {
    return null;
  }
}

/** The process that the command line runs in. All three runtimes have node:process; what differs comes from `main.ts` there. */
import process from "node:process";
import type { Ports } from "../src/ports.ts";
import type { PlatformOptions } from "./shared/options.ts";

/** What a runtime's `main.ts` gives. */
export interface Runtime {
  createPorts(options: PlatformOptions): Ports;
  /** Command and leading arguments that start this program again. */
  readonly self: readonly string[];
}

/** Writes `line` to standard output. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Writes `line` to standard error. */
export function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

/**
 * Resolves at the first SIGINT or SIGTERM. A second one ends the process at once, with 128 + the signal's number as
 * shells do.
 */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    for (const [signal, number] of [["SIGINT", 2], ["SIGTERM", 15]] as const) {
      process.on(signal, () => {
        if (stopping) process.exit(128 + number);
        stopping = true;
        resolve();
      });
    }
  });
}

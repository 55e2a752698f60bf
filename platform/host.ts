/** The process that the command line runs in. All three runtimes have node:process; each runtime's `main.ts` adds what differs. */
import process from "node:process";
import type { Ports } from "../src/ports.ts";
import type { PlatformOptions } from "./shared/options.ts";

/** What a runtime's `main.ts` provides. */
export interface Runtime {
  createPorts(options: PlatformOptions): Ports;
  /** Command and leading arguments that start this program once more. */
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
 * Resolves at the first SIGINT or SIGTERM. A second one ends the process at once, with exit code 128 + the signal's number
 * as in shells.
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

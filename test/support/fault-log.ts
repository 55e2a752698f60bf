/** Logs for tests. */
import type { Logger } from "../../src/ports.ts";

/** A log that nobody reads. */
export const silent: Logger = { log: () => {}, child: () => silent };

/** A log that keeps the faults of the engine, each with a stack. */
export function faultLog(): { readonly log: Logger; readonly faults: string[] } {
  const faults: string[] = [];
  const log: Logger = {
    log(level, message, { code, stack } = {}) {
      if (code === "internal" && level === "error" && typeof stack === "string") faults.push(message);
    },
    child: () => log,
  };
  return { log, faults };
}

/** Reads how many files and sockets the system lets this process have open. */
import { readFileSync } from "node:fs";
import process from "node:process";

/** The current limit on open descriptors (`ulimit -n`); null where the system has none or does not report it. */
export function descriptorLimit(): number | null {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    if (line !== null) return Number(line[1]);
  } catch {
    // Not Linux, or a sandbox that hides it.
  }
  return reported();
}

/** The limit from the diagnostic report of Node and Bun; Deno has no such report. */
function reported(): number | null {
  const report = process.report?.getReport?.() as { userLimits?: { open_files?: { soft?: unknown } } } | undefined;
  const soft = Number(report?.userLimits?.open_files?.soft);
  return Number.isSafeInteger(soft) && soft > 0 ? soft : null;
}

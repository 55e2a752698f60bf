/** What a program takes of the machine, as `/proc` shows it; NaN on systems without one. */
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import path from "node:path";

const KIB = 1024;

/** Memory and handles of one process. */
export interface ProcessFigures {
  readonly residentBytes: number;
  readonly threads: number;
  /** Everything in `/proc/PID/fd`, its sockets included. */
  readonly descriptors: number;
  readonly sockets: number;
}

/** Reads the figures of a running process. */
export function processFigures(pid: number): ProcessFigures {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? NaN);
    const targets = descriptorTargets(pid);
    return {
      residentBytes: field("VmRSS") * KIB,
      threads: field("Threads"),
      descriptors: targets.length,
      sockets: targets.filter((target) => target.startsWith("socket:")).length,
    };
  } catch {
    return { residentBytes: NaN, threads: NaN, descriptors: NaN, sockets: NaN };
  }
}

/** What each descriptor leads to: a path, or `socket:[N]` and the like. */
export function descriptorTargets(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((number) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${number}`);
    } catch {
      return "closed meanwhile";
    }
  });
}

/** Bytes of all files below a directory. Files that vanish meanwhile count nothing. */
export function sizeOf(directory: string): number {
  let sum = 0;
  try {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const whole = path.join(directory, entry.name);
      if (entry.isDirectory()) sum += sizeOf(whole);
      else if (entry.isFile()) sum += fileBytes(whole);
    }
  } catch {
    // Removed while we looked.
  }
  return sum;
}

function fileBytes(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}

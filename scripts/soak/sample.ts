/** All figures of an engine at one moment. */
import { processFigures, sizeOf } from "./process-figures.ts";
import type { Subject } from "./world.ts";

const MIB = 1 << 20;
/** An engine that is this late with its metrics has none in this sample, ms. */
const METRICS_TIMEOUT_MS = 15_000;

/** What is measured; NaN: unknown. Sizes are MiB. */
export interface Sample {
  /** Seconds since any fixed moment. */
  readonly atS: number;
  readonly rssMib: number;
  readonly heapMib: number;
  readonly externalMib: number;
  readonly descriptors: number;
  readonly sockets: number;
  readonly threads: number;
  readonly timers: number;
  readonly sessions: number;
  readonly swarms: number;
  readonly stateMib: number;
  readonly cacheMib: number;
}

/** Measures now. */
export async function readSample({ pid, url, stateDir, cacheDir }: Subject): Promise<Sample> {
  const text = await metrics(url);
  const { residentBytes, descriptors, sockets, threads } = processFigures(pid);
  return {
    atS: performance.now() / 1000,
    rssMib: (Number.isNaN(residentBytes) ? sumOf(text, 'millrace_memory_bytes{kind="resident"}') : residentBytes) / MIB,
    heapMib: sumOf(text, 'millrace_memory_bytes{kind="heap"}') / MIB,
    externalMib: sumOf(text, 'millrace_memory_bytes{kind="external"}') / MIB,
    descriptors,
    sockets,
    threads,
    timers: sumOf(text, "millrace_timers"),
    sessions: sumOf(text, "millrace_sessions{"),
    swarms: sumOf(text, "millrace_swarms{"),
    stateMib: sizeOf(stateDir) / MIB,
    cacheMib: sizeOf(cacheDir) / MIB,
  };
}

async function metrics(url: string): Promise<string> {
  try {
    return await (await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(METRICS_TIMEOUT_MS) })).text();
  } catch {
    return "";
  }
}

/** Sum of the series that begin with `name`; NaN when there are none. */
function sumOf(text: string, name: string): number {
  const rows = text.split("\n").filter((row) => row.startsWith(name));
  return rows.length === 0 ? NaN : rows.reduce((sum, row) => sum + Number(row.slice(row.lastIndexOf(" "))), 0);
}

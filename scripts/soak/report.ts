/** The table that a soak prints. */
import type { Tally } from "./actors.ts";
import type { Sample } from "./sample.ts";
import { trendOf } from "./trend.ts";

/** Samples at an edge of the run whose middle value is shown: half a minute, longer than one collection's saw tooth. */
const EDGE_SAMPLES = 6;
const MAX_LOG_LINES = 12;
const NAMES: Readonly<Record<Exclude<keyof Sample, "atS">, string>> = {
  rssMib: "resident memory, MiB",
  heapMib: "heap, MiB",
  externalMib: "buffers outside the heap, MiB",
  descriptors: "descriptors",
  sockets: "of these sockets",
  threads: "threads",
  timers: "timers",
  sessions: "sessions",
  swarms: "swarms",
  stateMib: "state directory, MiB",
  cacheMib: "cache directory, MiB",
};

/** What happened in a soak. */
export interface Outcome {
  /** Samples while it was used, in order; and afterwards. */
  readonly busy: readonly Sample[];
  readonly idle: readonly Sample[];
  readonly tally: Tally;
  /** What the engine logged. */
  readonly log: string;
}

/** The outcome as text. */
export function report({ busy, idle, tally, log }: Outcome): string {
  const half = busy.slice(busy.length >> 1);
  const rows = Object.entries(NAMES).map(([key, name]) => {
    const figure = key as keyof typeof NAMES;
    const trend = trendOf(half.map((sample) => ({ atS: sample.atS, value: sample[figure] })).filter(isKnown));
    const slope = trend === null ? "?" : `${signed(trend.perHour)} ± ${trend.errorPerHour.toFixed(1)}`;
    const most = Math.max(...busy.map((sample) => sample[figure]).filter((value) => !Number.isNaN(value)));
    const shown = [
      middle(busy.slice(0, EDGE_SAMPLES), figure),
      middle(half.slice(0, EDGE_SAMPLES), figure),
      middle(busy.slice(-EDGE_SAMPLES), figure),
      most,
      idle.at(-1)?.[figure] ?? NaN,
    ].map((value) => Number.isFinite(value) ? value.toFixed(1) : "?");
    return `| ${name} | ${shown.join(" | ")} | ${slope} |`;
  });
  const deeds = [...tally.done].map(([name, times]) => `${name} ${times}`);
  const failures = [...tally.failed].sort(([, a], [, b]) => b - a).map(([name, times]) => `  ${times} × ${name}`);
  const complaints = log.split("\n").filter((row) => /\berror\b/i.test(row));
  return [
    "",
    "| | begin | half | end | most | after idle | per hour, second half |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...rows,
    "",
    `done: ${deeds.join(", ")}; ${(tally.bytes / 1e6).toFixed(0)} MB read`,
    `samples in which the engine gave no figures: ${busy.filter(({ sessions }) => Number.isNaN(sessions)).length}`,
    `failed: ${failures.length === 0 ? "none" : ""}`,
    ...failures,
    `logged errors: ${complaints.length}`,
    ...complaints.slice(-MAX_LOG_LINES).map((row) => `  ${row.slice(0, 300)}`),
  ].join("\n");
}

const isKnown = ({ value }: { value: number }) => !Number.isNaN(value);

const signed = (value: number) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;

function middle(samples: readonly Sample[], figure: keyof Sample): number {
  const values = samples.map((sample) => sample[figure]).filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  return values[values.length >> 1] ?? NaN;
}

/** The table of the live bench. All times are of the members' clock, CPU is per second of it. */
import os from "node:os";

/** Seconds for which the machine's cores were busy so far, all together. */
export function busySeconds(): number {
  const times = os.cpus().map(({ times: { user, nice, sys, irq } }) => user + nice + sys + irq);
  return sum(times) / 1000;
}

/** What a viewer reported last. */
export interface ViewerLine {
  readonly joinMs: number | null;
  readonly startedMs: number;
  readonly playedMs: number;
  readonly missingMs: number;
  readonly readingMs: number;
  readonly arrival: [number, number] | null;
  readonly [field: string]: unknown;
}

/** What was measured. */
export interface LiveRun {
  /** Viewers, processes, runtime. */
  readonly title: string;
  readonly count: number;
  /** How much slower than the machine's the members' clock runs. */
  readonly factor: number;
  /** Lines of each viewer, one per second. */
  readonly viewers: readonly (readonly ViewerLine[])[];
  /** CPU of each process of viewers, % of a core, one value per second. */
  readonly viewerCpus: readonly (readonly number[])[];
  readonly broadcasterCpu: readonly number[];
  /** Cores that were busy on average in the second half of the run, with whatever else the machine did. */
  readonly busyCores: number;
  /** The broadcaster's last status. */
  readonly broadcaster: Readonly<Record<string, number>>;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const mean = (values: readonly number[]) => sum(values) / values.length;
const secondHalf = <T>(values: readonly T[]) => values.slice(Math.floor(values.length / 2));
const times = (values: readonly number[], shares: readonly number[]) =>
  shares.map((share) => `${Math.round(quantile(values, share))} ms`).join(" / ");
const percent = (value: number, digits: number) => `${value.toFixed(digits)} %`;

/** The bench's own reading of one viewer over the second half of its time, % of a core. */
function readingCpu(lines: readonly ViewerLine[]): number {
  const half = secondHalf(lines);
  return (half.at(-1)!.readingMs - half[0]!.readingMs) / (half.length - 1) / 10;
}

/** A run as a Markdown table. Delays and CPU are of the second half of each viewer's and process's time. */
export function liveTable(run: LiveRun): string {
  const { count, factor, broadcaster } = run;
  const last = run.viewers.map((lines) => lines.at(-1)!);
  const total = (field: string) => sum(last.map((line) => Number(line[field])));
  const joins = last.map(({ joinMs }) => joinMs ?? Infinity);
  // In each second the delay of the latest arrival.
  const lags = run.viewers.flatMap((lines) =>
    secondHalf(lines).flatMap(({ arrival }) => arrival === null ? [] : [arrival[1] - broadcaster.offsetMs!])
  );
  const playedS = total("playedMs") / 1000;
  const processes = run.viewerCpus.map((values) => mean(secondHalf(values)));
  const broadcasterCpu = mean(secondHalf(run.broadcasterCpu));
  const ownCores = (sum(processes) + broadcasterCpu) / 100 / factor;
  const busiest = Math.max(...processes) / Math.ceil(count / processes.length);
  const slow = factor === 1 ? "" : `, time stretched ${factor} times`;
  const rows = [
    [`${run.title}${slow}, load ${os.loadavg()[0]!.toFixed(1)} on ${os.cpus().length} cores`, ""],
    ["---", "---"],
    ["viewers that play", `${last.filter(({ joinMs }) => joinMs !== null).length} of ${count}`],
    ["request to a second of media, p50 / p95 / most", times(joins, [0.5, 0.95, 1])],
    ["request to the start's answer, p50 / p95", times(last.map(({ startedMs }) => startedMs), [0.5, 0.95])],
    ["delay behind the source, p50 / p95 / most", times(lags, [0.5, 0.95, 1])],
    [
      "continuity",
      `${percent(100 * (1 - total("missingMs") / Math.max(1, 1000 * playedS)), 3)} of ${Math.round(playedS)} s, ` +
      `${(total("readBytes") / 125_000 / Math.max(1, playedS)).toFixed(2)} Mb/s`,
    ],
    ["payload from the broadcaster", percent(100 * broadcaster.uploadedBytes! / total("downloadedBytes"), 1)],
    ["thrown away", percent(100 * total("wastedBytes") / total("downloadedBytes"), 2)],
    [
      "CPU, broadcaster / one viewer / one of the busiest process",
      `${percent(broadcasterCpu, 1)} / ${percent(sum(processes) / count, 1)} / ${percent(busiest, 1)} of a core`,
    ],
    ["of a viewer's CPU, the bench's own reading", `${percent(mean(run.viewers.map(readingCpu)), 2)} of a core`],
    ["cores that all of it kept busy / with other work", `${ownCores.toFixed(2)} / ${run.busyCores.toFixed(2)}`],
  ];
  return rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

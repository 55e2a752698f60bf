/**
 * Broadcasts among real programs behind emulated up-links: `node scripts/bench/live-wan.ts ROW… [--viewers N] [--seed N] [--runtime R]`.
 *
 * ROW is `all` or one of `ROWS`. Each member is an engine in a network namespace with an up-link of its own; a player
 * beside each viewer measures by the stream's clock. Prints Markdown; each viewer's figures go to standard error. It runs
 * `dist/millrace.mjs` on Node, or with `--runtime deno|node|bun` the sources. Needs root, Linux, python3, ip and ffmpeg.
 */
import { existsSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { requireTools, runLiveWan } from "../live-wan/run.ts";
import type { LiveWanSpec } from "../live-wan/spec.ts";
import { stopSignal } from "../live-wan/stop-signal.ts";
import { TABLE_HEAD, tableRow, viewerLine } from "../live-wan/summary.ts";
import { ROOT } from "../support/files.ts";
import { commandOf, isRuntime } from "../support/runtimes.ts";

/** A row without what the command line says. */
type Row = Omit<LiveWanSpec, "seed" | "engine">;

/** The source sends twice the stream of its viewers. */
const NETWORK = {
  sourceUplinkMbit: 6,
  sourceLimitMbit: 4,
  streamMbit: 1.88,
  delayMs: [5, 25],
  queueMs: 300,
} as const;
/** 1.5 times the bitrate on average. */
const MIXED = {
  ...NETWORK,
  viewers: 16,
  seconds: 40,
  gapMs: 1500,
  uplinksMbit: [1.5, 0.4, 4, 2.5, 0.8, 8, 2, 3],
} as const;
/** Lines that carry 2.4 times the stream; nobody is told what they carry. */
const NARROW = {
  streamMbit: 1.7,
  sourceUplinkMbit: 8,
  viewers: 12,
  seconds: 40,
  gapMs: 1200,
  uplinksMbit: [4],
  delayMs: [8, 40],
  queueMs: 250,
} as const;
/** 1.4 times the bitrate on average. */
const NARROW_MIXED = {
  ...NARROW,
  sourceUplinkMbit: 5,
  sourceLimitMbit: 4,
  uplinksMbit: [3, 0.8, 1.2, 6, 2.5, 0.7],
} as const;
/** Lines that are no limit. */
const WIDE = { ...NETWORK, viewers: 16, seconds: 40, gapMs: 1200, uplinksMbit: [20] } as const;

/** The second of twelve viewers lies. */
const LIARS = Object.fromEntries(
  (["closed", "sinkhole", "flapper", "pathpoison"] as const).map((kind) => [
    kind,
    { ...WIDE, viewers: 12, liar: { viewer: 2, kind } },
  ]),
);

const ROWS: Readonly<Record<string, Row>> = {
  "mixed": MIXED,
  "mixed-2": { ...MIXED, uplinksMbit: [2, 0.8, 3, 4, 8, 0.4, 1.5, 2.5] },
  "mixed-3": { ...MIXED, uplinksMbit: [3, 0.4, 8, 2, 4, 0.8, 2.5, 1.5] },
  "weakest-first": { ...MIXED, uplinksMbit: [0.4, 0.8, 1.5, 2, 2.5, 3, 4, 8] },
  "wide": WIDE,
  "loss": { ...WIDE, loss: 0.01 },
  "narrow": NARROW,
  "narrow-loss": { ...NARROW, loss: 0.01 },
  "narrow-bursts": { ...NARROW, loss: 0.01, lossBurst: 5 },
  "narrow-mixed": NARROW_MIXED,
  "narrow-mixed-loss": { ...NARROW_MIXED, loss: 0.01 },
  "narrow-mixed-light": { ...NARROW_MIXED, loss: 0.005 },
  "narrow-mixed-heavy": { ...NARROW_MIXED, loss: 0.02 },
  "narrow-mixed-bursts": { ...NARROW_MIXED, loss: 0.01, lossBurst: 5 },
  "narrow-mixed-closed": {
    ...NARROW_MIXED,
    uplinksMbit: [3, 0.6, 1.2, 6, 2.5, 0.5],
    closedShare: 0.7,
    closedToDatagrams: true,
  },
  "closed-70": { ...WIDE, closedShare: 0.7 },
  "closed-90": { ...WIDE, closedShare: 0.9 },
  "closed-source": { ...WIDE, closedShare: 0.625, closedSource: true },
  "one-subnet": { ...WIDE, viewers: 20, sameSubnet: true },
  "slate": { ...WIDE, slateS: 8 },
  "told-half": { ...WIDE, toldMbit: NETWORK.streamMbit / 2 },
  "told-double": { ...WIDE, toldMbit: 2 * NETWORK.streamMbit },
  "clocks": { ...WIDE, clocksOffS: [-3600, 3600, 0] },
  ...LIARS,
  "vanish": { ...WIDE, seconds: 100, vanish: { atS: 20, viewers: 5 } },
};

/** The command of the engine that the user chose. */
function engineCommand(runtime: string | undefined): readonly string[] {
  if (runtime === undefined) {
    const built = path.join(ROOT, "dist/millrace.mjs");
    if (!existsSync(built)) {
      throw new Error("dist/millrace.mjs is not built: run `deno task build`, or name a --runtime");
    }
    return [...commandOf("node"), built];
  }
  if (!isRuntime(runtime)) throw new Error(`no runtime: ${runtime}`);
  const flags = runtime === "deno" ? ["run", "-A", "--no-check"] : [];
  return [...commandOf(runtime), ...flags, path.join(ROOT, `platform/${runtime}/main.ts`)];
}

/** The rows that the user named. */
function namedRows(names: readonly string[]): readonly string[] {
  const known = Object.keys(ROWS);
  if (names.includes("all")) return known;
  const isKnown = names.length > 0 && names.every((name) => known.includes(name));
  if (!isKnown) throw new Error(`name one or more of: all, ${known.join(", ")}`);
  return names;
}

try {
  const options = {
    seed: { type: "string", default: "1" },
    runtime: { type: "string" },
    viewers: { type: "string" },
  } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const names = namedRows(positionals);
  requireTools();
  const engine = engineCommand(values.runtime);
  const signal = stopSignal();
  console.log(TABLE_HEAD);
  for (const name of names) {
    console.error(`${name}, load ${os.loadavg()[0]!.toFixed(1)} on ${os.cpus().length} cores`);
    const row = ROWS[name]!;
    const spec = { ...row, viewers: Number(values.viewers ?? row.viewers), engine, seed: Number(values.seed) };
    const { summary, viewers, carried } = await runLiveWan(spec, { log: console.error, signal });
    for (const viewer of viewers) console.error(viewerLine(viewer));
    console.error(`the network: ${JSON.stringify(carried)}`);
    console.log(tableRow(name, summary));
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

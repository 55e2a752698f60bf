/**
 * Prints the scheduler's simulated figures. Works on any runtime: `deno run scripts/simulate.ts [key=number …]`, where
 * the keys are those of `Tuning`. `--log-hash` prints digests of all that the scheduler decides instead: a change that
 * only moves or renames code leaves them as they are. With `--peers N` (`--scenario`, `--seed`) it simulates live distribution instead,
 * with `--streamers N` (`--seed`, `--film`, `--log-hash`) a swarm of viewers of one file.
 */
import { defaultTuning, type Tuning } from "../src/swarm/scheduler/tuning.ts";
import * as scenarios from "../test/simulation/scenarios.ts";
import { simulateLiveFrom } from "./simulate-live.ts";
import { simulateStreamersFrom } from "./simulate-streamers.ts";

declare const process: { argv: string[] };
const given = typeof process === "object"
  ? process.argv.slice(2)
  : (globalThis as { Deno?: { args: string[] } }).Deno!.args;
// `deno task sim -- …` passes on the two dashes.
const args = given.filter((arg) => arg !== "--");

const BAD_SWARMS = 100;

if (args.includes("--streamers")) simulateStreamersFrom(args);
else if (args.some((arg) => arg.startsWith("--") && arg !== "--log-hash")) simulateLiveFrom(args);
else simulateScheduler();

function simulateScheduler(): void {
  const tuning: Record<string, number> = {};
  for (const arg of args.filter((arg) => arg !== "--log-hash")) {
    const [key, value] = arg.split("=");
    if (key === undefined || !(key in defaultTuning) || !Number.isFinite(Number(value))) {
      throw new Error(`not a numeric tuning key: ${arg}`);
    }
    tuning[key] = Number(value);
  }

  const cell = (value: number | null, digits = 0): string => (value === null ? "–" : value.toFixed(digits));
  if (args.includes("--log-hash")) {
    for (const { name, swarm } of scenarios.all(tuning as Partial<Tuning>)) console.log(name.padEnd(24), swarm.log.hex);
    const { logHexes } = scenarios.badSwarms(BAD_SWARMS, tuning as Partial<Tuning>);
    for (const [i, hex] of logHexes.entries()) console.log(`bad swarm ${i + 1}`.padEnd(24), hex);
    return;
  }
  const columns = ["scenario", "start ms", "limit", "seek p50", "p95", "stalls", "stalled ms", "dup %", "use %"];
  const rows = scenarios.all(tuning as Partial<Tuning>).map((result) => [
    result.name,
    cell(result.startMs),
    cell(result.limitMs),
    cell(result.seekP50Ms),
    cell(result.seekP95Ms),
    cell(result.stalls),
    cell(result.stalledMs),
    cell(result.duplicatePercent, 2),
    cell(result.utilisation === null ? null : result.utilisation * 100, 1),
  ]);
  for (const row of [columns, ...rows]) {
    console.log(row.map((text, i) => (i === 0 ? text.padEnd(24) : text.padStart(11))).join(""));
  }
  const bad = scenarios.badSwarms(BAD_SWARMS, tuning as Partial<Tuning>);
  console.log(
    `${BAD_SWARMS} bad swarms, p95: start ${cell(bad.startP95Ms)} ms (limit ${cell(bad.startLimitP95Ms)}), ` +
      `seek ${cell(bad.seekP95Ms)} (${cell(bad.seekLimitP95Ms)}), stalled ${cell(bad.stalledPercent, 2)} %`,
  );
}

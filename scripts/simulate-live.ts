/**
 * Prints the simulated figures of live distribution. Run with any runtime:
 * `deno run scripts/simulate-live.ts [viewers] [scenario number] [seed]`. Default 1000 viewers, all scenarios, seed 1.
 */
import { liveScenarios } from "../test/simulation/live-scenarios.ts";
import { simulateLive } from "../test/simulation/live-sim.ts";

declare const process: { argv: string[] };
const args = typeof process === "object"
  ? process.argv.slice(2)
  : (globalThis as { Deno?: { args: string[] } }).Deno!.args;
const numbers = args.filter((arg) => !arg.startsWith("-")).map(Number);
const [viewers = 1000, only, seed = 1] = numbers;
if (numbers.some((number) => !Number.isInteger(number) || number < 0)) throw new Error("whole numbers are expected");

const percent = (value: number) => `${(100 * value).toFixed(2)} %`;
const seconds = (value: number | null) => (value === null ? "–" : value.toFixed(2));
const columns = ["scenario", "viewers", "joined", "lag p50", "p95 s", "continuity", "by viewers", "twice", "control"];
const more = ["join p50", "p95 s", "bad bytes", "back p95", "shed", "run s"];
const print = (row: readonly unknown[]) =>
  console.log(row.map((cell, i) => (i === 0 ? String(cell).padEnd(20) : String(cell).padStart(11))).join(""));
print([...columns, ...more]);
liveScenarios(viewers, seed).forEach((scenario, i) => {
  if (only !== undefined && only !== i) return;
  const started = performance.now();
  const result = simulateLive(scenario);
  print([
    result.name,
    result.viewers,
    result.joined,
    seconds(result.lagP50S),
    seconds(result.lagP95S),
    percent(result.continuity),
    percent(result.viewerShare),
    percent(result.duplicateShare),
    percent(result.controlShare),
    seconds(result.joinP50S),
    seconds(result.joinP95S),
    result.badBytesDelivered,
    seconds(result.recoveryP95S),
    result.shed,
    seconds((performance.now() - started) / 1000),
  ]);
});

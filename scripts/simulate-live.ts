/**
 * Prints the simulated figures of live distribution:
 * `deno task sim -- --peers N [--scenario part of a name] [--seed S] [--seconds T] [--log-hash]`; default seed 1, all
 * scenarios to their ends. With `--log-hash` it prints a digest of all messages of each scenario instead: a change that
 * only moves or renames code leaves it as it is.
 */
import process from "node:process";
import { liveScenarios } from "../test/simulation/live-scenarios.ts";
import { type LiveResult, simulateLive } from "../test/simulation/live-sim.ts";

const COLUMNS = ["viewers", "lag p50", "lag p95", "given p95", "continuity", "by viewers", "twice", "msgs/s", "KB/s"];
const MORE_COLUMNS = ["join p50", "join p95", "never", "bad bytes", "back p95", "gap p95", "minute", "later", "cpu ms"];

const NUMBER_FLAGS = { "--peers": "peers", "--seed": "seed", "--seconds": "seconds" } as const;

function isNumberFlag(flag: string | undefined): flag is keyof typeof NUMBER_FLAGS {
  return flag !== undefined && flag in NUMBER_FLAGS;
}

/** Runs the simulation that `args` describe. Throws when they are not understood. */
export function simulateLiveFrom(args: readonly string[]): void {
  const keepsLog = args.includes("--log-hash");
  const { peers, seed, seconds: until, scenario: part } = read(args.filter((arg) => arg !== "--log-hash"));
  const chosen = liveScenarios(peers, seed).filter(({ name }) => part === null || name.includes(part));
  if (chosen.length === 0) throw new Error(`no scenario's name contains ${part}`);
  if (keepsLog) {
    for (const whole of chosen) {
      const { logHex } = simulateLive({ ...whole, durationS: Math.min(whole.durationS, until), keepsLog });
      print([whole.name, logHex]);
    }
    return;
  }
  print(["scenario", ...COLUMNS, ...MORE_COLUMNS]);
  for (const whole of chosen) {
    const scenario = { ...whole, durationS: Math.min(whole.durationS, until) };
    const before = process.cpuUsage();
    const result = simulateLive(scenario);
    const { user, system } = process.cpuUsage(before);
    print(cells(result, (user + system) / 1000 / result.viewerSeconds));
    const shares = result.controlShares.filter(({ share }) => share >= 0.005);
    console.log(`  ${
      shares.map(({ name, share, count }) => {
        return `${name} ${Math.round(100 * share)} %, ${(count / result.viewerSeconds).toFixed(1)}`;
      }).join("; ")
    }`);
  }
  console.log(
    "Times in seconds; msgs/s and KB/s: what one viewer sends beside payload; in the second line by kinds, a BUNDLE counted as its first;",
  );
  console.log(
    "given: how far the newest that players were given is behind the capture, where lag is that of what they show;",
  );
  console.log("minute, later: continuity of those who stay, in the minute after others vanish, and from then on;");
  console.log("cpu: CPU time of one viewer per second of broadcast.");
}

function read(args: readonly string[]): { peers: number; seed: number; seconds: number; scenario: string | null } {
  const out = { peers: 1000, seed: 1, seconds: Infinity, scenario: null as string | null };
  for (let i = 0; i < args.length; i += 2) {
    const [flag, value = ""] = [args[i], args[i + 1]];
    if (flag === "--scenario" && value !== "") out.scenario = value;
    else if (isNumberFlag(flag) && /^[1-9]\d*$/.test(value)) out[NUMBER_FLAGS[flag]] = Number(value);
    else throw new Error(`not understood: ${flag} ${value}; try --peers 1000 --scenario churn --seed 2`);
  }
  return out;
}

function cells(result: LiveResult, cpuMs: number): readonly unknown[] {
  return [
    result.name,
    result.viewers,
    seconds(result.lagP50S),
    seconds(result.lagP95S),
    seconds(result.givenLagP95S),
    percent(result.continuity),
    percent(result.viewerShare),
    percent(result.duplicateShare),
    Math.round(result.messagesPerS),
    (result.controlBytesPerS / 1000).toFixed(2),
    seconds(result.joinP50S),
    seconds(result.joinP95S),
    result.never,
    result.badBytesDelivered,
    seconds(result.recoveryP95S),
    seconds(result.gapP95S),
    percent(result.aftermathContinuity),
    percent(result.laterContinuity),
    cpuMs.toFixed(2),
  ];
}

function percent(value: number | null): string {
  return value === null ? "–" : `${(100 * value).toFixed(2)} %`;
}

function seconds(value: number | null): string {
  return value === null ? "–" : value.toFixed(2);
}

function print(row: readonly unknown[]): void {
  console.log(row.map((cell, i) => (i === 0 ? String(cell).padEnd(20) : String(cell).padStart(11))).join(""));
}

/**
 * Prints the simulated figures of a swarm whose members all watch: `deno task sim -- --streamers N [--seed S] [--film SECONDS] [--log-hash]`;
 * default seed 1, a film of 300 s. `--log-hash` prints a digest of all requests instead. The engine's order of pieces beside strict order and rarest first.
 */
import { simulateStreamers } from "../test/simulation/streamer-swarm.ts";

const ORDERS = ["engine", "in order", "rarest first"] as const;
const NUMBER_FLAGS = { "--streamers": "viewers", "--seed": "seed", "--film": "filmS" } as const;

function isNumberFlag(flag: string | undefined): flag is keyof typeof NUMBER_FLAGS {
  return flag !== undefined && flag in NUMBER_FLAGS;
}

/** Runs the simulation that `args` describe. Throws when they are not understood. */
export function simulateStreamersFrom(given: readonly string[]): void {
  const keepsLog = given.includes("--log-hash");
  const args = given.filter((arg) => arg !== "--log-hash");
  const profile = { viewers: 100, seed: 1, filmS: 300 };
  for (let i = 0; i < args.length; i += 2) {
    const [flag, value = ""] = [args[i], args[i + 1]];
    if (!isNumberFlag(flag) || !/^[1-9]\d*$/.test(value)) {
      throw new Error(`not understood: ${flag} ${value}; try --streamers 100 --seed 2 --film 300`);
    }
    profile[NUMBER_FLAGS[flag]] = Number(value);
  }
  if (keepsLog) {
    for (const order of ORDERS) {
      console.log(order.padEnd(14), simulateStreamers({ ...profile, order, keepsLog }).logHex);
    }
    return;
  }
  const columns = ["order", "start p50", "p95", "stalled", "worst", "2nd copy", "by viewers", "twice", "finished"];
  print(columns);
  for (const order of ORDERS) {
    const result = simulateStreamers({ ...profile, order });
    print([
      order,
      result.startP50S.toFixed(1),
      result.startP95S.toFixed(1),
      percent(result.stalledShare),
      result.worstStalledS.toFixed(0),
      result.secondCopyS?.toFixed(0) ?? "–",
      percent(result.viewerShare),
      percent(result.duplicateShare),
      `${result.finished}/${profile.viewers}`,
    ]);
  }
  console.log("Times in seconds; stalled: share of the time since playing began.");
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

function print(cells: readonly string[]): void {
  console.log(cells.map((text, i) => (i === 0 ? text.padEnd(14) : text.padStart(12))).join(""));
}

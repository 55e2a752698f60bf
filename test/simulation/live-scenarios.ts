/** The scenarios of the live simulation, for any number of viewers. */
import type { LiveScenario } from "./live-sim.ts";

/** When the others begin to come: the first ten have found one another by then, s. */
const SETTLED_S = 15;
/** Bytes per second of 1 Mb/s. */
const MBIT = 125_000;

/** All of them. Half as many viewers sending nothing leaves the others 2 and 4 × bitrate: less could not carry the stream. */
export function liveScenarios(viewers: number, seed = 1): LiveScenario[] {
  const crowd = { viewers, seed, arriveFromS: SETTLED_S, arriveS: 30, durationS: 65 };
  const calm = { viewers, seed, arriveFromS: SETTLED_S, arriveS: 60, durationS: 100 };
  const liars = (["closed", "sinkhole", "flapper", "pathpoison"] as const).flatMap((kind) =>
    [0.01, 0.05].map((share) => ({ ...calm, name: `${100 * share} % ${kind}`, liars: { kind, share } }))
  );
  // The rows `narrow-mixed` of `scripts/bench/live-wan.ts`: lines of 1.4 times the stream, each packet followed by itself.
  const narrow = {
    viewers,
    seed,
    first: 0,
    arriveFromS: 6,
    arriveS: 1.2 * viewers,
    durationS: 1.2 * viewers + 45.6,
    bytesPerS: 1.7 * MBIT,
    uplinks: [3, 0.8, 1.2, 6, 2.5, 0.7].map((mbit) => mbit * MBIT),
    sourceLine: { bytesPerS: 5 * MBIT, limitBytesPerS: 4 * MBIT },
    routerMs: 250,
    latencyMs: [16, 80],
  } as const;
  return [
    { ...calm, name: "steady", arriveS: 120, durationS: 160 },
    { ...calm, name: "routers and regions", routerMs: 300, hasRegions: true },
    { ...calm, name: "churn 30 %/min", churnPerMinute: 0.3, durationS: 120 },
    { ...calm, name: "20 % poisoners", poisoners: 0.2, durationS: 160 },
    { ...calm, name: "50 % send nothing", zeroUpload: 0.5 },
    { ...crowd, name: "flash crowd" },
    { ...calm, name: "source gone 10 s", outageS: [85, 95], durationS: 160 },
    { ...calm, name: "1 % loss", loss: 0.01 },
    ...[0, 0.5, 1, 2].map((percent) => (
      { ...narrow, name: `narrow, ${percent} %`, packetLoss: { share: percent / 100 } }
    )),
    { ...calm, name: "groups of 10 s", groupMs: 10_000 },
    { ...calm, name: "told 0.5 ×", toldShare: 0.5 },
    { ...calm, name: "told 2 ×", toldShare: 2 },
    { ...calm, name: "slate at first", toldShare: 0.072, slateS: 8 },
    { ...calm, name: "clocks ± 1 h", clocksWrongMs: 3_600_000 },
    ...liars,
    // What those behind NAT need the others alone can send: with the usual uplinks these could not carry the stream.
    { ...calm, name: "70 % NAT", closedShare: 0.7, uplinkFactor: 3 },
    { ...calm, name: "90 % NAT", closedShare: 0.9, uplinkFactor: 10 },
    { ...calm, name: "70 % NAT, 1 ×", closedShare: 0.7 },
    { ...calm, name: "90 % NAT, 1 ×", closedShare: 0.9 },
    // Four of five NATs keep a port per socket.
    { ...calm, name: "70 % NAT, punched", closedShare: 0.7, punchableShare: 0.8, uplinkFactor: 3 },
    { ...calm, name: "90 % NAT, punched", closedShare: 0.9, punchableShare: 0.8, uplinkFactor: 10 },
    { ...calm, name: "70 % NAT, 1 ×, punched", closedShare: 0.7, punchableShare: 0.8 },
    { ...calm, name: "90 % NAT, 1 ×, punched", closedShare: 0.9, punchableShare: 0.8 },
    { ...calm, name: "source, 50 % NAT", closedShare: 0.5, closedSource: true, uplinkFactor: 2 },
    { ...calm, name: "30 % vanish", silentDeath: { atS: 90, share: 0.3 }, durationS: 160 },
  ];
}

/** The scenarios of the live simulation, for any number of viewers. */
import type { LiveScenario } from "./live-sim.ts";

/** All of them. Half as many viewers sending nothing leaves the others 2 and 4 × bitrate: less could not carry the stream. */
export function liveScenarios(viewers: number, seed = 1): LiveScenario[] {
  const base = { viewers, seed, arriveS: 30, durationS: 70 };
  return [
    { ...base, name: "steady" },
    { ...base, name: "churn 30 %/min", churnPerMinute: 0.3, durationS: 90 },
    { ...base, name: "20 % poisoners", poisoners: 0.2 },
    { ...base, name: "50 % send nothing", zeroUpload: 0.5 },
    { ...base, name: "source gone 10 s", outageS: [45, 55], durationS: 75 },
  ];
}

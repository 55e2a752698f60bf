import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { commandOfMember, type LiveWanSpec, planOf } from "../../scripts/live-wan/spec.ts";
import { commandOf } from "../../scripts/support/runtimes.ts";
import { SourceTimes, StreamClock } from "../../scripts/live-wan/stream-clock.ts";
import { continuityOf, percentile } from "../../scripts/live-wan/summary.ts";
import { ViewerMeter } from "../../scripts/live-wan/viewer-meter.ts";
import { writePcrPacket } from "../../src/media/mux/ts/packets.ts";

const PACKET_BYTES = 188;
const STEP_MS = 40;
const TICKS_PER_MS = 90;
/** PCRs wrap during the stream. */
const FIRST_PCR = 2 ** 33 - 90_000;

/** Packets with the PCRs of the steps from `from` up to and without `to`. */
function stream(from: number, to: number): Uint8Array {
  const bytes = new Uint8Array((to - from) * PACKET_BYTES);
  for (let step = from; step < to; step++) {
    const pcr = (FIRST_PCR + step * STEP_MS * TICKS_PER_MS) % 2 ** 33;
    writePcrPacket(bytes, (step - from) * PACKET_BYTES, 256, 0, pcr);
  }
  return bytes;
}

/** A source that sends a packet each 40 ms from time 0 on. */
function sourceOf(steps: number): SourceTimes {
  const source = new SourceTimes();
  for (let step = 0; step < steps; step++) source.sends(stream(step, step + 1), step * STEP_MS);
  return source;
}

const SPEC: LiveWanSpec = {
  viewers: 10,
  seconds: 1,
  gapMs: 1,
  uplinksMbit: [1, 2, 3],
  sourceUplinkMbit: 6,
  sourceLimitMbit: 4,
  streamMbit: 1,
  delayMs: [5, 25],
  queueMs: 300,
  closedShare: 0.7,
  vanish: { atS: 1, viewers: 3 },
  seed: 1,
  engine: [],
};

test("StreamClock finds the PCRs of a stream that comes in chunks of any length", () => {
  const bytes = stream(0, 20);
  const whole = [...new StreamClock().read(bytes)];
  assertEquals(whole.length, 20);
  for (const length of [1, 100, 187, 189, 500]) {
    const clock = new StreamClock();
    const found: number[] = [];
    for (let at = 0; at < bytes.length; at += length) found.push(...clock.read(bytes.subarray(at, at + length)));
    assertEquals(found, whole);
  }
});

test("ViewerMeter measures the join from the request to a second of media, and the lag by when the source sent it", () => {
  const meter = new ViewerMeter(sourceOf(100));
  meter.requested(1000);
  meter.receives(stream(20, 40), 1800);
  meter.sampleLag(1800);
  meter.receives(stream(40, 60), 2700);
  meter.sampleLag(2800);
  const { joinMs, mediaMs, missingMs, lagsMs, watchedMs } = meter.end(3000);
  // Step 59 left the source at 2,360 ms.
  assertEquals([joinMs, lagsMs, watchedMs], [1700, [2800 - 2360], 2000]);
  assertEquals([Math.round(mediaMs), missingMs], [39 * STEP_MS, 0]);
});

test("ViewerMeter counts left out media as missing, and time with nothing to play as a standstill", () => {
  const meter = new ViewerMeter(sourceOf(200));
  meter.requested(0);
  meter.receives(stream(0, 26), 1100);
  // It has played everything at 2,100 ms.
  meter.receives(stream(26, 51), 2600);
  meter.receives(stream(76, 101), 3600);
  const { missingMs, mediaMs, longestStillMs, endedStillMs } = meter.end(6000);
  assertEquals([missingMs, mediaMs, longestStillMs].map(Math.round), [26 * STEP_MS, 74 * STEP_MS, 1440]);
  assertEquals(Math.round(endedStillMs), 6000 - (2600 + 1000 + 24 * STEP_MS));
});

test("continuityOf() counts what a viewer that never plays should have received", () => {
  const figures = { missingMs: 0, endedStillMs: 0, longestStillMs: 0, lagsMs: [], watchedMs: 10_000 };
  const playing = { ...figures, joinMs: 1000, mediaMs: 9000, missingMs: 500, endedStillMs: 500 };
  assertEquals(continuityOf([playing]), 0.9);
  assertEquals(continuityOf([playing, { ...figures, joinMs: null, mediaMs: 200 }]), 0.45);
});

test("percentile() gives the value below which a share lies", () => {
  const values = Array.from({ length: 100 }, (_, i) => 100 - i);
  assertEquals([percentile(values, 0.5), percentile(values, 0.95), percentile(values, 1)], [51, 96, 100]);
});

test("planOf() places members by the seed: up-links by turns, shares exact, addresses by networks", () => {
  const plan = planOf(SPEC);
  assertEquals(planOf(SPEC), plan);
  assertEquals(plan.nodes.map(({ uplinkMbit }) => uplinkMbit), [6, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 0]);
  assertEquals([plan.nodes.filter(({ isClosed }) => isClosed).length, plan.vanishing.size], [7, 3]);
  assert(plan.nodes.every(({ delayMs }) => delayMs >= 5 && delayMs <= 25));
  assertEquals([plan.nodes[0]!.isClosed, planOf({ ...SPEC, closedSource: true }).nodes[0]!.isClosed], [false, true]);
  assertEquals(new Set(plan.nodes.map(({ address }) => address.replace(/\.\d+$/, ""))).size, plan.nodes.length);
  const { nodes } = planOf({ ...SPEC, sameSubnet: true });
  assertEquals(new Set(nodes.map(({ address }) => address.replace(/\.\d+$/, ""))).size, 1);
});

test("commandOfMember() starts those whose clock is off with another clock, and the others as they are", () => {
  const spec = { ...SPEC, engine: ["node", "engine.mjs"], clocksOffS: [-3600, 0] };
  assertEquals(commandOfMember(spec, 1), ["node", "engine.mjs"]);
  const [program, clock, ...rest] = commandOfMember(spec, 2);
  assertEquals([program, clock, rest.slice(-2)], ["env", "CLOCK_OFF_S=-3600", ["node", "engine.mjs"]]);
});

for (const runtime of ["node", "bun"] as const) {
  test(`commandOfMember() makes the clock of a program on ${runtime} wrong by that much`, () => {
    const script = "console.log(Date.now())";
    const spec = { ...SPEC, engine: [...commandOf(runtime), "-e", script], clocksOffS: [3600] };
    const [program, ...args] = commandOfMember(spec, 0);
    const startMs = Date.now();
    const { stdout, stderr } = spawnSync(program!, args, { encoding: "utf8" });
    const offMs = Number(stdout) - startMs - 3_600_000;
    assert(offMs >= 0 && offMs <= Date.now() - startMs, `${stdout} ${stderr}`);
  });
}

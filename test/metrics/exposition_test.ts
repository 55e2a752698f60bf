/** The text that Prometheus scrapes, read back by a parser that we did not write. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
// @ts-types="./parse-prometheus-text-format.d.ts"
import parse from "parse-prometheus-text-format";
import { countedElsewhere, exposition, gauge } from "../../src/metrics/exposition.ts";
import { Counter, Histogram, MAX_SERIES } from "../../src/metrics/instruments.ts";
import { LOOP_DELAY_EVERY_MS, LoopDelay } from "../../src/metrics/loop-delay.ts";
import { TrafficTotals } from "../../src/metrics/traffic-totals.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("exposition() is read back with names, types, labels and values when an independent parser reads it", () => {
  const requests = new Counter({ name: "requests_total", help: "Requests.", labels: ["route", "status"] });
  requests.add({ route: '/a "quoted" \\ path\nwith a line', status: "200" });
  requests.add({ route: "/b", status: "404" }, 4);
  requests.add({ route: "/b", status: "404" });
  const families = parse(exposition([
    gauge("cache_bytes", "A help with \\ and\na line.", () => 1.5e12),
    countedElsewhere("moved_total", "Moved.", () => [{ labels: { direction: "up" }, value: 7 }]),
    requests,
  ]));
  assertEquals(families, [
    { name: "cache_bytes", help: "A help with \\ and\na line.", type: "GAUGE", metrics: [{ value: "1500000000000" }] },
    { name: "moved_total", help: "Moved.", type: "COUNTER", metrics: [{ value: "7", labels: { direction: "up" } }] },
    {
      name: "requests_total",
      help: "Requests.",
      type: "COUNTER",
      metrics: [
        { value: "1", labels: { route: '/a "quoted" \\ path\nwith a line', status: "200" } },
        { value: "5", labels: { route: "/b", status: "404" } },
      ],
    },
  ]);
});

test("Histogram.observe() counts a value in its bucket and all above when it is scraped", () => {
  const seconds = new Histogram({ name: "seconds", help: "Times.", bounds: [0.1, 1, 10] });
  for (const value of [0.05, 0.1, 0.5, 20]) seconds.observe({}, value);
  const [family] = parse(exposition([seconds]));
  assertEquals(family!.type, "HISTOGRAM");
  assertEquals(family!.metrics, [{
    buckets: { "0.1": "2", "1": "3", "10": "3", "+Inf": "4" },
    count: "4",
    sum: "20.65",
  }]);
});

test("Histogram.samples() keeps series of different labels apart", () => {
  const seconds = new Histogram({ name: "seconds", help: "Times.", labels: ["route"], bounds: [1] });
  seconds.observe({ route: "/a" }, 0.5);
  seconds.observe({ route: "/b" }, 2);
  const lines = exposition([seconds]).split("\n").filter((line) => !line.startsWith("#") && line !== "");
  assertEquals(lines, [
    'seconds_bucket{route="/a",le="1"} 1',
    'seconds_bucket{route="/a",le="+Inf"} 1',
    'seconds_sum{route="/a"} 0.5',
    'seconds_count{route="/a"} 1',
    'seconds_bucket{route="/b",le="1"} 0',
    'seconds_bucket{route="/b",le="+Inf"} 1',
    'seconds_sum{route="/b"} 2',
    'seconds_count{route="/b"} 1',
  ]);
});

test("Counter.add() makes a bounded number of series when labels come from a stranger", () => {
  const counter = new Counter({ name: "words_total", help: "Words.", labels: ["word"] });
  for (let n = 0; n < 5 * MAX_SERIES; n++) counter.add({ word: `word ${n}` });
  const samples = [...counter.samples()];
  assertEquals(samples.length, MAX_SERIES + 1);
  assertEquals(samples.at(-1), { labels: { word: "other" }, value: 4 * MAX_SERIES });
});

test("LoopDelay reports how late its timer ran when the loop was blocked, and leaves no timer when closed", () => {
  const clock = new FakeClock();
  let heldUpMs = 0;
  const slow = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimeout: (fn: () => void, delayMs: number) => clock.setTimeout(fn, delayMs + heldUpMs),
  };
  const delay = new LoopDelay(slow);
  delay.start();
  heldUpMs = 300;
  clock.advance(LOOP_DELAY_EVERY_MS);
  clock.advance(LOOP_DELAY_EVERY_MS + 300);
  const [family] = parse(exposition([delay.histogram]));
  const { buckets, count, sum } = family!.metrics[0]!;
  assertEquals([count, sum], ["2", "0.3"]);
  assertEquals([buckets!["0.001"], buckets!["0.25"], buckets!["0.5"]], ["1", "1", "2"]);
  delay.close();
  assertEquals(clock.pendingTimers, 0);
});

test("TrafficTotals.now() still counts the traffic of a swarm that was left", () => {
  const swarm = (downloadedBytes: number) => ({
    status: () => ({ downloadedBytes, uploadedBytes: 1, wastedBytes: 2, failedPieces: 3 }),
  });
  const totals = new TrafficTotals();
  const [a, b] = [swarm(100), swarm(10)];
  assertEquals(totals.now([a, b]).downloadedBytes, 110);
  totals.left(a);
  assertEquals(totals.now([b]), { downloadedBytes: 110, uploadedBytes: 2, wastedBytes: 4, failedPieces: 6 });
  assert(totals.now([]).downloadedBytes === 100);
});

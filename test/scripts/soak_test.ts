import { test } from "node:test";
import { assert, assertAlmostEquals, assertEquals, assertLess } from "@std/assert";
import { report } from "../../scripts/soak/report.ts";
import type { Sample } from "../../scripts/soak/sample.ts";
import { trendOf } from "../../scripts/soak/trend.ts";

const QUIET: Sample = {
  atS: 0,
  rssMib: 100,
  heapMib: 20,
  externalMib: 5,
  descriptors: 30,
  sockets: 10,
  threads: 8,
  timers: 12,
  sessions: 2,
  swarms: 1,
  stateMib: 1,
  cacheMib: NaN,
};

test("trendOf() returns the slope per hour when a figure grows steadily", () => {
  const trend = trendOf([0, 5, 10, 15].map((atS) => ({ atS, value: 7 + atS / 1800 })))!;
  assertAlmostEquals(trend.perHour, 2, 1e-9);
  assertAlmostEquals(trend.errorPerHour, 0, 1e-6);
});

test("trendOf() reports an error larger than the slope when a figure only swings", () => {
  const trend = trendOf(Array.from({ length: 40 }, (_, i) => ({ atS: i * 5, value: i % 4 < 2 ? 90 : 110 })))!;
  assertLess(Math.abs(trend.perHour), 2 * trend.errorPerHour);
});

test("trendOf() returns null when there are too few samples or all have one time", () => {
  assertEquals(trendOf([{ atS: 1, value: 1 }, { atS: 2, value: 2 }]), null);
  assertEquals(trendOf([1, 2, 3].map((value) => ({ atS: 1, value }))), null);
});

test("report() takes slopes from the second half alone, and shows unknown figures as such, when it prints the table", () => {
  const busy = Array.from({ length: 40 }, (_, i) => ({
    ...QUIET,
    atS: i * 5,
    // The first half grows quickly, the second by 36 an hour.
    rssMib: i < 20 ? i * 10 : 200 + (i - 20) * 5 / 100,
    sessions: i < 2 ? NaN : 2,
  }));
  const tally = { done: new Map([["page", 3]]), failed: new Map([["page: 503", 2]]), bytes: 5e6 };
  const text = report({ busy, idle: [{ ...QUIET, descriptors: 31 }], tally, log: "" });
  const row = (name: string) => text.split("\n").find((line) => line.startsWith(`| ${name} `))!.split(" | ");
  assertEquals(row("resident memory, MiB").at(-1), "+36.0 ± 0.0 |");
  assertEquals(row("descriptors").slice(1), ["30.0", "30.0", "30.0", "30.0", "31.0", "+0.0 ± 0.0 |"]);
  assertEquals(row("cache directory, MiB").at(-1), "? |");
  assert(text.includes("2 × page: 503"));
  assert(text.includes("gave no figures: 2\n"));
});

import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { latestUpdateAt, nextUpdateAt, requireUpdateInterval } from "../../src/playlist/refresh-time.ts";

test("requireUpdateInterval() takes 0 and a minute to a year", () => {
  for (const seconds of [0, 60, 3600, 365 * 86_400]) requireUpdateInterval(seconds);
  for (const seconds of [1, 59, -60, 60.5, NaN, Infinity, 366 * 86_400]) {
    assertThrows(() => requireUpdateInterval(seconds), MillraceError);
  }
});

test("nextUpdateAt() waits the interval, doubles after failures, and jitters by a tenth", () => {
  const table: [number, number, number, number][] = [
    [0, 0, 0, 0],
    [0, 5, 0.9, 0],
    [3600, 0, 0, 4600],
    [3600, 0, 0.5, 4780],
    [3600, 1, 0, 1060],
    [3600, 3, 0, 1240],
    [3600, 500, 0, 1000 + 21_600],
    [5000, 2000, 0, 1000 + 21_600],
    [86_400, 500, 0, 1000 + 86_400],
  ];
  for (const [interval, failures, random, expected] of table) {
    assertEquals(nextUpdateAt(1000, interval, failures, random), expected, `${interval} ${failures}`);
  }
});

test("latestUpdateAt() returns the end of the longest wait that nextUpdateAt() chooses", () => {
  for (const interval of [60, 3600, 86_400]) {
    for (const failures of [0, 1, 5, 500]) {
      const latest = latestUpdateAt(1000, interval, failures);
      assertEquals(nextUpdateAt(1000, interval, failures, 0.999) <= latest, true, `${interval} ${failures}`);
    }
    assertEquals(latestUpdateAt(1000, interval, 500), nextUpdateAt(1000, interval, 500, 1));
  }
});

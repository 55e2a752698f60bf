import { assert, assertEquals, assertLess } from "@std/assert";
import { test } from "node:test";
import { frameGrid, onGrid } from "../../src/media/index/mkv/frame-grid.ts";
import { fixture, open, samples } from "./mkv-support.ts";

test("frameGrid() is found where a whole file keeps to a clean rate", () => {
  const rounded = (step: number, from: number) =>
    Array.from({ length: 500 }, (_, i) => Math.round((from + i * 48 * step) / 1e6) * 1e6);
  const film = 1001e6 / 24;
  const grid = frameGrid(41708333, rounded(film, 300_000))!;
  assertEquals(grid.stepNs, film);
  for (let i = 0; i < 200_000; i += 7) {
    const told = Math.round((300_000 + i * film) / 1e6) * 1e6;
    assertLess(Math.abs(onGrid(grid, told) - (300_000 + i * film)), 510_000);
    assert(Math.abs(onGrid(grid, told) - told) <= 1e6);
  }
  // A picture out of line stays where it is, and nothing becomes negative.
  assertEquals(onGrid(grid, 20e6), 20e6);
  assertEquals(onGrid({ originNs: -400_000, stepNs: 40e6 }, 0), 0);
  // Unknown or odd rates, no Cues, and files that change their rate or were cut.
  assertEquals(frameGrid(null, [0]), null);
  assertEquals(frameGrid(41_000_000, [0]), null);
  assertEquals(frameGrid(41708333, []), null);
  assertEquals(frameGrid(40_000_000, [0, 2e9, 4_013e6]), null);
});

test("openMatroska() puts pictures of a constant rate back on their times", async () => {
  const opened = await open(fixture("mkv-24fps.mkv"));
  const times: number[] = [];
  for (const run of opened.timeline.runs) {
    for (const sample of await samples(opened, run.index)) if (sample.track === 0) times.push(sample.dts90k);
  }
  for (let i = 1; i < times.length; i++) assertLess(Math.abs(times[i]! - times[i - 1]! - 3753.75), 2.01);
});

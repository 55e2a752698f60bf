import { assert, assertLess } from "@std/assert";
import { test } from "node:test";
import { MemorySource } from "../support/memory-source.ts";
import { MillraceError } from "../../src/errors.ts";
import { CountingSource, fixture, mutate, open, samples, seeded } from "./mkv-support.ts";

test("openMatroska() and readRun() survive damaged files with bounded reads", async () => {
  const random = seeded(7);
  for (const name of ["mkv-cues.mkv", "mkv-no-cues.mkv", "mkv-two-audio.mkv", "mkv-mpeg2.mkv"]) {
    const original = fixture(name);
    for (let round = 0; round < 150; round++) {
      const source = new CountingSource(new MemorySource(mutate(original, random)));
      try {
        const opened = await open(source);
        // Head, Cues, probes of head and tail: nothing is read more than a few times.
        assertLess(source.bytesRead, 8 * original.length + 100_000);
        const list = await samples(opened);
        assertLess(list.length, original.length);
        for (const [i, run] of opened.timeline.runs.entries()) {
          assert(run.index === i && run.sourceStart <= source.sizeBytes);
        }
      } catch (error) {
        assert(
          error instanceof MillraceError,
          `${name} round ${round}: ${error instanceof Error ? error.stack : error}`,
        );
      }
    }
  }
});

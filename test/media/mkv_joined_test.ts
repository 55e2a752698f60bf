/** Matroska files with another one after them. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { concatBytes } from "../../src/bytes/hex.ts";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { fixture } from "./mkv-support.ts";
import { collect, NEVER, openBytes } from "./support/files.ts";

for (const name of ["mkv-cues.mkv", "mkv-cues-front.mkv"]) {
  test(`openMatroska() plays the first film and says so when two of ${name} are in a file`, async () => {
    const one = fixture(name);
    const play = async (bytes: Uint8Array) => {
      const { ts, faults, hls, warnings } = await openBytes(bytes);
      const source = new MemorySource(bytes);
      const { streams } = checkTs(await collect(ts.read(0, ts.sizeBytes, source, NEVER)));
      assertEquals([faults.counts.dropped, faults.counts.ranBack], [0, 0]);
      const lengthMs = hls.segments.reduce((sum, { durationMs }) => sum + durationMs, 0);
      return { units: streams.map(({ units }) => units.length), lengthMs, warnings };
    };
    const [alone, joined] = [await play(one), await play(concatBytes([one, one]))];
    assertEquals(joined.units, alone.units);
    assertEquals(joined.lengthMs, alone.lengthMs);
    assert(joined.warnings.some((text) => text.includes("another film follows")), joined.warnings.join());
  });
}

/** Transport stream files that lost bytes: segments hold everything else. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { concatBytes } from "../../src/bytes/hex.ts";
import type { IndexedPresentation } from "../../src/media/types.ts";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { fixture } from "./mkv-support.ts";
import { openTs, repeatTs, segments } from "./ts-input-support.ts";

for (
  const { what, edit } of [
    {
      what: "lost 100 bytes",
      edit: (ts: Uint8Array, at: number) => concatBytes([ts.subarray(0, at), ts.subarray(at + 100)]),
    },
    {
      what: "has 77 bytes too many",
      edit: (ts: Uint8Array, at: number) => concatBytes([ts.subarray(0, at), new Uint8Array(77), ts.subarray(at)]),
    },
  ]
) {
  test(`openTransportStream() plays all of a file in HLS that ${what}`, async () => {
    const sound = repeatTs(fixture("ts-188.ts"), 4, 6 * 90_000);
    const at = Math.floor(sound.length / 2 / 188) * 188 + 37;
    const source = new MemorySource(edit(sound, at));
    const whole = new MemorySource(sound);
    const units = async (presentation: IndexedPresentation, from: MemorySource) =>
      checkTs(concatBytes(await segments(presentation, from)), { isSegment: false }).streams.map(({ units }) =>
        units.length
      );
    const before = await units(await openTs(whole), whole);
    const after = await units(await openTs(source), source);
    for (const [i, count] of before.entries()) assert(after[i]! >= count - 1, `${after[i]} of ${count}`);
  });
}

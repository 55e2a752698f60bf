import { assert, assertLess } from "@std/assert";
import { test } from "node:test";
import { MemorySource } from "../../src/bytes/source.ts";
import { MillraceError } from "../../src/errors.ts";
import { CountingSource, fixture, mutate, seeded } from "./mkv-support.ts";
import { openTs, segments } from "./ts-input-support.ts";

test("openTransportStream() and readSegment() survive damaged files with bounded reads", async () => {
  const random = seeded(11);
  for (const name of ["ts-188.ts", "ts-192.m2ts", "ts-204.ts", "ts-two-programs.ts"]) {
    const original = fixture(name);
    for (let round = 0; round < 80; round++) {
      const source = new CountingSource(new MemorySource(mutate(original, random)));
      try {
        const presentation = await openTs(source, { segmentTargetMs: 2000 });
        assertLess(source.bytesRead, 6 * original.length + 100_000);
        for (const segment of await segments(presentation, source)) {
          assert(segment.length % 188 === 0 && segment[0] === 0x47);
          assertLess(segment.length, 2 * original.length);
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

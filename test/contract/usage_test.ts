import { test } from "node:test";
import { assert, assertLess } from "@std/assert";
import { ports } from "./support.ts";

test("RuntimeFacts.usage() counts buffers as external, and not as heap as well", () => {
  const before = ports.runtime.usage!();
  const kept: Buffer[] = [];
  // Bun learns of a buffer when it looks for garbage, so not of the last ones: of 60, 300 MB, it knows some by then.
  let after = before;
  while (kept.length < 60 && after.externalBytes - before.externalBytes <= 40e6) {
    kept.push(Buffer.alloc(5e6, 1));
    after = ports.runtime.usage!();
  }
  assertLess(after.heapBytes - before.heapBytes, 20e6);
  assert(after.externalBytes - before.externalBytes > 40e6, `external ${after.externalBytes - before.externalBytes}`);
  assert(kept.every((buffer) => buffer[0] === 1));
});

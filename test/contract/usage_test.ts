import { test } from "node:test";
import { assert, assertLess } from "@std/assert";
import { ports } from "./support.ts";

test("RuntimeFacts.usage() counts buffers as external, and not as heap as well", () => {
  const before = ports.runtime.usage!();
  const kept = Array.from({ length: 20 }, () => Buffer.alloc(5e6, 1));
  const after = ports.runtime.usage!();
  assertLess(after.heapBytes - before.heapBytes, 20e6);
  // Bun learns of a buffer when it looks for garbage.
  assert(after.externalBytes - before.externalBytes > 40e6, `external ${after.externalBytes - before.externalBytes}`);
  assert(kept.every((buffer) => buffer[0] === 1));
});

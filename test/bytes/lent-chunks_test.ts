import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { FREED, lenderOf } from "../../src/bytes/lent-chunks.ts";

test("FREED.release() frees a chunk's memory when the chunk owns all of it", () => {
  const whole = new Uint8Array(1000);
  FREED.release(whole);
  assertEquals([whole.length, whole.buffer.byteLength], [0, 0]);
  FREED.release(whole);
});

test("FREED.release() does not free memory that others may be using", () => {
  const part = new Uint8Array(1000).subarray(0, 999);
  FREED.release(part);
  const shared = new Uint8Array(new SharedArrayBuffer(10));
  FREED.release(shared);
  assertEquals([part.length, shared.length], [999, 10]);
});

test("lenderOf() is null for a body whose chunks were not lent", () => {
  assertEquals(lenderOf(new ReadableStream()), null);
});

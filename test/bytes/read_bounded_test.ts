import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { readBounded } from "../../src/bytes/read-bounded.ts";
import { MillraceError } from "../../src/errors.ts";

const tooLarge = () => new MillraceError("too_large", "too large");

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

test("readBounded() returns all bytes of chunks of any size, with a correct, a wrong and no expected size", async () => {
  const bytes = Uint8Array.from({ length: 200_000 }, (_, i) => i * 7 + (i >> 8));
  for (const length of [0, 1, 4096, 4097, 70_000, 200_000]) {
    for (const size of [1, 4096, 65_536, 300_000]) {
      if (size === 1 && length > 5000) continue;
      for (const expected of [undefined, 0, length - 1, length, length + 1, 1e9]) {
        if (expected !== undefined && expected < 0) continue;
        const whole = await readBounded(chunksOf(bytes.subarray(0, length), size), 200_000, tooLarge, expected);
        assertEquals([whole.length, whole], [length, bytes.slice(0, length)], `${length} in ${size}, ${expected}`);
      }
    }
  }
});

test("readBounded() cancels the stream beyond its bound, also when another size was expected", async () => {
  for (const expected of [undefined, 10, 1e9]) {
    let given = 0;
    const endless = async function* () {
      for (;; given += 1000) yield await Promise.resolve(new Uint8Array(1000));
    };
    await assertRejects(() => readBounded(endless(), 5000, tooLarge, expected), MillraceError, "too large");
    assertEquals(given, 5000);
  }
});

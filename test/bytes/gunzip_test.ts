import { test } from "node:test";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { gunzipped, inflated } from "../../src/bytes/gunzip.ts";

const MIB = 1024 * 1024;
const failed = () => new Error("damaged");

/** `bytes` in chunks of `size`, as a stream that calls `onCancel`. */
function stream(bytes: Uint8Array, size: number, onCancel = () => {}): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      const chunk = bytes.slice(at, at + size);
      at += size;
      if (chunk.length > 0) controller.enqueue(chunk);
      else controller.close();
    },
    cancel: onCancel,
  }, { highWaterMark: 0 });
}

async function read(body: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) chunks.push(part.value);
  return chunks;
}

test("gunzipped() decompresses gzip from chunks of any size, into chunks of at most 64 KiB", async () => {
  const plain = Uint8Array.from({ length: 300_000 }, (_, i) => (i * i) >> 7);
  for (const size of [1, 7, 511, 512, 513, MIB]) {
    const chunks = await read(gunzipped(stream(gzipSync(plain).subarray(0, MIB), size), failed));
    assertEquals(Buffer.concat(chunks).equals(plain), true, `${size}`);
  }
  const chunks = await read(gunzipped(stream(gzipSync(new Uint8Array(32 * MIB)), MIB), failed));
  assertEquals(chunks.reduce((sum, { length }) => sum + length, 0), 32 * MIB);
  for (const { length } of chunks) assertLess(length, 65_537);
});

test("gunzipped() with isLent has one buffer for all chunks, each of which holds until the next", async () => {
  const plain = Uint8Array.from({ length: 500_000 }, (_, i) => (i * i) >> 7);
  for (const size of [13, 4096, MIB]) {
    const reader = gunzipped(stream(gzipSync(plain), size), failed, { isLent: true }).getReader();
    const buffers = new Set<ArrayBufferLike>();
    let at = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const { value } = part;
      assertEquals(Buffer.compare(value, plain.subarray(at, at + value.length)), 0, `${size}: at ${at}`);
      at += value.length;
      buffers.add(value.buffer);
    }
    assertEquals([at, buffers.size], [plain.length, 1], `${size}`);
  }
});

test("gunzipped() reads all members, in chunks of any size, and zeros after them", async () => {
  const parts = [Buffer.from("#EXTM3U\n"), Buffer.alloc(0), Buffer.alloc(200_000, "one\n"), Buffer.from("two\n")];
  const members = parts.map((part) => gzipSync(part));
  const packed = Buffer.concat([...members.slice(0, 3), Buffer.alloc(512), members[3]!, Buffer.alloc(700)]);
  for (const size of [1, 17, 512, MIB]) {
    const chunks = await read(gunzipped(stream(packed, size), failed));
    assertEquals(Buffer.concat(chunks).equals(Buffer.concat(parts)), true, `${size}`);
  }
});

test("gunzipped() refuses a later member that is damaged or cut, and text after the last", async () => {
  const [one, two] = [gzipSync("one\n"), gzipSync("two\n")];
  const badSum = Uint8Array.from(two, (byte, i) => i === two.length - 8 ? byte ^ 1 : byte);
  for (const rest of [badSum, two.subarray(0, 12), two.subarray(0, 1), Buffer.from("Too Many Requests")]) {
    await assertRejects(() => read(gunzipped(stream(Buffer.concat([one, rest]), 4096), failed)), Error, "damaged");
  }
});

test("gunzipped() leaves turns to others among members that hold nothing", async () => {
  const empty = gzipSync("");
  const body = gunzipped(stream(Buffer.concat(Array(30_000).fill(empty)), MIB), failed);
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  assertEquals(await read(body), []);
  clearInterval(timer);
  assertLess(1, turns);
});

test("gunzipped() reads no further ahead than a few chunks", async () => {
  let pulls = 0;
  const packed = gzipSync(new Uint8Array(64 * MIB));
  const body = gunzipped(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(packed.subarray(pulls * 1024, ++pulls * 1024));
      },
    }, { highWaterMark: 0 }),
    failed,
  );
  const reader = body.getReader();
  assertEquals((await reader.read()).done, false);
  for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setTimeout(resolve, 0));
  assertLess(pulls, 5);
  await reader.cancel();
});

test("gunzipped() distinguishes damaged data from a failing source", async () => {
  const packed = gzipSync(crypto.getRandomValues(new Uint8Array(50_000)));
  const flipped = Uint8Array.from(packed, (byte, i) => i === 40_000 ? byte ^ 0xff : byte);
  for (const bytes of [flipped, packed.subarray(0, 30_000), packed.subarray(0, 5), new Uint8Array(20)]) {
    await assertRejects(() => read(gunzipped(stream(bytes, 4096), failed)), Error, "damaged");
  }
  let pulls = 0;
  const broken = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (pulls++ > 3) throw new Error("the line is dead");
      controller.enqueue(packed.subarray(pulls * 1000 - 1000, pulls * 1000));
    },
  });
  await assertRejects(() => read(gunzipped(broken, failed)), Error, "the line is dead");
});

test("gunzipped() can be cancelled at any moment", async () => {
  // First steps that expand a lot, then more data than any queue holds.
  const noise = Array.from({ length: 16 }, () => crypto.getRandomValues(new Uint8Array(65_536)));
  const packed = gzipSync(Buffer.concat([new Uint8Array(2 * MIB), ...noise]));
  for (let round = 0; round < 100; round++) {
    let cancelled = false;
    const reader = gunzipped(stream(packed, 1 + 97 * round, () => cancelled = true), failed).getReader();
    for (let reads = 0; reads <= round % 5; reads++) await reader.read();
    const pending = round % 3 === 0 ? reader.read().catch(() => {}) : null;
    for (let steps = 0; steps < round % 4; steps++) await null;
    await reader.cancel(round % 2 === 0 ? undefined : new Error("left"));
    await pending;
    assert(cancelled, `round ${round}`);
    // What the runtime does later must not end the process either.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
});

test("inflated() decompresses zlib up to a bound, and nothing damaged", () => {
  const plain = Uint8Array.from({ length: 200_000 }, (_, i) => i * i % 251);
  const packed = new Uint8Array(deflateSync(plain));
  assertEquals(inflated(packed, plain.length), plain);
  assertEquals(inflated(new Uint8Array(deflateSync(new Uint8Array(0))), 0), new Uint8Array(0));
  assertEquals(inflated(packed, plain.length - 1), null);
  for (const length of [0, 1, 2, packed.length - 5]) assertEquals(inflated(packed.subarray(0, length), MIB), null);
  const damaged = packed.slice();
  damaged.fill(0xff, 20, 40);
  assertEquals(inflated(damaged, MIB), null);
  assertEquals(inflated(new Uint8Array(deflateRawSync(plain)), MIB), null);
  assertEquals(inflated(new Uint8Array(gzipSync(plain)), MIB), null);
});

import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type AheadItem, readAhead, SEGMENT_START } from "../../src/inputs/read-ahead.ts";
import { settle } from "../support/fake-clock.ts";

const MIB = 1024 * 1024;

/** Segments of `chunks` chunks each, and what was made of them so far. */
function source(segments: number, chunks: number, chunkBytes: number) {
  const made = { chunks: 0, isLeft: false };
  const items = async function* (): AsyncGenerator<AheadItem, void> {
    try {
      for (let segment = 0; segment < segments; segment++) {
        yield SEGMENT_START;
        for (let chunk = 0; chunk < chunks; chunk++) {
          made.chunks++;
          yield { kind: "data", bytes: new Uint8Array(chunkBytes).fill(segment) };
          if (made.chunks % 500 === 0) await settle();
        }
      }
    } finally {
      made.isLeft = true;
    }
  };
  return { made, items: items() };
}

async function idle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await settle();
}

test("readAhead() reads one segment while another is used, and none after it", async () => {
  const { made, items } = source(5, 3, 100);
  const ahead = readAhead(items);
  const used: number[] = [];
  for (let n = 0; n < 7; n++) {
    const { value } = await ahead.next();
    assert(value?.kind === "data");
    used.push(value.bytes[0]!);
    await idle();
  }
  assertEquals([used, made.chunks], [[0, 0, 0, 1, 1, 1, 2], 12]);
  await ahead.return();
  await idle();
  assert(made.isLeft);
});

test("readAhead() leaves the rest of a large segment, and a million small chunks, at the server", async () => {
  for (const [chunkBytes, most] of [[MIB, 13], [1, 24_600]] as const) {
    const { made, items } = source(1, 100_000, chunkBytes);
    const ahead = readAhead(items);
    await ahead.next();
    for (let before = -1; before !== made.chunks;) {
      before = made.chunks;
      await idle();
    }
    assert(made.chunks > most / 2 && made.chunks <= most + 1, `${made.chunks} chunks of ${chunkBytes}`);
    await ahead.return();
  }
});

test("readAhead() gives all sources together 36 MiB, and each one a chunk at least", async () => {
  const sources = Array.from({ length: 6 }, () => source(1, 100, MIB));
  const all = sources.map(({ items }) => readAhead(items));
  await Promise.all(all.map((ahead) => ahead.next()));
  await idle();
  const held = sources.map(({ made }) => made.chunks - 2);
  assert(held.reduce((sum, chunks) => sum + chunks, 0) <= 42, `${held}`);
  for (const ahead of all) assertEquals((await ahead.next()).done, false);
  await Promise.all(all.map((ahead) => ahead.return()));
  // What they held is given back.
  const { made, items } = source(1, 100, MIB);
  const ahead = readAhead(items);
  await ahead.next();
  await idle();
  assert(made.chunks >= 11, `${made.chunks}`);
  await ahead.return();
});

test("readAhead() passes an error on after all that came before it", async () => {
  const ahead = readAhead((async function* (): AsyncGenerator<AheadItem, void> {
    yield { kind: "data", bytes: new Uint8Array(1) };
    yield { kind: "lost", reason: "gone" };
    await settle();
    throw new Error("it broke off");
  })());
  assertEquals((await ahead.next()).value?.kind, "data");
  assertEquals((await ahead.next()).value?.kind, "lost");
  await assertRejects(() => ahead.next(), Error, "it broke off");
});

import { test } from "node:test";
import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { MillraceError } from "../../../src/errors.ts";
import { ConsiderateSource, IndexWork } from "../../../src/media/source/work.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { NEVER } from "../support/files.ts";

const SOURCE = new MemorySource(new Uint8Array(100));
const busy = (ms: number) => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

test("IndexWork ends with bad_media over its steps, its reads, and its time", async () => {
  const cases: readonly [limits: ConstructorParameters<typeof IndexWork>[2], told: string][] = [
    [{ steps: 50 }, "50 steps"],
    [{ reads: 20 }, "20 reads"],
    [{ busyMs: 50 }, "0.05 s"],
  ];
  for (const [limits, told] of cases) {
    const work = new IndexWork(SOURCE, NEVER, limits);
    const error = await assertRejects(async () => {
      for (;;) {
        await work.read(0, 1, { signal: NEVER });
        busy(1);
      }
    }, MillraceError);
    assertEquals(error.code, "bad_media");
    assert(error.message.includes(told), error.message);
  }
});

test("IndexWork does not count the time in which it waits for bytes", async () => {
  const slow = {
    sizeBytes: 1,
    read: () => new Promise<Uint8Array>((resolve) => setTimeout(() => resolve(new Uint8Array(1)), 30)),
  };
  const work = new IndexWork(slow, NEVER, { busyMs: 50 });
  for (let i = 0; i < 4; i++) await work.read(0, 1, { signal: NEVER });
});

test("IndexWork does not count the time in which it waits for other programs, which read through it", async () => {
  const work = new IndexWork(SOURCE, NEVER, { busyMs: 50 });
  await work.idle(async () => {
    for (let i = 0; i < 8; i++) {
      busy(10);
      await work.read(0, 1, { signal: NEVER });
    }
  });
  await work.read(0, 1, { signal: NEVER });
});

for (
  const [what, make] of [
    ["IndexWork", (signal: AbortSignal) => new IndexWork(SOURCE, signal)],
    ["ConsiderateSource", () => new ConsiderateSource(SOURCE)],
  ] as const
) {
  test(`${what}.read() lets timers run while it reads from memory only, and ends when one of them fires its signal`, async () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    const source = make(abort.signal);
    const startMs = performance.now();
    const error = await assertRejects(async () => {
      for (;;) {
        await source.read(0, 1, { signal: abort.signal });
        busy(0.1);
      }
    }, MillraceError);
    assertEquals(error.code, "aborted");
    assertLess(performance.now() - startMs, 5000);
  });
}

test("IndexWork.on() keeps the account of a source that has one", () => {
  const work = new IndexWork(SOURCE, NEVER);
  assert(IndexWork.on(work, NEVER) === work);
});

test("IndexWork counts twice the largest read until its end, and small reads not at all", async () => {
  let taken = 0;
  const memory = { take: (bytes: number) => void (taken += bytes), giveBack: (bytes: number) => void (taken -= bytes) };
  const source = { sizeBytes: 1e9, read: () => Promise.resolve(new Uint8Array(0)) };
  const work = new IndexWork(source, NEVER, {}, memory);
  const held: number[] = [];
  for (const length of [1000, 1_000_000, 500_000, 3_000_000]) {
    await work.read(0, length, { signal: NEVER });
    held.push(taken);
  }
  work.end();
  work.end();
  assertEquals([...held, taken], [0, 2_000_000, 2_000_000, 6_000_000, 0]);
});

test("IndexWork.part() reads from where it begins, ends where it ends, and is charged to the whole", async () => {
  const bytes = Uint8Array.from({ length: 100 }, (_, i) => i);
  const whole = new IndexWork(new MemorySource(bytes), NEVER, { reads: 4 });
  const part = whole.part(40, 60).part(10, 20);
  assertEquals(part.sizeBytes, 10);
  assertEquals([...await part.read(2, 3, { signal: NEVER })], [52, 53, 54]);
  await assertRejects(() => part.read(5, 6, { signal: NEVER }), MillraceError, "outside the part");
  assertEquals([...await whole.read(0, 1, { signal: NEVER })], [0]);
  for (let i = 0; i < 2; i++) await part.read(0, 1, { signal: NEVER });
  await assertRejects(() => part.read(0, 1, { signal: NEVER }), MillraceError, "4 reads");
});

test("IndexWork.part() counts steps of all parts together", async () => {
  const whole = new IndexWork(SOURCE, NEVER, { steps: 50 });
  for (const start of [0, 10, 20]) await whole.part(start, start + 10).spend(15);
  await assertRejects(() => whole.part(30, 40).spend(15), MillraceError, "50 steps");
});

import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { probeBitrate } from "../../src/live/broadcast/bitrate-probe.ts";
import { writePcr } from "../../src/bytes/ts/stamps.ts";
import type { LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { clip } from "../support/fixtures.ts";
import { FakeClock } from "../support/fake-clock.ts";

const NEVER = new AbortController().signal;

/** Chunks, each `everyMs` after the one before. */
async function* arriving(
  clock: FakeClock,
  chunks: readonly Uint8Array[],
  everyMs: number,
): AsyncGenerator<LiveInputEvent> {
  for (const bytes of chunks) {
    yield { kind: "data", bytes };
    clock.advance(everyMs);
    await Promise.resolve();
  }
}

function chunked(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.slice(i * size, (i + 1) * size));
}

test("probeBitrate() goes by the stream's clock when it comes in a burst, and needs three seconds of it", async () => {
  const clock = new FakeClock();
  const ts = clip("ts-188.ts");
  const { bytesPerS, events } = await probeBitrate(arriving(clock, chunked(ts, 5000), 0), clock, NEVER);
  const mean = ts.length / 6.02;
  assert(Math.abs(bytesPerS / mean - 1) < 0.25, `${bytesPerS}, and ${mean} over all`);
  const read = events.reduce((sum, { event }) => sum + (event.kind === "data" ? event.bytes.length : 0), 0);
  assert(read > 0.4 * ts.length && read < 0.65 * ts.length, `${read} of ${ts.length}`);
});

test("probeBitrate() goes by the time of arrival where the stream has no clock", async () => {
  const clock = new FakeClock();
  const chunks = Array.from({ length: 100 }, () => new Uint8Array(10_240));
  assertEquals((await probeBitrate(arriving(clock, chunks, 100), clock, NEVER)).bytesPerS, 102_400);
});

test("probeBitrate() goes by arrival where the clock tells nothing: too seldom, or standing still", async () => {
  for (const everyPackets of [1, 2000]) {
    const clock = new FakeClock();
    const bytes = new Uint8Array(188 * 6000).fill(0xff);
    for (let i = 0; i < 6000; i++) {
      const hasPcr = i % everyPackets === 0;
      bytes.set(hasPcr ? [0x47, 1, 0, 0x30, 7, 0x10, 0, 0, 0, 0, 0x7e, 0] : [0x47, 1, 0, 0x10], i * 188);
      if (hasPcr && everyPackets > 1) writePcr(bytes, i * 188 + 6, i / everyPackets * 15 * 90_000);
    }
    const { bytesPerS } = await probeBitrate(arriving(clock, chunked(bytes, 9400), 50), clock, NEVER);
    assert(Math.abs(bytesPerS / 188_000 - 1) < 0.02, `${bytesPerS} with a PCR per ${everyPackets} packets`);
  }
});

test("probeBitrate() takes no stand-still at the start for the stream, and waits for a second of it", async () => {
  const clock = new FakeClock();
  async function* slow(): AsyncGenerator<LiveInputEvent> {
    yield { kind: "data", bytes: new Uint8Array(1024) };
    clock.advance(20_000);
    await Promise.resolve();
    yield* arriving(clock, Array.from({ length: 100 }, () => new Uint8Array(10_240)), 100);
  }
  const { bytesPerS, events } = await probeBitrate(slow(), clock, NEVER);
  assert(bytesPerS > 60_000 && bytesPerS < 110_000, `${bytesPerS}`);
  assert(events.length < 20);
});

test("probeBitrate() rejects when the source ends before there was a second of it", async () => {
  const clock = new FakeClock();
  const early = clip("ts-188.ts").slice(0, 10_000);
  for (const chunks of [[], [new Uint8Array(5000)], chunked(early, 1880)]) {
    const error = await assertRejects(() => probeBitrate(arriving(clock, chunks, 20), clock, NEVER), MillraceError);
    assertEquals(error.code, "bad_media");
  }
});

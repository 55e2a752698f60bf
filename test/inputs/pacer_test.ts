import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { PACKET_BYTES } from "../../src/bytes/ts/packet.ts";
import { wrap33, WRAP_90K, writePcr } from "../../src/bytes/ts/stamps.ts";
import { MillraceError } from "../../src/errors.ts";
import type { LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { inspected } from "../../src/inputs/inspect.ts";
import { inPackets } from "../../src/inputs/packets.ts";
import { type Pace, paced, PcrClock } from "../../src/inputs/pacer.ts";
import { clip } from "../support/fixtures.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { sourcePorts } from "./support.ts";

const EXACT: Pace = { leadMs: 0, rate: () => 1, needsClock: true };
const NEVER = new AbortController().signal;

/** The waits caused by a series of PCRs, in ms, if each wait is observed. */
function waits(pcrsMs: readonly (number | "jump")[], pace = EXACT, delaysMs: readonly number[] = []): number[] {
  const clock = new FakeClock();
  const pcrs = new PcrClock(clock, pace);
  return pcrsMs.flatMap((ms, i) => {
    if (ms === "jump") {
      pcrs.jump();
      return [];
    }
    clock.advance(delaysMs[i] ?? 0);
    const waitMs = pcrs.waitMs(0x100, wrap33(ms * 90));
    clock.advance(waitMs);
    return Math.round(waitMs);
  });
}

const WRAP_MS = WRAP_90K / 90;

test("PcrClock.waitMs() spaces PCRs as they say, across the wrap", () => {
  assertEquals(waits([0, 40, 80, 180]), [0, 40, 40, 100]);
  assertEquals(waits([WRAP_MS - 60, WRAP_MS - 20, WRAP_MS + 20]), [0, 40, 40]);
});

test("PcrClock.waitMs() begins when the first PCR comes, however old the process is by then", () => {
  for (const uptimeMs of [0, 500, 1999, 3000]) assertEquals(waits([0, 40, 80], EXACT, [uptimeMs]), [0, 40, 40]);
});

test("PcrClock.waitMs() takes time that has passed off, and does not catch up with more than 2 s", () => {
  assertEquals(waits([0, 40, 80], EXACT, [0, 30, 50]), [0, 10, 0]);
  // 1.9 s late: what follows is sent at once until the stream is on time.
  assertEquals(waits([0, 1000, 2000, 2100], EXACT, [0, 2900, 0, 0]), [0, 0, 0, 0]);
  assertEquals(waits([0, 40, 1040], EXACT, [0, 5000, 0]), [0, 0, 1000]);
});

test("PcrClock.waitMs() continues from its position when the clock jumps", () => {
  assertEquals(waits([0, 40, "jump", 900_000, 900_040, "jump", 5, 45]), [0, 40, 0, 40, 0, 40]);
});

test("PcrClock.waitMs() takes steps as long as those of slides for time, and gives a jump the time of its bytes", () => {
  assertEquals(waits([0, 4000, 9000, 13_000, 13_040, 28_040]), [0, 4000, 5000, 4000, 40, 15_000]);
  const pcrs = new PcrClock(new FakeClock(), { ...EXACT, bytesPerS: 10_000 });
  assertEquals([pcrs.waitMs(0x100, 0), pcrs.untimedMs(50_000)], [0, 0]);
  pcrs.jump();
  assertEquals(pcrs.waitMs(0x100, 90_000 * 500), 5000);
});

test("PcrClock.untimedMs() goes by the mean rate when the clock stands still", () => {
  const clock = new FakeClock();
  const pcrs = new PcrClock(clock, { ...EXACT, bytesPerS: 1024 * 1024 });
  const MIB = 1024 * 1024;
  let passedMs = 0;
  for (let i = 0; i < 40; i++) {
    const waitMs = pcrs.untimedMs(MIB) || pcrs.waitMs(0x100, 777);
    passedMs += waitMs;
    clock.advance(waitMs);
  }
  assertEquals(passedMs, 30_000);
});

test("PcrClock.waitMs() lets a lead pass, and runs at the rate", () => {
  assertEquals(waits([0, 1000, 2000, 3000, 4000], { ...EXACT, leadMs: 3000 }), [0, 0, 0, 0, 1000]);
  assertEquals(waits([0, 1000, 2000], { ...EXACT, rate: () => 2 }), [0, 500, 500]);
});

test("PcrClock.waitMs() follows one PID until it is gone", () => {
  const clock = new FakeClock();
  const pcrs = new PcrClock(clock, EXACT);
  pcrs.waitMs(0x100, 0);
  assertEquals(pcrs.waitMs(0x200, 9000), 0);
  assertEquals(pcrs.waitMs(0x100, 9000), 100);
  for (let i = 0; i < 100; i++) pcrs.waitMs(0x200, 90_000 + i);
  assert(pcrs.waitMs(0x200, 99_000) > 0);
});

/** `count` packets, one PCR each `everyMs`; 0: none has a PCR. */
function stream(count: number, everyMs: number): Uint8Array {
  const bytes = new Uint8Array(count * PACKET_BYTES).fill(0xff);
  for (let i = 0; i < count; i++) {
    bytes.set(everyMs > 0 ? [0x47, 1, 0, 0x30, 7, 0x10, 0, 0, 0, 0, 0x7e, 0] : [0x47, 1, 0, 0x10], i * PACKET_BYTES);
    if (everyMs > 0) writePcr(bytes, i * PACKET_BYTES + 6, i * everyMs * 90);
  }
  return bytes;
}

async function* events(...bytes: (Uint8Array | string)[]): AsyncGenerator<LiveInputEvent, void> {
  for (const one of bytes) yield typeof one === "string" ? { kind: "lost", reason: one } : { kind: "data", bytes: one };
}

test("paced() sends each PCR when it is due and all bytes in order, in whole packets", async () => {
  const clock = new FakeClock();
  const sent: { atMs: number; bytes: number }[] = [];
  const all = stream(5, 100);
  const done = (async () => {
    for await (const event of paced(inPackets(events(all.subarray(0, 300), all.subarray(300))), clock, EXACT, NEVER)) {
      assert(event.kind === "data");
      sent.push({ atMs: clock.monotonic(), bytes: event.bytes.length });
    }
  })();
  await clock.advanceAsync(1000);
  await done;
  assertEquals(sent, [0, 100, 200, 300, 400].map((atMs) => ({ atMs, bytes: PACKET_BYTES })));
});

test("inPackets() cuts where the clock steps back or far ahead, and where bytes are no packets", async () => {
  const part = (fromMs: number) => {
    const bytes = stream(4, 100);
    for (let i = 0; i < 4; i++) writePcr(bytes, i * PACKET_BYTES + 6, (fromMs + 100 * i) * 90);
    return bytes;
  };
  const all = [
    part(0),
    part(1900),
    part(9000),
    part(60_000),
    part(5000),
    part(WRAP_MS - 200),
    new Uint8Array(500),
    part(300_000),
  ];
  const told: (number | string)[] = [];
  for await (const event of inPackets(events(concatBytes(all)))) {
    const last = told.length - 1;
    if (event.kind === "lost") told.push(event.reason);
    else if (typeof told[last] === "number") told[last] = told[last] + event.bytes.length / PACKET_BYTES;
    else told.push(event.bytes.length / PACKET_BYTES);
  }
  assertEquals(told, [
    8,
    "the clock of the stream jumped by 6.8 s",
    4,
    "the clock of the stream jumped by 50.7 s",
    4,
    "the clock of the stream jumped by -55.3 s",
    4,
    "the clock of the stream jumped by -5.5 s",
    4,
    "bytes came that are no transport packets",
    "the clock of the stream jumped by 299.9 s",
    4,
  ]);
});

test("inPackets() does not take a wrap for a jump, and counts packets dropped after a loss as part of it", async () => {
  const bytes = stream(4, 100);
  for (let i = 0; i < 4; i++) writePcr(bytes, i * PACKET_BYTES + 6, WRAP_90K - 18_000 + 9000 * i);
  const kinds: string[] = [];
  for await (const { kind } of inPackets(events(bytes, "gone", new Uint8Array(99), stream(4, 100)))) kinds.push(kind);
  assertEquals(kinds.filter((kind, i) => kind !== kinds[i - 1]), ["data", "lost", "data"]);
  assertEquals(kinds.filter((kind) => kind === "lost").length, 1);
});

test("paced() ends its wait when the signal fires", async () => {
  const control = new AbortController();
  const waiting = paced(events(stream(3, 1000)), new FakeClock(), EXACT, control.signal);
  await waiting.next();
  const next = waiting.next();
  control.abort();
  await assertRejects(() => next, MillraceError);
});

test("paced() sends slides in their time, whatever their distance", async () => {
  for (const everyMs of [5000, 15_000, 70_000]) {
    const clock = new FakeClock();
    const pace = { ...EXACT, bytesPerS: PACKET_BYTES * 1000 / everyMs };
    const run = (async () => {
      for await (const _ of paced(inPackets(events(stream(5, everyMs))), clock, pace, NEVER));
      return clock.monotonic();
    })();
    await clock.advanceAsync(1_000_000);
    assertEquals(await run, 4 * everyMs, `${everyMs} ms`);
  }
});

test("inPackets() does not cut a stream whose clock is as seldom as its pictures", async () => {
  for (const [everyMs, cuts] of [[1500, 0], [5000, 0], [15_000, 1]] as const) {
    const kinds: string[] = [];
    for await (const { kind } of inPackets(events(stream(20, everyMs)))) kinds.push(kind);
    assertEquals(kinds.filter((kind) => kind === "lost").length, cuts, `${everyMs} ms`);
  }
});

test("paced() refuses a file without a clock before it floods anybody", async () => {
  let bytes = 0;
  const run = async () => {
    const many = Array.from({ length: 60 }, () => stream(500, 0));
    for await (const event of paced(events(...many), new FakeClock(), EXACT, NEVER)) {
      if (event.kind === "data") bytes += event.bytes.length;
    }
  };
  const error = await assertRejects(run, MillraceError);
  assertEquals(error.code, "bad_media");
  assert(bytes <= 4 * 1024 * 1024);
});

test("inspected() warns once of several programs and of scrambled packets, and passes all on", async () => {
  const { log, lines } = await sourcePorts();
  const two = clip("ts-two-programs.ts");
  const scrambled = stream(20_000, 0).map((byte, i) => i % PACKET_BYTES === 3 ? byte | 0x80 : byte);
  let bytes = 0;
  for await (const event of inspected(events(two, "gone", two, "gone", scrambled, "gone", stream(20_000, 0)), log)) {
    if (event.kind === "data") bytes += event.bytes.length;
  }
  assertEquals(bytes, 2 * two.length + 40_000 * PACKET_BYTES);
  assertEquals(lines.map(({ level, message }) => [level, message.slice(0, 29)]), [
    ["warn", "the source carries 2 programs"],
    ["warn", "the source is scrambled: nobo"],
  ]);
});

test("paced() holds back a sender that is faster than any broadcast", async () => {
  const MIB = 1024 * 1024;
  const clock = new FakeClock();
  const block = stream(5578, 0);
  const endless = async function* (): AsyncGenerator<LiveInputEvent, void> {
    for (;;) yield { kind: "data", bytes: block };
  };
  const ending = new AbortController();
  const pace: Pace = { leadMs: 3000, rate: () => 1, needsClock: false };
  let bytes = 0;
  const done = (async () => {
    for await (const event of paced(endless(), clock, pace, ending.signal)) {
      if (event.kind === "data") bytes += event.bytes.length;
    }
  })();
  const pass = async (ms: number) => {
    for (let step = 0; step < 40; step++) await clock.advanceAsync(ms / 40);
  };
  await pass(0);
  assertEquals(Math.ceil(bytes / MIB), 16);
  await pass(2000);
  await pass(0);
  assertEquals(Math.ceil(bytes / MIB), 48);
  ending.abort();
  await assertRejects(() => done);
});

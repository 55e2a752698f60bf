import { test } from "node:test";
import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { LiveReader } from "../../src/playback/live/live-reader.ts";
import { LiveStream } from "../../src/playback/live/live-stream.ts";
import { PacketWindow } from "../../src/playback/live/packet-window.ts";
import { WindowFiles } from "../../src/playback/live/window-files.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { checkTs } from "../support/ts-check.ts";
import { Studio } from "./live-support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

const DIRECTORY = "/cache/live-window/x";
const PACKETS = 50;
const FILE_BYTES = 400_000;
const log = { log() {}, child: () => log };
const never = new AbortController().signal;

/** A chunk of one second whose packets contain their number, in parts that split packets. */
function chunk(first: number): Uint8Array[] {
  const bytes = new Uint8Array(PACKETS * 188);
  for (let i = 0; i < PACKETS; i++) new DataView(bytes.buffer).setUint32(i * 188, first + i);
  return [bytes.subarray(0, 1000), bytes.subarray(1000, 7000), bytes.subarray(7000)];
}

function setUp(limits: { windowMs: number; maxBytes: number; maxDiskBytes?: number }) {
  const files = new MemoryFiles(new FakeClock());
  const window = new PacketWindow(limits, new WindowFiles(files, DIRECTORY, log, FILE_BYTES));
  return { files, window };
}

async function fill(window: PacketWindow, seconds: number, fromS = 0): Promise<void> {
  for (let s = fromS; s < fromS + seconds; s++) {
    window.append(chunk(s * PACKETS), s * 1000);
    await settle();
  }
}

async function numbers(window: PacketWindow, first: number, count: number): Promise<number[]> {
  const bytes = await window.packets(first, count);
  return Array.from({ length: count }, (_, i) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(i * 188));
}

test("PacketWindow moves old packets to disk and reads across both", async () => {
  const { files, window } = setUp({ windowMs: 300_000, maxBytes: 2 ** 30 });
  await fill(window, 400);
  assertLess(window.usedBytes, 92 * PACKETS * 188);
  assertLess(200 * PACKETS * 188, window.usedDiskBytes);
  assertEquals([window.base, window.end], [99 * PACKETS, 400 * PACKETS]);
  // On disk, on both sides of the border, in memory, and over a chunk's border.
  for (const first of [window.base, window.end - 91 * PACKETS - 5, window.end - 10, 150 * PACKETS - 3]) {
    assertEquals(await numbers(window, first, 10), Array.from({ length: 10 }, (_, i) => first + i));
  }
  await assertRejects(() => window.packets(window.base - 1, 5), MillraceError);
  await assertRejects(() => window.packets(window.end - 1, 2), MillraceError);
  // Of 210 s on disk the oldest file is partly out of date, the newest partly written.
  const most = Math.ceil(210 * PACKETS * 188 / FILE_BYTES) + 1;
  assert(files.nodes.size > 2 && files.nodes.size <= most, `${files.nodes.size} files`);
  await window.close();
  assertEquals([files.nodes.size, files.openHandles], [0, 0]);
});

test("PacketWindow stays in memory, within its limit, when the disk fails", async () => {
  const { files, window } = setUp({ windowMs: 600_000, maxBytes: 200 * PACKETS * 188 });
  files.hook = (operation) => {
    if (operation === "write") throw new MillraceError("disk_full", "full");
  };
  await fill(window, 300);
  assertEquals([window.usedDiskBytes, window.usedBytes], [0, 200 * PACKETS * 188]);
  assertEquals(await numbers(window, window.base, 2), [window.base, window.base + 1]);
  await window.close();
  assertEquals(files.openHandles, 0);
});

test("PacketWindow writes one chunk at a time to a disk that hangs, and catches up when it recovers", async () => {
  const files = new MemoryFiles(new FakeClock());
  let asked = 0;
  const window = new PacketWindow(
    { windowMs: 300_000, maxBytes: 2 ** 30 },
    new class extends WindowFiles {
      override write(data: Uint8Array) {
        asked++;
        return super.write(data);
      }
    }(files, DIRECTORY, log, FILE_BYTES),
  );
  let proceed = () => {};
  const gate = new Promise<void>((resolve) => proceed = resolve);
  files.hook = (operation) => operation === "write" ? gate : undefined;
  await fill(window, 300);
  assertEquals([asked, window.usedDiskBytes], [1, 0]);
  proceed();
  await until("the disk to be up to date", () => window.usedBytes < 92 * PACKETS * 188);
  const first = window.base;
  assertEquals(await numbers(window, first, 3), [first, first + 1, first + 2]);
  await window.close();
  assertEquals([files.nodes.size, files.openHandles], [0, 0]);
});

test("PacketWindow keeps no more on disk than its limit", async () => {
  const { window } = setUp({ windowMs: 600_000, maxBytes: 2 ** 30, maxDiskBytes: 50 * PACKETS * 188 });
  await fill(window, 300);
  assertLess(window.usedDiskBytes, 51 * PACKETS * 188 + 1);
  assertLess(150 * PACKETS, window.base);
  await window.close();
});

test("PacketWindow.packets() that is overtaken by the window says so and reads nothing wrong", async () => {
  const { files, window } = setUp({ windowMs: 200_000, maxBytes: 2 ** 30 });
  await fill(window, 200);
  let proceed = () => {};
  const gate = new Promise<void>((resolve) => proceed = resolve);
  files.hook = (operation) => operation === "read" ? gate : undefined;
  const first = window.base;
  const late = numbers(window, first, 3);
  files.hook = () => {};
  await fill(window, 400, 200);
  proceed();
  assertEquals(await late, [first, first + 1, first + 2]);
  await window.close();
  assertEquals([files.nodes.size, files.openHandles], [0, 0]);
});

test("LiveReader and segments read packets on disk like those in memory", async () => {
  const studio = await Studio.open({ clock: new FakeClock() });
  const files = new MemoryFiles(studio.clock);
  const stream = new LiveStream(studio, studio.clock, {
    limits: { windowMs: 300_000, maxBytes: 2 ** 30 },
    files: new WindowFiles(files, DIRECTORY, log, FILE_BYTES),
  });
  await studio.run(150_000);
  assertLess(1_000_000, stream.window.usedDiskBytes);
  const reader = new LiveReader(stream, stream.pointAt(studio.clock.now() - 140_000));
  const parts: Uint8Array[] = [];
  for await (const bytes of reader.read(never)) {
    parts.push(bytes);
    if (reader.position! >= stream.readableEnd(stream.window.end - 1)) break;
  }
  const problems = (ts: Uint8Array, isSegment: boolean) =>
    checkTs(ts, { isSegment }).problems.filter((problem) => !/PCR gap|is short/.test(problem));
  assertEquals(problems(concatBytes(parts), false), []);
  assertLess(2_500_000, concatBytes(parts).length);
  const segment: Uint8Array[] = [];
  for await (const bytes of stream.readSegment(stream.segments[3]!, null, never)) segment.push(bytes);
  assertEquals(problems(concatBytes(segment), true), []);
  await stream.close();
  assert(files.openHandles === 0 && files.nodes.size === 0);
});

/** A broadcaster's own business: what it keeps in its directory, and how it ends. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { SentBroadcasts } from "../../src/engine/sent-broadcasts.ts";
import { MillraceError } from "../../src/errors.ts";
import { startBroadcast } from "../../src/live/broadcast/broadcast.ts";
import type { LiveInput, LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { FLAG_DISCONTINUITY } from "../../src/live/header.ts";
import { createLiveTransportFile, type LiveMetainfo } from "../../src/metainfo/live.ts";
import type { SignedPiece } from "../../src/live/broadcast/publisher.ts";
import type { LiveSwarmManager } from "../../src/live/swarm/live-swarms.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { isCollected } from "../support/collected.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { sha256 } from "../../platform/shared/digests.ts";

const log = { log() {}, child: () => log };
const VIEWER = { host: "192.0.2.1", port: 4000 };

/** A source that says nothing until it is let go. */
function silent(): LiveInput & { readonly isOver: boolean } {
  let end = () => {};
  const over = new Promise<void>((resolve) => end = resolve);
  let isOver = false;
  return {
    get isOver() {
      return isOver;
    },
    [Symbol.asyncIterator]: () => ({
      next: () => over.then(() => ({ done: true, value: undefined })),
      return: () => {
        isOver = true;
        end();
        return Promise.resolve({ done: true, value: undefined });
      },
    }),
  };
}

function setUp(publish: (piece: SignedPiece) => void = () => {}) {
  /** Of each swarm that was joined: ends it. */
  const endings: AbortController[] = [];
  const clock = new FakeClock();
  const files = new MemoryFiles(clock);
  let leases = 0;
  const peers = { adopt() {}, memberAddresses: () => [VIEWER], book: { list: () => [] } };
  const swarms = {
    broadcast() {
      leases++;
      const own = new AbortController();
      endings.push(own);
      const status = () => ({ message: null });
      return { swarm: { peers, ending: own.signal, node: { publish }, status }, release: () => leases-- };
    },
  } as unknown as LiveSwarmManager;
  return { parts: { clock, files, log, sha256, swarms }, clock, files, leases: () => leases, endings };
}

test("Broadcast.close() waits for addresses of viewers that are being written", async () => {
  const { parts, clock, files, leases } = setUp();
  const broadcast = await startBroadcast(parts, { input: silent(), name: "Test", directory: "/b", bytesPerS: 1000 });
  let proceed = () => {};
  const gate = new Promise<void>((resolve) => proceed = resolve);
  files.hook = (operation, path) => operation === "replace" && path === "/b/viewers" ? gate : undefined;
  await clock.advanceAsync(5000);
  let closed = false;
  const closing = broadcast.close().then(() => closed = true);
  await settle();
  assertEquals([closed, leases(), files.nodes.has("/b/viewers")], [false, 1, false]);
  proceed();
  await closing;
  assertEquals([leases(), files.nodes.has("/b/viewers"), clock.pendingTimers], [0, true, 0]);
});

test("Broadcast asks a drive that hangs for one write of addresses, and goes on when it does", async () => {
  const { parts, clock, files } = setUp();
  const broadcast = await startBroadcast(parts, { input: silent(), name: "Test", directory: "/b", bytesPerS: 1000 });
  let proceed = () => {};
  const gate = new Promise<void>((resolve) => proceed = resolve);
  let writes = 0;
  files.hook = (operation, path) => {
    if (operation !== "replace" || path !== "/b/viewers") return;
    writes++;
    return gate;
  };
  await clock.advanceAsync(60_000);
  assertEquals(writes, 1);
  proceed();
  await settle();
  assertEquals(clock.nextTimerMs, 5000);
  await broadcast.close();
});

test("startBroadcast() continues a broadcast in the shape that it began with, whatever shape a new one would have", async () => {
  const { parts, files } = setUp();
  const start = async () => {
    const broadcast = await startBroadcast(parts, { input: silent(), name: "Test", directory: "/b", bytesPerS: 1000 });
    await broadcast.close();
    return broadcast.metainfo;
  };
  const shapeOf = ({ pieceLengthBytes, substreams }: LiveMetainfo) => [pieceLengthBytes, substreams];
  const begun = await start();
  assertEquals(shapeOf(begun), [32_768, 4]);
  const old = await createLiveTransportFile({ ...begun, pieceLengthBytes: 65_536, substreams: 8 });
  await files.writeFile("/b/broadcast.torrent", old.bytes);
  const continued = await start();
  assertEquals([shapeOf(continued), continued.infohashHex], [[65_536, 8], old.metainfo.infohashHex]);
});

test("SentBroadcasts.close() gives up a start that waits for its source, and ends what runs", async () => {
  const { parts, leases } = setUp();
  const sent = new SentBroadcasts(parts);
  const running = silent();
  await sent.start({ input: running, name: "Runs", directory: null, bytesPerS: 1000 });
  const waiting = silent();
  const starting = assertRejects(
    () => sent.start({ input: waiting, name: "Waits", directory: null }),
    MillraceError,
  );
  await settle();
  await sent.close();
  assertEquals((await starting).code, "closed");
  assertEquals([leases(), running.isOver], [0, true]);
  await until("the source is let go", () => waiting.isOver);
  const late = await assertRejects(
    () => sent.start({ input: silent(), name: "Late", directory: null, bytesPerS: 1000 }),
    MillraceError,
  );
  assertEquals(late.code, "closed");
});

test("startBroadcast() fails as its source does, even one that cannot be let go", async () => {
  const { parts, leases } = setUp();
  const fail = () => Promise.reject(new MillraceError("io", "the drive is gone"));
  const input: LiveInput = { [Symbol.asyncIterator]: () => ({ next: fail, return: fail }) };
  const error = await assertRejects(
    () => startBroadcast(parts, { input, name: "Test", directory: null }),
    MillraceError,
  );
  assertEquals([error.code, leases()], ["io", 0]);
});

test("startBroadcast() gives what was read to find the bitrate the times at which it came", async () => {
  const times: number[] = [];
  const { parts, clock } = setUp(({ header }) => times.push(header.timestampMs));
  const ts = clip("ts-188.ts");
  async function* source(): AsyncGenerator<LiveInputEvent> {
    for (let at = 0; at < ts.length; at += 5000) {
      yield { kind: "data", bytes: ts.slice(at, at + 5000) };
      clock.advance(250);
      await Promise.resolve();
    }
  }
  const startMs = clock.now();
  const broadcast = await startBroadcast(parts, { input: source(), name: "Test", directory: "/b" });
  await broadcast.done;
  assert(times.length > 5, `${times.length} pieces`);
  assertEquals(times[0], startMs);
  const steps = times.slice(1).map((ms, i) => ms - times[i]!);
  assert(steps.every((ms) => ms > 100 && ms <= 1000), `${steps}`);
  await broadcast.close();
});

test("Broadcast lets go what was read to find the bitrate", async () => {
  const { parts, clock } = setUp();
  const ts = clip("ts-188.ts");
  const read: WeakRef<object>[] = [];
  let end = () => {};
  const over = new Promise<void>((resolve) => end = resolve);
  async function* source(): AsyncGenerator<LiveInputEvent> {
    for (let at = 0; at < ts.length; at += 5000) {
      const bytes = ts.slice(at, at + 5000);
      read.push(new WeakRef(bytes));
      yield { kind: "data", bytes };
      clock.advance(250);
      await Promise.resolve();
    }
    await over;
  }
  const broadcast = await startBroadcast(parts, { input: source(), name: "Test", directory: "/b" });
  await until("the first is let go", () => isCollected(read[0]!));
  end();
  await broadcast.done;
  await broadcast.close();
});

test("Broadcast goes on while its disk takes nothing, saves its position later, and takes a higher epoch if it did not", async () => {
  const headers: SignedPiece["header"][] = [];
  const { parts, clock, files } = setUp(({ header }) => headers.push(header));
  const ts = clip("ts-188.ts");
  const full = (operation: string) => {
    if (operation === "replace") throw new MillraceError("disk_full", "no room");
  };
  const start = async (whenRead: (part: number) => void) => {
    async function* source(): AsyncGenerator<LiveInputEvent> {
      for (let part = 0; part < 60; part++) {
        whenRead(part);
        yield { kind: "data", bytes: ts.slice(part * 1880, (part + 1) * 1880) };
        clock.advance(1000);
        await Promise.resolve();
      }
    }
    const first = headers.length;
    clock.advance(1000);
    const broadcast = await startBroadcast(parts, { input: source(), name: "Test", directory: "/b", bytesPerS: 1880 });
    await broadcast.done;
    await broadcast.close();
    return headers.slice(first);
  };
  // It has room again before the end.
  const begun = await start((part) => {
    if (part === 5) files.hook = full;
    if (part === 40) files.hook = () => {};
  });
  assert(begun.length >= 30, `${begun.length} pieces`);
  const { epoch, seq } = begun.at(-1)!;
  const next = await start((part) => part === 5 && (files.hook = full));
  assertEquals([next[0]!.epoch, next[0]!.seq], [epoch, seq + 1]);
  files.hook = () => {};
  const after = await start(() => {});
  assert(after[0]!.epoch > epoch && after[0]!.timestampMs > next.at(-1)!.timestampMs, `${after[0]!.epoch}`);
  assertEquals([after[0]!.seq, after[0]!.flags & FLAG_DISCONTINUITY], [0, FLAG_DISCONTINUITY]);
  for (const all of [begun, next]) assertEquals(new Set(all.map((header) => header.seq)).size, all.length);
});

test("Broadcast joins again ever less often after faults that come again, and says so meanwhile", async () => {
  let over = false;
  let pieces = 0;
  const { parts, clock, endings } = setUp(() => pieces++);
  const source: LiveInput = {
    async *[Symbol.asyncIterator](): AsyncGenerator<LiveInputEvent> {
      const bytes = clip("ts-188.ts");
      for (let at = 0; !over; at = (at + 18_800) % (bytes.length - 18_800)) {
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 100));
        yield { kind: "data", bytes: bytes.slice(at - at % 188, at - at % 188 + 18_800) };
      }
    },
  };
  const broadcast = await startBroadcast(parts, { input: source, name: "n", directory: null, bytesPerS: 188_000 });
  const gapsMs: number[] = [];
  for (let fault = 0; fault < 4; fault++) {
    const before = endings.length;
    const atMs = clock.monotonic();
    endings.at(-1)!.abort();
    assert(
      /a fault of the engine.*joins again in/.test(broadcast.status().message ?? ""),
      String(broadcast.status().message),
    );
    while (endings.length === before) {
      const published = pieces;
      await clock.advanceAsync(1000);
      // Hashing and signing take time that this clock does not know.
      await until("a piece", () => pieces > published);
    }
    gapsMs.push(clock.monotonic() - atMs);
    assert(!/fault/.test(broadcast.status().message ?? ""));
  }
  for (let n = 2; n < gapsMs.length; n++) assert(gapsMs[n]! > gapsMs[n - 1]! * 1.5, gapsMs.join());
  over = true;
  const closing = broadcast.close();
  await clock.advanceAsync(10_000);
  await closing;
});

import { test } from "node:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { loadPorts } from "../../../platform/detect.ts";
import type { ByteSource } from "../../../src/bytes/source.ts";
import { MillraceError } from "../../../src/errors.ts";
import { DoorKeeper } from "../../../src/media/foreign/file-door.ts";
import type { ShareHolder } from "../../../src/bytes/shares.ts";
import {
  EVICT_IDLE_MS,
  ForeignPrograms,
  IDLE_MS,
  inputArguments,
  PATIENCE_MS,
  PLACE_WAIT_MS,
  PROGRAM_LIMITS,
} from "../../../src/media/foreign/programs.ts";
import type { ForeignJob, ForeignRun } from "../../../src/media/model/foreign-reader.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { fakeProcesses } from "../support/fake-processes.ts";
import { NEVER } from "../support/files.ts";

const BYTES = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251);
const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer());

test("Door serves ranges of a file to clients that know its address, until it is closed", async () => {
  const { http } = await loadPorts();
  const keeper = new DoorKeeper(http);
  const door = await keeper.open(new MemorySource(BYTES));
  assertEquals(new URL(door.url).hostname, "127.0.0.1");
  const cases: [range: string | null, status: number, bytes: Uint8Array | null, contentRange: string | null][] = [
    [null, 206, BYTES, "bytes 0-299999/300000"],
    ["bytes=0-", 206, BYTES, "bytes 0-299999/300000"],
    ["bytes=200000-", 206, BYTES.subarray(200_000), "bytes 200000-299999/300000"],
    ["bytes=10-19", 206, BYTES.subarray(10, 20), "bytes 10-19/300000"],
    ["bytes=299999-400000", 206, BYTES.subarray(299_999), "bytes 299999-299999/300000"],
    ["bytes=300000-", 416, null, "bytes */300000"],
    ["bytes=20-10", 416, null, "bytes */300000"],
  ];
  for (const [range, status, bytes, contentRange] of cases) {
    const response = await fetch(door.url, range === null ? {} : { headers: { range } });
    assertEquals([response.status, response.headers.get("content-range")], [status, contentRange], range ?? "none");
    const body = await bytesOf(response);
    if (bytes !== null) assertEquals(body, bytes);
  }
  const other = await keeper.open(new MemorySource(BYTES.subarray(5)));
  assert(other.url !== door.url);
  const guessed = await fetch(new URL("/0123456789abcdef0123456789abcdef", door.url));
  assertEquals(guessed.status, 404);
  await guessed.text();
  door.close();
  const late = await fetch(door.url);
  assertEquals(late.status, 404);
  await late.text();
  other.close();
  other.close();
  // Nobody listens any more.
  await assertRejects(() => fetch(other.url).then((response) => response.text()));
});

test("Door reports whether it waits for the source, and why the source failed", async () => {
  const { http } = await loadPorts();
  const keeper = new DoorKeeper(http);
  let fail = (_error: unknown) => {};
  let ask = () => {};
  const asked = new Promise<void>((resolve) => ask = resolve);
  const source: ByteSource = {
    sizeBytes: 1000,
    read() {
      ask();
      return new Promise((_, reject) => fail = reject);
    },
  };
  const door = await keeper.open(source);
  try {
    const body = fetch(door.url).then((response) => response.text()).catch(() => "broken");
    await asked;
    assertEquals([door.failure, door.isWaiting], [null, true]);
    const error = new MillraceError("timeout", "no peers");
    fail(error);
    assertEquals(await body, "broken");
    assertEquals([door.failure, door.isWaiting], [error, false]);
  } finally {
    door.close();
  }
});

const JOB: ForeignJob = {
  program: "ffmpeg",
  arguments: (url) => [...inputArguments("avi"), "-i", url],
  limitBytes: 1000,
};
const source = new MemorySource(BYTES);

test("inputArguments() forces the format, and leaves no way to another file, address or format", () => {
  const args = inputArguments("avi");
  const after = (name: string) => args[args.indexOf(name) + 1];
  assertEquals([after("-f"), after("-format_whitelist"), after("-protocol_whitelist")], ["avi", "avi", "http,tcp"]);
});

test("ForeignPrograms.open() runs a program, returns its output, and reports its error without the address", async () => {
  const { http } = await loadPorts();
  const { port, started } = fakeProcesses();
  const programs = new ForeignPrograms(port, http, new FakeClock());
  const run = await programs.open(JOB, source, NEVER);
  const url = started[0]!.args.at(-1)!;
  assertEquals((await bytesOf(await fetch(url))).length, BYTES.length);
  started[0]!.write(new Uint8Array([1, 2]));
  assertEquals(await run.next(NEVER), new Uint8Array([1, 2]));
  started[0]!.finish(new Uint8Array([3]), 1, "damaged at the end");
  assertEquals([await run.next(NEVER), await run.next(NEVER)], [new Uint8Array([3]), null]);
  run.close();
  const failing = await programs.open(JOB, source, NEVER);
  started[1]!.finish(new Uint8Array(0), 1, `${started[1]!.args.at(-1)}: Invalid data found\nmore\n`);
  const error = await assertRejects(() => failing.next(NEVER), MillraceError);
  assertEquals([error.code, error.message], ["bad_media", "ffmpeg cannot read the file: the file: Invalid data found"]);
  failing.close();
});

test("ForeignPrograms.open() ends programs that are closed, write too much, or hang, but not those that wait for bytes", async () => {
  const { http } = await loadPorts();
  const { port, started } = fakeProcesses();
  const clock = new FakeClock();
  const programs = new ForeignPrograms(port, http, clock);
  const closed = await programs.open(JOB, source, NEVER);
  closed.close();
  closed.close();
  assert(started[0]!.killed());
  assertEquals((await assertRejects(() => closed.next(NEVER), MillraceError)).code, "closed");

  const flood = await programs.open(JOB, source, NEVER);
  started[1]!.write(new Uint8Array(1001));
  assertEquals((await assertRejects(() => flood.next(NEVER), MillraceError)).code, "bad_media");
  flood.close();

  const hanging = await programs.open(JOB, source, NEVER);
  const late = assertRejects(() => hanging.next(NEVER), MillraceError);
  await settle();
  clock.advance(PATIENCE_MS);
  assertEquals((await late).code, "timeout");
  hanging.close();

  const leaving = new AbortController();
  const left = await programs.open(JOB, source, leaving.signal);
  const gone = assertRejects(() => left.next(leaving.signal), MillraceError);
  leaving.abort(new MillraceError("aborted", "gone"));
  assertEquals((await gone).code, "aborted");
  left.close();

  let answer = (_bytes: Uint8Array) => {};
  let ask = () => {};
  const asked = new Promise<void>((resolve) => ask = resolve);
  const slow: ByteSource = {
    sizeBytes: 4,
    read() {
      ask();
      return new Promise((resolve) => answer = resolve);
    },
  };
  const waiting = await programs.open(JOB, slow, NEVER);
  const body = fetch(started[4]!.args.at(-1)!).then(bytesOf);
  let hasEnded = false;
  const next = waiting.next(NEVER).finally(() => hasEnded = true);
  await asked;
  clock.advance(PATIENCE_MS);
  await settle();
  assertEquals(hasEnded, false);
  answer(new Uint8Array(4));
  assertEquals((await body).length, 4);
  started[4]!.write(new Uint8Array(3));
  assertEquals(await next, new Uint8Array(3));
  waiting.close();
  assertEquals(clock.pendingTimers, 0);
});

test("ForeignPrograms.open() passes on the source's error", async () => {
  const { http } = await loadPorts();
  const { port, started } = fakeProcesses();
  const programs = new ForeignPrograms(port, http, new FakeClock());
  const broken: ByteSource = {
    sizeBytes: 10,
    read: () => Promise.reject(new MillraceError("connection_failed", "no peers")),
  };
  const run = await programs.open(JOB, broken, NEVER);
  await fetch(started[0]!.args.at(-1)!).then((response) => response.text()).catch(() => {});
  started[0]!.finish(new Uint8Array(0), 1, "Input/output error");
  assertEquals((await assertRejects(() => run.next(NEVER), MillraceError)).code, "connection_failed");
  run.close();
});

/** The file, read for another machine. */
const readFor = (name: string): ByteSource => {
  const own: ByteSource = new MemorySource(BYTES);
  own.holder = { kind: "other", name } satisfies ShareHolder;
  return own;
};

test("ForeignPrograms.open() gives one machine its share, and keeps places for programs of this one", async () => {
  const { http } = await loadPorts();
  const { port } = fakeProcesses();
  const clock = new FakeClock();
  const programs = new ForeignPrograms(port, http, clock);
  // Somebody reads from each of them, so that none is idle.
  const reading = async (source: ByteSource, job = JOB) => {
    const run = await programs.open(job, source, NEVER);
    run.next(NEVER).catch(() => {});
    return run;
  };
  const refused = async (source: ByteSource) => {
    const late = assertRejects(() => programs.open(JOB, source, NEVER), MillraceError);
    await settle();
    clock.advance(PLACE_WAIT_MS);
    return await late;
  };
  const { total, reserved, other } = PROGRAM_LIMITS;
  const strangers = [];
  for (let i = 0; i < other; i++) strangers.push(await reading(readFor("10.0.0.66")));
  const { code, message } = await refused(readFor("10.0.0.66"));
  assertEquals([code, message], [
    "too_busy",
    `this address plays ${other} files that only ffmpeg reads already: stop one, or try again later`,
  ]);
  for (let i = other; i < total - reserved; i++) strangers.push(await reading(readFor(`10.0.0.${i}`)));
  assertEquals((await refused(readFor("10.0.0.99"))).message.includes(`${total} files that only ffmpeg reads`), true);
  const own = [];
  for (let i = 0; i < reserved; i++) own.push(await reading(source));
  assertEquals((await refused(source)).code, "too_busy");
  // One that waits gets the place of one that leaves, and one that continues waits on.
  const continued = programs.open({ ...JOB, isContinued: true }, source, NEVER);
  await settle();
  clock.advance(10 * PLACE_WAIT_MS);
  await settle();
  own[0]!.close();
  own.push(await continued);
  for (const run of [...strangers, ...own]) run.close();
  assertEquals(clock.pendingTimers, 0);
});

test("ForeignPrograms sets a program aside that nobody reads from: at once when its place is needed, else in a while", async () => {
  const { http } = await loadPorts();
  const { port, started } = fakeProcesses();
  const clock = new FakeClock();
  const programs = new ForeignPrograms(port, http, clock);
  const runs: ForeignRun[] = [];
  for (let i = 0; i < PROGRAM_LIMITS.total; i++) {
    runs.push(await programs.open(JOB, i < PROGRAM_LIMITS.other ? readFor("10.0.0.66") : source, NEVER));
    clock.advance(1);
  }
  for (const run of runs.slice(1)) run.next(NEVER).catch(() => {});
  clock.advance(EVICT_IDLE_MS);
  const next = await programs.open(JOB, source, NEVER);
  assertEquals(runs.map((run) => run.isSetAside), runs.map((_, i) => i === 0));
  assert(started[0]!.killed());
  assertEquals((await assertRejects(() => runs[0]!.next(NEVER), MillraceError)).code, "closed");
  clock.advance(IDLE_MS - 1);
  assertEquals(next.isSetAside, false);
  clock.advance(1);
  assertEquals([next.isSetAside, started.at(-1)!.killed()], [true, true]);
  for (const run of runs) run.close();
  assertEquals(clock.pendingTimers, 0);
});

test("ForeignPrograms.isAvailable() wants ffmpeg and ffprobe, and asks again until they are there", async () => {
  const { http } = await loadPorts();
  const { port, started, next } = fakeProcesses();
  const there = new Set(["ffmpeg"]);
  const programs = new ForeignPrograms(
    {
      spawn: (command, args) =>
        there.has(command) ? port.spawn(command, args) : Promise.reject(new MillraceError("unavailable", "not found")),
    },
    http,
    new FakeClock(),
  );
  const ask = async () => {
    const spawned = next();
    const answer = programs.isAvailable(NEVER);
    await spawned;
    started.at(-1)!.finish(new Uint8Array(3), 0);
    if (there.size < 2) return await answer;
    await next();
    started.at(-1)!.finish(new Uint8Array(3), 0);
    return await answer;
  };
  assertEquals(await ask(), false);
  there.add("ffprobe");
  assertEquals(await ask(), true);
  assertEquals(await programs.isAvailable(NEVER), true);
  assertEquals(started.map(({ command }) => command), ["ffmpeg", "ffmpeg", "ffprobe"]);
  assertStringIncludes(started[0]!.args.join(" "), "-version");
});

test("ForeignPrograms.isAvailable() does not take a slow machine for missing programs, and asks again", async () => {
  const { http } = await loadPorts();
  const { port, started, next } = fakeProcesses();
  const clock = new FakeClock();
  const programs = new ForeignPrograms(port, http, clock);
  for (const count of [2, 4]) {
    let spawned = next();
    const answer = programs.isAvailable(NEVER);
    await spawned;
    spawned = next();
    clock.advance(5000);
    await spawned;
    started.at(-1)!.finish(new Uint8Array(3), 0);
    assertEquals([await answer, started.length], [true, count]);
  }
});

import { test } from "node:test";
import { assert, assertEquals, assertNotEquals, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { fileBody } from "../../src/playback/output.ts";
import type { StartRequest } from "../../src/playback/start-request.ts";
import { statOf } from "../../src/playback/stat.ts";
import { isCollected } from "../support/collected.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { nextFile } from "../../src/playback/next-file.ts";
import { fakeMetainfo, FakeSwarm, FakeSwarms, makeSessions, startRequest } from "./support.ts";

const BYTES = Uint8Array.from({ length: 300_000 }, (_, i) => i * 7);

function setUp(options: { silent?: boolean; names?: [string, string] } = {}) {
  const [first, second] = options.names ?? ["film.mkv", "extra.mkv"];
  const clock = new FakeClock();
  const swarm = new FakeSwarm([{ name: first, bytes: BYTES }, {
    name: second,
    bytes: BYTES.subarray(0, 1000),
  }], options);
  const swarms = new FakeSwarms(swarm);
  const sessions = makeSessions(clock, swarms);
  const start = async (request: Partial<StartRequest> = {}) => {
    const session = await sessions.start(startRequest(swarm.infohashHex, request));
    assert(session.kind === "file");
    return session;
  };
  return { clock, swarm, swarms, sessions, start };
}

async function readAll(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

test("Sessions.start() joins the session of the same key and makes another for any other", async () => {
  const { start, sessions } = setUp();
  const first = await start();
  assert(/^[0-9a-f]{32}$/.test(first.id));
  assertEquals(await start(), first);
  for (const other of [{ pid: "p" }, { clientHost: "10.0.0.2" }, { fileIndex: 1 }]) {
    assertNotEquals((await start(other)).id, first.id);
  }
  assertEquals(sessions.list().length, 4);
  const transcoded = await start({ pid: "aac", transcode: { mp3: false, ac3: true } });
  assertEquals(await start({ pid: "aac", transcode: { mp3: false, ac3: true } }), transcoded);
  assertNotEquals((await start({ pid: "aac", transcode: { mp3: true, ac3: true } })).id, transcoded.id);
  assertEquals(await start({ pid: "p" }), await start({ pid: "p", clientHost: "10.9.9.9" }));
});

test("PlaybackSession.stop() leaves nothing of the session at a swarm that others still watch", async () => {
  const { start, swarm } = setUp();
  const watched = await Promise.all(["a", "b", "c"].map(async (pid) => new WeakRef(await start({ pid }))));
  // What only garbage collection could lose is lost by now.
  assertEquals(await isCollected(watched[0]!), false);
  for (const session of watched) session.deref()!.stop("test");
  for (const session of watched) assert(await isCollected(session));
  assertEquals(swarm.ending.aborted, false);
});

test("PlaybackSession.stop() disturbs no other session and returns the lease", async () => {
  const { start, swarms, sessions } = setUp();
  const one = await start(), two = await start({ pid: "two" });
  const stream = fileBody(one)!.open(0, null).getReader();
  await stream.read();
  const other = fileBody(two)!.open(0, null);
  one.stop("test");
  one.stop("again");
  await assertRejects(async () => {
    while (!(await stream.read()).done);
  });
  assertEquals(await readAll(other), BYTES);
  assertEquals(swarms.leases, 1);
  assertEquals(sessions.find(one.identity.infohashHex, one.id), null);
  assertEquals(sessions.find(two.identity.infohashHex, two.id), two);
  assertEquals(sessions.find("2".repeat(40), two.id), null);
});

test("PlaybackSession stops itself after 60 s without activity, an hour with use_api_stop", async () => {
  const { start, clock, swarms, swarm } = setUp();
  const plain = await start(), patient = await start({ pid: "api", useApiStop: true });
  clock.advance(50_000);
  plain.touch();
  clock.advance(50_000);
  assertEquals(plain.stopped, false);
  clock.advance(12_000);
  assertEquals([plain.stopped, patient.stopped], [true, false]);
  patient.activityTimeoutMs = 5000;
  clock.advance(7000);
  assertEquals([patient.stopped, swarms.leases, swarm.readers.size], [true, 0, 0]);
});

async function* endless(): AsyncGenerator<Uint8Array> {
  for (let n = 0;; n++) yield await Promise.resolve(Uint8Array.of(n));
}

test("Session.body() keeps its session while its client pauses for up to an hour, then cuts it", async () => {
  const { start, clock, swarm, swarms } = setUp();
  const session = await start();
  const reader = session.stream(endless).getReader();
  assertEquals((await reader.read()).value, Uint8Array.of(0));
  for (const [i, pauseMs] of [80_000, 300_000, 3_599_000].entries()) {
    await settle();
    clock.advance(pauseMs);
    assertEquals([session.stopped, (await reader.read()).value], [false, Uint8Array.of(i + 1)]);
  }
  await settle();
  clock.advance(3_602_000);
  await assertRejects(() => reader.read(), MillraceError, "the client took nothing for 60 minutes");
  assertEquals([session.stopped, swarms.leases, swarm.readers.size], [true, 0, 0]);
});

test("Session.stop() ends a body whose client pauses, so that nothing waits for that client", async () => {
  const { start } = setUp();
  const session = await start();
  const reader = session.stream(endless).getReader();
  await reader.read();
  await settle();
  session.stop("test");
  await assertRejects(() => reader.closed, MillraceError, "the session was stopped: test");
});

test("Sessions.start() fails at its deadline with the reason and frees everything", async () => {
  const { start, clock, swarm, swarms, sessions } = setUp({ silent: true });
  swarm.peers = 0;
  const pending = start();
  await Promise.resolve().then(() => {}).then(() => {});
  clock.advance(20_001);
  const error = await assertRejects(() => pending, MillraceError, "start timeout: no_peers");
  assertEquals(error.code, "start_timeout");
  assertEquals([swarms.leases, sessions.list().length], [0, 0]);
});

test("PlaybackSession.stream() ends a body that gets no byte and says why", async () => {
  const { start, swarm, clock } = setUp();
  const session = await start();
  const reader = fileBody(session)!.open(0, null).getReader();
  await reader.read();
  swarm.silent = true;
  const next = (async () => {
    while (!(await reader.read()).done);
  })();
  await Promise.resolve().then(() => {}).then(() => {}).then(() => {});
  for (let i = 0; i < 21; i++) {
    session.touch();
    clock.advance(1000);
  }
  await assertRejects(() => next, MillraceError, "no data for 20000 ms: no_peers");
  assertEquals(
    statOf(session, { limitBytes: 0, usedBytes: 0 }, "prefuf").error_message,
    "no data for 20000 ms: no_peers",
  );
  for (let i = 0; i < 59; i++) clock.advance(1000);
  assert(!session.stopped, "the reason can be asked for");
  swarm.silent = false;
  await fileBody(session)!.open(0, 10).getReader().read();
  assertEquals(session.problem, null);
});

test("PlaybackSession.stream() releases its reader when the client leaves", async () => {
  const { start, swarm } = setUp();
  const session = await start();
  while (swarm.readers.size > 0) await settle();
  const stream = fileBody(session)!.open(1000, 2000);
  assertEquals(swarm.readers.size, 1);
  await stream.cancel();
  assertEquals(swarm.readers.size, 0);
});

test("PlaybackSession.stream() lets a stalled client hold no more than one chunk", async () => {
  const { start } = setUp();
  const session = await start();
  let made = 0;
  const stream = session.stream(async function* () {
    for (;;) {
      made++;
      yield await Promise.resolve(new Uint8Array(65_536));
    }
  });
  const reader = stream.getReader();
  await reader.read();
  for (let i = 0; i < 50; i++) await Promise.resolve();
  assert(made <= 2, String(made));
  await reader.cancel();
});

test("statOf() carries every field of section 2.3 and our additions", async () => {
  const { start, clock } = setUp();
  const session = await start({ clientSessionId: 77 });
  for (let i = 0; i < 100; i++) await Promise.resolve();
  clock.advance(10);
  const stat = statOf(session, { limitBytes: 1000, usedBytes: 400 }, "prefuf");
  const types: Record<string, string> = {
    status: "string",
    peers: "number",
    speed_down: "number",
    speed_up: "number",
    downloaded: "number",
    uploaded: "number",
    network_monitor_status: "number",
    debug_level: "number",
    disk_cache_stats: "object",
    network_monitor_started: "boolean",
    selected_stream_index: "number",
    total_progress: "number",
    stream_status: "number",
    client_session_id: "number",
    manifest_access_mode: "number",
    playback_session_id: "string",
    is_encrypted: "number",
    is_live: "number",
    infohash: "string",
    selected_file_index: "number",
    progress: "number",
  };
  for (const [name, type] of Object.entries(types)) assertEquals(typeof stat[name], type, name);
  assertEquals([stat.status, stat.progress, stat.client_session_id, stat.speed_down, stat.stall_reason], [
    "dl",
    100,
    77,
    200,
    null,
  ]);
  assertEquals(stat.disk_cache_stats, { avail: 600, disk_cache_limit: 1000, inactive_inuse: 0, active_inuse: 400 });
});

test("PlaybackSession reports prebuffering, playing and download_stopped", async () => {
  const { start, clock } = setUp();
  const session = await start({ stopNotifications: true });
  for (let i = 0; i < 200; i++) await Promise.resolve();
  const signal = new AbortController().signal;
  assertEquals((await session.events.next(clock, signal))?.name, "prebuffering");
  assertEquals((await session.events.next(clock, signal))?.name, "playing");
  const poll = session.events.next(clock, signal);
  clock.advance(15_001);
  assertEquals(await poll, null);
  const last = session.events.next(clock, signal);
  session.stop("stop command");
  assertEquals(await last, { name: "download_stopped", params: { reason: "stop command" } });
  assertEquals(await session.events.next(clock, signal), null);
});

test("PlaybackSession reports stalled with its reason, where content is missing, and playing again", async () => {
  const { start, swarm, clock } = setUp();
  const session = await start();
  const signal = new AbortController().signal;
  for (let name = ""; name !== "playing";) name = (await session.events.next(clock, signal))!.name;
  const reader = fileBody(session)!.open(131_072, null).getReader();
  await reader.read();
  swarm.silent = true;
  swarm.reason = "missing_piece";
  void reader.read().catch(() => {});
  void reader.read().catch(() => {});
  await settle();
  const told: unknown[] = [];
  clock.advance(1000);
  clock.advance(1000);
  for (let i = 0; i < 2; i++) told.push(await session.events.next(clock, signal));
  assertEquals(told, [
    { name: "missing_content", params: { positions: [262_144] } },
    { name: "stalled", params: { reason: "missing_piece" } },
  ]);
  assertEquals(session.stallReason, "missing_piece");
  swarm.silent = false;
  clock.advance(1000);
  assertEquals(await session.events.next(clock, signal), { name: "playing", params: {} });
  await reader.cancel();
});

test("fileBody() yields the available part of a chunk without waiting for the rest", async () => {
  const { start, swarm, clock } = setUp();
  const session = await start();
  const { signal } = new AbortController();
  for (let name = ""; name !== "playing";) name = (await session.events.next(clock, signal))!.name;
  swarm.hereBytes = 141_072;
  const before = swarm.reads.length;
  const reader = fileBody(session)!.open(131_072, null).getReader();
  await reader.read();
  await reader.read();
  await reader.cancel();
  const reads = swarm.reads.slice(before, before + 2).map(({ offset, length }) => [offset, length]);
  assertEquals(reads, [[131_072, 10_000], [141_072, 65_536]]);
});

test("fileBody() waits for no byte of a second piece before it yields the first one's", async () => {
  const { start, swarm, clock } = setUp();
  const session = await start();
  const { signal } = new AbortController();
  for (let name = ""; name !== "playing";) name = (await session.events.next(clock, signal))!.name;
  swarm.hereBytes = 0;
  swarm.pieceBytes = 50_000;
  const before = swarm.reads.length;
  const reader = fileBody(session)!.open(140_000, null).getReader();
  await reader.read();
  await reader.cancel();
  const [first] = swarm.reads.slice(before).map(({ offset, length }) => [offset, length]);
  assertEquals(first, [140_000, 10_000]);
});

test("Sessions.start() with singleReader has each new body end the one before; without, any number read", async () => {
  const { start } = setUp();
  const open = async (singleReader: boolean) => {
    const session = await start({ pid: String(singleReader), singleReader });
    const first = fileBody(session)!.open(0, null).getReader();
    await first.read();
    const second = readAll(fileBody(session)!.open(0, null));
    const rest = (async () => {
      while (!(await first.read()).done);
    })();
    return { rest, second: await second, problem: session.problem };
  };
  const many = await open(false);
  await many.rest;
  assertEquals(many.second, BYTES);
  const single = await open(true);
  await assertRejects(() => single.rest, MillraceError, "another read of the session took over");
  assertEquals([single.second, single.problem], [BYTES, null]);
});

test("Sessions.start() takes the default file from playlist_selected_indexes", async () => {
  const { start } = setUp();
  assertEquals((await start()).file.index, 0);
  assertEquals((await start({ selectedIndexes: [1] })).file.index, 1);
  assertEquals((await start({ selectedIndexes: [1], fileIndex: 0 })).file.index, 0);
  await assertRejects(() => start({ selectedIndexes: [7] }), MillraceError, "playlist_selected_indexes 7");
});

test("PlaybackSession fetches the beginning of the next file near the end of its own (next_file_indexes)", async () => {
  const { start, swarm } = setUp();
  const session = await start({ nextIndexes: [0, 1] });
  const next = () => swarm.reads.filter(({ fileIndex }) => fileIndex === 1);
  await readAll(fileBody(session)!.open(0, 200_000));
  assertEquals(next(), []);
  await readAll(fileBody(session)!.open(200_000, null));
  await readAll(fileBody(session)!.open(200_000, null));
  assertEquals(next(), [{ fileIndex: 1, offset: 0, length: 1000 }]);
  assert(session.file.index === 0);
});

test("nextFile() goes by natural order of the names", () => {
  const names = ["S01E10.mkv", "S01E2.mkv", "S01E1.mkv", "notes.txt"];
  const metainfo = fakeMetainfo(names.map((name) => ({ name, bytes: new Uint8Array(10) })));
  const after = (index: number, indexes: number[]) => nextFile(metainfo, metainfo.files[index]!, indexes)?.name ?? null;
  assertEquals(after(2, [0, 1, 2]), "S01E2.mkv");
  assertEquals(after(1, [0, 1, 2]), "S01E10.mkv");
  assertEquals(after(0, [1, 2]), "S01E1.mkv");
  assertEquals(after(0, [0]), null);
  assertEquals(after(0, [9]), null);
  assertEquals(after(0, []), null);
});

test("Sessions.start() with force_session_restart ends the running session of that key", async () => {
  const { start } = setUp();
  const first = await start();
  const second = await start({ forceRestart: true });
  assertEquals([first.stopped, second.stopped, first.id === second.id], [true, false, false]);
});

test("Sessions.close() ends all and refuses new ones", async () => {
  const { start, sessions, swarms } = setUp();
  const session = await start();
  sessions.close();
  assertEquals([session.stopped, swarms.leases], [true, 0]);
  await assertRejects(() => start(), MillraceError, "shutting down");
});

test("PlaybackSession does not fetch ahead when the swarm has no free reader, and fileBody() says that there are too many", async () => {
  const { start, swarm } = setUp({ names: ["film.mp4", "extra.mkv"] });
  for (const maxReaders of [0, 1]) {
    swarm.maxReaders = maxReaders;
    const session = await start({ nextIndexes: [1], pid: String(maxReaders) });
    await settle();
    assert(!session.prebuffering && session.problem === null);
    if (maxReaders === 0) {
      assertThrows(() => fileBody(session)!.open(0, null), MillraceError, "too many readers");
    } else assertEquals((await readAll(fileBody(session)!.open(0, null))).length, BYTES.length);
    session.stop("test");
  }
});

import { test } from "node:test";
import { assert, assertEquals, assertLess, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { PlaybackEvent } from "../../src/playback/events.ts";
import type { LiveSession } from "../../src/playback/live/live-session.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { WindowFiles } from "../../src/playback/live/window-files.ts";
import { liveInitBody, manifestText, segmentBody } from "../../src/playback/output.ts";
import { statOf } from "../../src/playback/stat.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { checkTs, ticksBetween } from "../support/ts-check.ts";
import { FakeSwarm, FakeSwarms } from "./support.ts";
import { setUp } from "./live-setup.ts";

const NO_CACHE = { limitBytes: 0, usedBytes: 0 };

/** All events that are waiting. */
async function drain(session: LiveSession, clock: FakeClock): Promise<PlaybackEvent[]> {
  const events: PlaybackEvent[] = [];
  for (;;) {
    const over = new AbortController();
    const next = session.events.next(clock, over.signal);
    await settle();
    over.abort();
    const event = await next;
    if (event === null) return events;
    events.push(event);
  }
}

const pos = (session: LiveSession) => statOf(session, NO_CACHE, "prefuf").livepos as Record<string, string>;

test("Sessions.start() of a broadcast joins the session of the same key and shares the swarm with others", async () => {
  const { start, studio, live, sessions, seen } = await setUp();
  await studio.run(4000);
  const one = await start();
  assertEquals(await start(), one);
  const hls = await start({ output: "hls" });
  const other = await start({ pid: "p" });
  assertEquals(new Set([one.id, hls.id, other.id]).size, 3);
  assert(one.stream === hls.stream && one.stream === other.stream);
  assertEquals([live.leases, sessions.list().length, seen.length], [1, 3, 4]);
  one.stop("test");
  hls.stop("test");
  assertEquals(live.leases, 1);
  assertEquals(await start({ output: "file", pid: "p" }), other);
  other.stop("test");
  assertEquals([live.leases, sessions.list().length], [0, 0]);
});

test("Sessions.start() of a broadcast that nobody sends fails in time and says why", async () => {
  const { start, studio, clock, live } = await setUp();
  for (const [peers, joined, reason] of [[0, true, "no_peers"], [2, true, "no_data"], [2, false, "not on the air"]]) {
    studio.peers = peers as number;
    Object.defineProperty(studio.node, "joined", { get: () => joined, configurable: true });
    const failed = assertRejects(() => start(), MillraceError, `start timeout: ${reason}`);
    await studio.silence(20_100);
    await failed;
    assertEquals(live.leases, 0);
  }
  assertEquals(clock.pendingTimers, 0);
});

test("LiveSession reports prebuffering and playing, and stat its status", async () => {
  const { start, studio, clock } = await setUp();
  const starting = start();
  await studio.run(1000);
  const session = await starting;
  const early = statOf(session, NO_CACHE, "prebuf");
  // Pieces are half a second here: with the second of them playing starts.
  assertEquals([early.status, early.is_live, early.peers, early.progress], ["prebuf", 1, 3, 0]);
  await studio.run(2000);
  const playing = statOf(session, NO_CACHE, "prefuf");
  assertEquals([playing.status, playing.progress, playing.stall_reason], ["dl", 100, null]);
  assertEquals([playing.infohash, playing.playback_session_id, playing.client_session_id], [
    studio.metainfo.infohashHex,
    session.id,
    7,
  ]);
  const events = await drain(session, clock);
  assertEquals(events.at(-1), { name: "playing", params: {} });
  assert(events.slice(0, -1).every(({ name }) => name === "prebuffering") && events.length >= 2);
  session.stop("test");
});

test("LiveSession.position follows its reader: Unix seconds as strings in livepos", async () => {
  const { start, studio } = await setUp({ windowMs: 15_000 });
  await studio.run(4000);
  const session = await start();
  const reader = session.openStream().getReader();
  await reader.read();
  await studio.run(14_000);
  await reader.read();
  const told = pos(session);
  const [first, last] = [told.first_ts!, told.last_ts!];
  assertEquals([told.live_first, told.live_last, told.last, told.is_live], [first, last, last, "0"]);
  for (const seconds of [first, last, told.pos!]) assertMatch(seconds, /^\d{10}$/);
  assertLess(Number(first) - 1, Number(told.pos));
  assertLess(Number(told.pos), Number(last));
  assert(Number(told.buffer_pieces) > 2);
  while (pos(session).is_live === "0") await reader.read();
  assertLess(Number(last) - 6, Number(pos(session).pos));
  session.stop("test");
});

test("LiveSession.seek() goes back inside the window and to the edge again, and reports live_changed", async () => {
  const { start, studio, clock } = await setUp();
  await studio.run(4000);
  const session = await start();
  await studio.run(20_000);
  const reader = session.openStream().getReader();
  await reader.read();
  await drain(session, clock);
  const wanted = clock.now() - 15_000;
  session.seek(wanted);
  assertEquals(await drain(session, clock), [{ name: "live_changed", params: { is_live: 0 } }]);
  assertEquals(pos(session).is_live, "0");
  assertLess(Math.abs(Number(pos(session).pos) - wanted / 1000), 2.5);
  await reader.read();
  assertLess(Number(pos(session).pos) - wanted / 1000, 6);
  session.seek(null);
  assertEquals(await drain(session, clock), [{ name: "live_changed", params: { is_live: 1 } }]);
  assertThrows(() => session.seek(clock.now() + 60_000), MillraceError, "invalid pos");
  session.seek(0);
  assertEquals(pos(session).pos, pos(session).first_ts);
  session.stop("test");
});

test("LiveSession reports stalled with its reason, playing when it resumes, and missing_content", async () => {
  const { start, studio, clock } = await setUp();
  await studio.run(4000);
  const session = await start();
  await drain(session, clock);
  studio.peers = 0;
  await studio.silence(4000);
  assertEquals(await drain(session, clock), [{ name: "stalled", params: { reason: "no_peers" } }]);
  assertEquals(statOf(session, NO_CACHE, "prefuf").stall_reason, "no_peers");
  studio.peers = 1;
  await studio.run(3000);
  assertEquals((await drain(session, clock)).at(-1), { name: "playing", params: {} });
  studio.losing = true;
  await studio.run(1500);
  studio.losing = false;
  await studio.run(4000);
  const missing = (await drain(session, clock)).filter(({ name }) => name === "missing_content");
  assertEquals(missing.length, 1);
  const [from, to] = missing[0]!.params.positions as number[];
  assert(to! > from! && to! - from! < 6);
  session.stop("test");
});

test("LiveSession.playlist() slides, begins where the viewer sought, and ends with the broadcast", async () => {
  const { start, studio } = await setUp({ windowMs: 12_000 });
  const none = new AbortController().signal;
  await studio.run(3000);
  const session = await start({ output: "hls" });
  const first = manifestText(session, (n) => `http://x/c/${n}.ts`, none);
  await studio.run(3000);
  const lines = (await first)!.split("\n");
  assertEquals(lines.slice(0, 3), ["#EXTM3U", "#EXT-X-VERSION:3", "#EXT-X-TARGETDURATION:2"]);
  const number = Number(/SEQUENCE:(\d+)/.exec(lines[3]!)![1]);
  assert(lines.includes(`http://x/c/${number}.ts`));
  await studio.run(10_000);
  await studio.publisher.sourceLost();
  await studio.run(10_000);
  const later = (await manifestText(session, String, none))!;
  assert(Number(/SEQUENCE:(\d+)/.exec(later)![1]) > number + 3);
  assertEquals(later.match(/#EXT-X-DISCONTINUITY\n/g)?.length, 1);
  for (const date of later.match(/DATE-TIME:(.*)/g)!) assert(!Number.isNaN(Date.parse(date.slice(10))));
  session.seek(studio.clock.now() - 8000);
  assertMatch((await manifestText(session, String, none))!, /#EXT-X-START:TIME-OFFSET=\d+\.\d{3}\n/);
  await studio.run(12_000);
  assertMatch((await manifestText(session, String, none))!, /#EXT-X-DISCONTINUITY-SEQUENCE:1\n/);
  assert(!later.includes("ENDLIST"));
  await studio.publisher.end();
  await studio.silence(200);
  assertMatch((await manifestText(session, String, none))!, /\n#EXT-X-ENDLIST\n$/);
  assertEquals(await manifestText(await start({ pid: "ts" }), String, none), null);
});

test("LiveSession.playlist() of fragmented MP4 names an init segment, and its segments continue one another", async () => {
  const { start, studio } = await setUp();
  const none = new AbortController().signal;
  await studio.run(3000);
  const session = await start({ output: "hls" });
  await studio.run(8000);
  const list = (await manifestText(session, (n) => `${n}.m4s`, none, 0, (first) => `${first}.mp4`))!;
  const lines = list.split("\n");
  assertEquals(lines[1], "#EXT-X-VERSION:7");
  const numbers = lines.filter((line) => line.endsWith(".m4s")).map((line) => Number.parseInt(line));
  assertEquals(list.match(/#EXT-X-MAP:.*/g), [`#EXT-X-MAP:URI="${numbers[0]}.mp4"`]);
  const bytesOf = async (body: ReadableStream<Uint8Array>) => new Uint8Array(await new Response(body).arrayBuffer());
  const init = await bytesOf(liveInitBody(session, numbers[0]!)!.open(0, null));
  assertEquals(new TextDecoder().decode(init.subarray(4, 8)), "ftyp");
  assertEquals([liveInitBody(session, numbers[1]!), segmentBody(session, 0, true)], [null, null]);
  const times: number[] = [];
  const sounds: number[] = [];
  for (const n of numbers) {
    const bytes = await bytesOf(segmentBody(session, n, true)!.open());
    const at = new TextDecoder("latin1").decode(bytes).indexOf("tfdt");
    times.push(Number(new DataView(bytes.buffer).getBigUint64(at + 8)));
    const beside = new TextDecoder("latin1").decode(bytes).indexOf("tfdt", at + 4);
    sounds.push(Number(new DataView(bytes.buffer).getBigUint64(beside + 8)));
  }
  assert(!numbers.includes(session.stream.segments.at(-1)!.n));
  const { segments } = session.stream;
  for (const [i, time] of times.entries()) {
    if (i > 0) assertEquals(time - times[i - 1]!, Math.round(segments[i - 1]!.durationMs * 90));
    // Its sound begins with its pictures: where the broadcast began, and where its clip begins again, it has none for a while.
    assert(sounds[i]! >= time && sounds[i]! - time < 18_000, `${sounds[i]} ${time}`);
  }
  session.stop("test");
});

test("segmentBody() returns segments of the window with PAT and PMT first, and no others", async () => {
  const { start, studio } = await setUp();
  await studio.run(3000);
  const session = await start({ output: "hls" });
  await studio.run(8000);
  const { n } = session.stream.segments[1]!;
  const body = segmentBody(session, n)!.open();
  const bytes = new Uint8Array(await new Response(body).arrayBuffer());
  assertEquals(checkTs(bytes).problems.filter((problem) => !problem.includes("PCR gap")), []);
  assertEquals([segmentBody(session, n + 99), segmentBody(session, 0)], [null, null]);
  assertEquals(pos(session).is_live, "1");
  session.stop("test");
});

test("LiveSession.openStream() ends cleanly with the broadcast, and with an error when it goes silent", async () => {
  const { start, studio } = await setUp();
  await studio.run(4000);
  const session = await start();
  const whole = new Response(session.openStream()).arrayBuffer();
  await studio.run(2000);
  await studio.publisher.end();
  await studio.silence(200);
  assertLess(40_000, (await whole).byteLength);
  assert(session.stream.ended);

  const silent = await setUp();
  await silent.studio.run(4000);
  const other = await silent.start();
  const body = assertRejects(() => new Response(other.openStream()).arrayBuffer(), Error, "no data for 20000 ms");
  await silent.studio.silence(25_000);
  await body;
  assertMatch(other.problem!.message, /no data/);
});

test("LiveSession stops itself without activity and releases everything", async () => {
  const { start, studio, live, clock, sessions } = await setUp();
  await studio.run(4000);
  const session = await start({ useApiStop: false, stopNotifications: true });
  const reader = session.openStream().getReader();
  await reader.read();
  await reader.cancel();
  await studio.run(62_000);
  assert(session.stopped);
  assertEquals([live.leases, sessions.list().length, clock.pendingTimers], [0, 0, 0]);
  const events = await drain(session, clock);
  assertEquals(events.at(-1), { name: "download_stopped", params: { reason: "inactivity" } });
  assertEquals(session.problem, null);
});

test("LiveSession.openStream() continues where it was after a pause inside the window, and at the edge after a longer one", async () => {
  for (const pauseS of [50, 80, 300]) {
    const { start, studio, clock } = await setUp();
    await studio.run(4000);
    const session = await start({ useApiStop: false });
    const reader = session.openStream().getReader();
    const parts: Uint8Array[] = [];
    const readFor = async (ms: number) => {
      const over = new AbortController();
      const reading = (async () => {
        while (!over.signal.aborted) parts.push((await reader.read()).value!);
      })();
      await studio.run(ms);
      over.abort();
      await studio.run(1000);
      await reading;
    };
    await readFor(5000);
    await studio.run(pauseS * 1000);
    await readFor(5000);
    assert(!session.stopped, "a pause is no inactivity");
    const ts = concatBytes(parts);
    // A picture is cut short where the window has moved on, and the clip has too few clock values where it starts over.
    assertEquals(
      checkTs(ts, { isSegment: false }).problems.filter((one) => !/PCR gap|is short|runs back/.test(one)),
      [],
    );
    const video = checkTs(ts, { isSegment: false }).streams.find(({ pid }) => pid === 0x100)!;
    const jumps = video.units.filter((unit, i) => i > 0 && ticksBetween(unit.dts, video.units[i - 1]!.dts) > 90_000);
    assertEquals(jumps.length, pauseS < 60 ? 0 : 1, `${pauseS} s`);
    assert(jumps.every(({ randomAccess }) => randomAccess));
    assertLess(clock.now() - session.position!.positionMs, pauseS < 60 ? 70_000 : 10_000);
    session.stop("test");
  }
});

test("Sessions.start() of a broadcast that was played before uses no segment number twice", async () => {
  const { start, studio } = await setUp();
  await studio.run(3000);
  const first = await start({ output: "hls" });
  // Numbers begin with the time and grow slower than it: for a while after a start both would meet.
  await studio.run(4000);
  const used = first.stream.segments.map(({ n }) => n);
  first.stop("test");
  const again = await start({ output: "hls" });
  await studio.run(500);
  const numbers = again.stream.segments.map(({ n }) => n);
  assert(numbers.length >= used.length && Math.min(...numbers) > Math.max(...used), `${used} then ${numbers}`);
  again.stop("test");
});

test("Sessions.close() resolves when no window of a broadcast is left on disk", async () => {
  const disk = new MemoryFiles(new FakeClock());
  const log = { log() {}, child: () => log };
  const files = new WindowFiles(disk, "/cache/live-window/x", log);
  const { start, studio, sessions, live } = await setUp({ windowMs: 300_000, files });
  await studio.run(1000);
  const session = await start();
  await studio.run(100_000);
  assertLess(0, session.stream.window.usedDiskBytes);
  let proceed = () => {};
  const gate = new Promise<void>((resolve) => proceed = resolve);
  disk.hook = (operation) => operation === "remove" ? gate : undefined;
  let closed = false;
  const closing = sessions.close().then(() => closed = true);
  await settle();
  assertEquals([session.stopped, live.leases, closed, disk.nodes.size], [true, 0, false, 1]);
  proceed();
  await closing;
  assertEquals([disk.nodes.size, disk.openHandles], [0, 0]);
});

test("Sessions.start() of a magnet finds the broadcast running here, even one that replaced its swarm", async () => {
  class Displaced extends FakeSwarm {
    displace = () => {};
    override metadata(): Promise<never> {
      return new Promise((_, reject) =>
        this.displace = () => reject(new MillraceError("closed", "the swarm was closed"))
      );
    }
  }
  const swarm = new Displaced([]);
  const swarms = new FakeSwarms(swarm);
  const { start, studio } = await setUp({ swarms });
  await studio.run(1000);
  const selector = { kind: "magnet", magnet: "" } as const;
  const waiting = start({ selector });
  await settle();
  const one = await start({ pid: "p" });
  swarm.displace();
  const other = await waiting;
  const third = await start({ selector, pid: "q" });
  assert(one.stream === other.stream && one.stream === third.stream);
  assertEquals(swarms.leases, 0);
});

test("LiveSession reports the end of the broadcast in events, stat and livepos, once", async () => {
  const { start, studio, clock } = await setUp();
  await studio.run(4000);
  const session = await start();
  await drain(session, clock);
  assertEquals(statOf(session, NO_CACHE, "prefuf").error_message, null);
  await studio.publisher.end();
  await studio.silence(3000);
  const told = await drain(session, clock);
  assertEquals(told.filter(({ name }) => name !== "playing"), [
    { name: "live_changed", params: { is_live: 0 } },
    { name: "download_stopped", params: { reason: "the broadcast has ended" } },
  ]);
  const stat = statOf(session, NO_CACHE, "prefuf");
  assertEquals([stat.error_message, stat.stall_reason], ["the broadcast has ended", null]);
  assertEquals((stat.livepos as { is_live: string }).is_live, "0");
  session.stop("inactivity");
  assertEquals(await drain(session, clock), []);
});

test("LiveSession does not blame the peers when the source falls silent", async () => {
  const { start, studio, clock } = await setUp();
  await studio.run(4000);
  const session = await start();
  await drain(session, clock);
  await studio.silence(4000);
  assertEquals(await drain(session, clock), [{ name: "stalled", params: { reason: "source_silent" } }]);
  assertEquals(statOf(session, NO_CACHE, "prefuf").stall_reason, "source_silent");
  session.stop("test");
});

/** Starts with format=json: answered as soon as stream and file are known, while the container is still being opened. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { settle } from "../support/fake-clock.ts";
import { fixture } from "../media/support/files.ts";
import { INFOHASH, playbackApp } from "./playback-app.ts";

const FILM = { name: "film.ts", bytes: fixture("ts-188.ts") };
const PICTURE = { name: "vp9.webm", bytes: fixture("webm-vp9-opus.webm") };
const START = `/engine/manifest.m3u8?infohash=${INFOHASH}&use_api_events=1`;

/** MPEG TS, which cannot carry VP9. */
const AS_TS = "&playlist_output_format_vod=ts";

type App = ReturnType<typeof playbackApp>;

/** Lets promises settle until `holds`. */
async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i++) await settle();
  assert(holds());
}

/** Starts over a swarm that delivers no byte yet. */
async function startSlowly(app: App, more = ""): Promise<Record<string, string>> {
  app.swarm.silentReads = true;
  const timers = app.clock.pendingTimers;
  const answer = app.json(`${START}&format=json${more}`);
  // Timers of a new session: its watchdog and that of what it waits for; of a running one: the start's own two.
  await until(() => app.sessions.list().length > 0 && app.clock.pendingTimers >= timers + 2);
  await app.clock.advanceAsync(251);
  const { response, error } = await answer;
  assertEquals(error, null);
  return response;
}

/** The player asks again as soon as it has its answer; waiting reads then get data. */
function deliver(app: App): void {
  app.swarm.silentReads = false;
  app.swarm.wake();
}

test("format=json answers before the container is open; stat and events say prefuf from 0 on", async () => {
  const app = playbackApp([FILM]);
  const started = await startSlowly(app);
  const stat = (await app.json(started.stat_url!)).response;
  assertEquals([stat.status, stat.progress, stat.error_message], ["prefuf", 0, null]);
  assertEquals((await app.json(started.event_url!)).response, { name: "prebuffering", params: { progress: 0 } });
  // A second start joins it; neither opens the file twice.
  assertEquals((await startSlowly(app)).playback_session_id, started.playback_session_id);
  const playlist = app.get(started.playback_url!);
  await settle();
  deliver(app);
  assertEquals([(await playlist).status, (await playlist).headers.get("content-type")], [
    200,
    "application/vnd.apple.mpegurl",
  ]);
  for (let i = 0; i < 20; i++) await settle();
  assertEquals((await app.json(started.stat_url!)).response.status, "dl");
});

test("a container that turns out unplayable ends the session, and stat, events and URLs say why", async () => {
  const app = playbackApp([PICTURE]);
  const started = await startSlowly(app, AS_TS);
  const waiting = app.get(started.playback_url!);
  deliver(app);
  const refused = await waiting;
  const reason = (await refused.text()).trim();
  assertEquals(refused.status, 415);
  assert(reason.includes("vp9"), reason);
  const stat = (await app.json(started.stat_url!)).response;
  assertEquals([stat.status, stat.error_message], ["prefuf", reason]);
  const told = [];
  for (let i = 0; i < 2; i++) told.push((await app.json(started.event_url!)).response);
  assertEquals(told.at(-1), { name: "download_stopped", params: { reason } });
  // The session holds nothing any more and does not come back, and another start fails at once.
  assertEquals([app.swarms.leases, app.swarm.readers.size], [0, 0]);
  assert((await app.json(`${START}&format=json${AS_TS}`)).error.startsWith(reason));
  assertEquals((await app.get(START + AS_TS)).status, 415);
  await app.clock.advanceAsync(62_000);
  assertEquals((await app.get(started.playback_url!)).status, 404);
  assertEquals(app.sessions.list(), []);
});

test("a container is waited for as long as bytes come, however slowly, and not longer", async () => {
  const app = playbackApp([FILM]);
  const started = await startSlowly(app);
  app.swarm.downloadBytesPerSecond = 0;
  for (let i = 0; i < 10; i++) {
    app.swarm.downloadedBytes += 16_384;
    await app.clock.advanceAsync(19_000);
    assertEquals((await app.json(started.stat_url!)).response.error_message, null);
  }
  const waiting = app.get(started.playback_url!);
  await app.clock.advanceAsync(40_001);
  const late = await waiting;
  assertEquals([late.status, (await late.text()).trim()], [504, "start timeout: slow_peers"]);
  assertEquals((await app.json(started.stat_url!)).response.error_message, "start timeout: slow_peers");
});

test("a start redirects when there is something to read, and fails with slow_peers when too few bytes came", async () => {
  for (const [bytes, reason] of [[16_384, "slow_peers"], [0, "no_data"]] as const) {
    const app = playbackApp([FILM]);
    app.swarm.silentReads = true;
    app.swarm.downloadedBytes = bytes;
    app.swarm.downloadBytesPerSecond = 0;
    const waiting = app.get(START);
    await until(() => app.swarm.readers.size > 0);
    await app.clock.advanceAsync(20_001);
    assertEquals([(await waiting).status, await (await waiting).text()], [504, `start timeout: ${reason}\n`]);
    assertEquals(app.swarms.leases, 0);
  }
});

test("a player that waits for the container keeps the session beyond its activity timeout", async () => {
  const app = playbackApp([FILM]);
  const started = await startSlowly(app);
  const waiting = app.get(started.playback_url!);
  for (let i = 0; i < 9; i++) await app.clock.advanceAsync(19_000);
  deliver(app);
  assertEquals((await waiting).status, 200);
});

test("the end of a transport stream is fetched after its beginning, of a slow swarm and for HLS it is not", async () => {
  const bytes: Uint8Array = new Uint8Array(2_000_000);
  for (let at = 0; at < bytes.length; at += FILM.bytes.length) {
    bytes.set(FILM.bytes.subarray(0, bytes.length - at), at);
  }
  const long = { name: "film.ts", bytes };
  const endReads = async (path: string, slow = false, file = long) => {
    const size = file.bytes.length;
    const app = playbackApp([file]);
    if (slow) app.swarm.silentReads = true;
    const starting = app.json(`/engine/${path}?infohash=${INFOHASH}&format=json`);
    if (slow) {
      await until(() => app.swarm.reads.length > 0);
      await app.clock.advanceAsync(5000);
      deliver(app);
    }
    await starting;
    for (let i = 0; i < 50; i++) await settle();
    const { reads } = app.swarm;
    const from = Math.max(0, size - 262_144);
    // After the first read of the beginning, together with the rest of it.
    return reads.findIndex(({ offset, length }) => length === size - from && offset === from) > 0;
  };
  assertEquals(await endReads("getstream"), true);
  assertEquals(await endReads("getfile"), true);
  assertEquals(await endReads("manifest.m3u8"), false);
  assertEquals(await endReads("getfile", true), false);
  // The end of the file is fetched for films that are converted to a transport stream, but not for streams without a length.
  const remuxed = { name: "mkv-mpeg2.mkv", bytes: fixture("mkv-mpeg2.mkv") };
  assertEquals(await endReads("getstream", false, remuxed), true);
  assertEquals(await endReads("getfile", false, remuxed), false);
  const endless = { name: "mkv-no-cues.mkv", bytes: fixture("mkv-no-cues.mkv") };
  assertEquals(await endReads("getstream", false, endless), false);
});

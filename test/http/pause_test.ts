/** Players that pause: a session that ended by itself comes back only for clients that have its URLs. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { settle } from "../support/fake-clock.ts";
import { fixture } from "../media/support/files.ts";
import { ALLOWED_PAGE, INFOHASH, playbackApp } from "./playback-app.ts";

const FILM = { name: "film.ts", bytes: fixture("ts-188.ts") };
const SOUND = { name: "two.mkv", bytes: fixture("mkv-two-audio.mkv") };
const GONE = "unknown playback session id";
const HOUR_MS = 3_600_000;

type App = ReturnType<typeof playbackApp>;

/** Lets every session end by inactivity. */
async function pause(app: App): Promise<void> {
  await app.clock.advanceAsync(HOUR_MS);
  await settle();
  assertEquals(app.sessions.list(), []);
}

async function segmentsOf(app: App, playlistUrl: string): Promise<string[]> {
  const response = await app.get(playlistUrl);
  assertEquals(response.status, 200);
  return (await response.text()).split("\n").filter((line) => line.startsWith("http"));
}

const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer());

test("segments, playlist, TS and file play on after an hour's pause, under the same id", async () => {
  const app = playbackApp([FILM, SOUND]);
  const more = "_idx=1&preferred_audio_language=deu&transcode_audio=1&transcode_mp3=1&use_api_stop=0";
  const hls = await app.start("/engine/manifest.m3u8", more);
  const [first] = await segmentsOf(app, hls.playback_url!);
  const before = await bytesOf(await app.get(first!));
  await pause(app);
  // A player asks for several at once: one session comes back.
  const answers = await Promise.all([first!, first!, first!].map((url) => app.get(url)));
  for (const answer of answers) assertEquals([answer.status, await bytesOf(answer)], [200, before]);
  assertEquals(app.sessions.list().map(({ id }) => id), [hls.playback_session_id!]);
  assertEquals((await app.json(hls.stat_url!)).response.selected_file_index, 1);
  await pause(app);
  assertEquals(await segmentsOf(app, hls.playback_url!).then((list) => list[0]), first);
  for (const path of ["getstream", "getfile"]) {
    const started = await app.start(`/engine/${path}`, "pid=tv");
    const whole = await bytesOf(await app.get(started.playback_url!));
    await pause(app);
    const range = await app.get(started.playback_url!, { headers: { range: "bytes=376-" } });
    assertEquals([range.status, await bytesOf(range)], [206, whole.slice(376)]);
  }
});

test("a session that was stopped does not come back, whether it still ran or had ended by itself", async () => {
  const app = playbackApp([FILM]);
  for (const pauseFirst of [false, true]) {
    const started = await app.start("/engine/manifest.m3u8");
    const [segment] = await segmentsOf(app, started.playback_url!);
    if (pauseFirst) await pause(app);
    const { error } = await app.json(`${started.command_url}?method=stop`);
    assertEquals(error, pauseFirst ? GONE : null);
    for (const url of [started.playback_url!, segment!]) {
      const answer = await app.get(url);
      assertEquals([answer.status, (await answer.text()).trim()], [404, GONE]);
    }
  }
});

test("stat, cmd and event bring nothing back: a program that polls forever holds no swarm", async () => {
  const app = playbackApp([FILM]);
  const started = await app.start("/engine/manifest.m3u8", "use_api_events=1");
  await pause(app);
  for (const url of [started.stat_url!, started.event_url!, `${started.command_url}?method=set_stream`]) {
    assertEquals(await app.json(url), { response: null, error: GONE });
  }
  assertEquals(app.sessions.list(), []);
});

test("a segment's URL brings a session back only for callers that showed the session's id", async () => {
  const app = playbackApp([FILM]);
  const started = await app.start("/engine/manifest.m3u8");
  const [segment] = await segmentsOf(app, started.playback_url!);
  await pause(app);
  const page = { headers: { origin: ALLOWED_PAGE } };
  const hidden = { headers: { "sec-fetch-site": "cross-site", referer: ALLOWED_PAGE } };
  assertEquals((await app.get(segment!, {}, "10.0.0.9")).status, 404);
  assertEquals((await app.get(segment!, page)).status, 404);
  assertEquals((await app.get(segment!, hidden)).status, 404);
  assertEquals((await app.get(segment!.replace(INFOHASH, "2".repeat(40)))).status, 404);
  assertEquals((await app.get(`${segment}?_idx=1`)).status, 404);
  assertEquals(app.sessions.list(), []);
  // A TV that was handed the playlist holds the id.
  assertEquals((await app.get(started.playback_url!, {}, "10.0.0.9")).status, 200);
  await pause(app);
  assertEquals((await app.get(segment!, {}, "10.0.0.9")).status, 200);
});

test("a session that can't come back says why, and can be tried again", async () => {
  const app = playbackApp([FILM]);
  const started = await app.start("/engine/manifest.m3u8");
  const [segment] = await segmentsOf(app, started.playback_url!);
  await pause(app);
  app.swarm.silent = true;
  const leaving = new AbortController();
  const left = app.get(segment!, { signal: leaving.signal });
  const waiting = app.get(segment!);
  for (let i = 0; i < 4; i++) await settle();
  leaving.abort();
  assert([499, 503].includes((await left).status));
  await app.clock.advanceAsync(20_001);
  const answer = await waiting;
  assertEquals([answer.status, await answer.text()], [504, "start timeout: no_metadata\n"]);
  app.swarm.silent = false;
  assertEquals((await app.get(segment!)).status, 200);
});

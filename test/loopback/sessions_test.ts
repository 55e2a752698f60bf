/** Sessions as clients use them: files, languages, restarts, HEAD, limits. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess, assertNotEquals } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { assertSameBytes, bytesOf, MIB, seedNoise, startSession } from "./support.ts";

let seeder: SeededFiles;
let served: ServedEngine;
before(async () => {
  seeder = await seedFiles(
    ["ts-188.ts", "mp4-end.mp4", "mkv-two-audio.mkv"].map((name, n) => ({
      path: `S01E${[10, 2, 1][n]} ${name}`,
      bytes: clip(name),
    })),
    { name: "season" },
  );
  served = await serveEngine({ startTimeoutMs: 15_000 });
});
after(async () => {
  await served?.close();
  await seeder?.close();
});

const start = (path: string, more: Record<string, string>) =>
  startSession(served, path, { magnet: seeder.magnet, pid: "me", ...more });

test("_idx picks files; their sessions of one client run side by side", async () => {
  const sessions = await Promise.all(["0", "1", "2"].map((_idx) => start("getfile", { _idx })));
  assertEquals(new Set(sessions.map((session) => session.playback_session_id)).size, 3);
  const bodies = await Promise.all(sessions.map((session) => bytesOf(session.playback_url)));
  for (const [n, name] of ["ts-188.ts", "mp4-end.mp4", "mkv-two-audio.mkv"].entries()) {
    assertSameBytes(bodies[n]!, clip(name), name);
  }
  assertEquals(served.engine.swarms.list().length, 1);
});

test("sessions with different preferred_audio_language are served at the same time, each its own language (HLS and TS)", async () => {
  const _idx = "2";
  const variants = ["eng", "deu", "fra"];
  const ts = await Promise.all(
    variants.map((language) => start("getstream", { _idx, preferred_audio_language: language })),
  );
  const bodies = await Promise.all(ts.map((session) => bytesOf(session.playback_url)));
  const again = await Promise.all(ts.map((session) => bytesOf(session.playback_url)));
  bodies.forEach((body, n) => assertSameBytes(body, again[n]!));
  const hls = await Promise.all(
    variants.map((language) => start("manifest.m3u8", { _idx, preferred_audio_language: language })),
  );
  const first = await Promise.all(hls.map(async (session) => {
    const playlist = await (await fetch(session.playback_url)).text();
    return await bytesOf(playlist.split("\n").find((line) => line.startsWith("http"))!);
  }));
  const distinct = (all: Uint8Array[]) => new Set(all.map((bytes) => bytes.join())).size;
  assert(distinct(bodies) >= 2, "the languages differ");
  assertEquals(distinct(first), distinct(bodies));
});

test("force_session_restart ends the running session of that key and no other", async () => {
  const first = await start("getstream", { pid: "a" });
  const other = await start("getstream", { pid: "b" });
  assertEquals((await start("getstream", { pid: "a" })).playback_session_id, first.playback_session_id);
  const second = await start("getstream", { pid: "a", force_session_restart: "1" });
  assertNotEquals(second.playback_session_id, first.playback_session_id);
  assertEquals((await fetch(first.playback_url)).status, 404);
  assertEquals((await fetch(other.playback_url, { method: "HEAD" })).status, 200);
});

test("HEAD answers what GET would, without a body", async () => {
  const ts = await start("getstream", { pid: "head" });
  const file = await start("getfile", { pid: "head" });
  const hls = await start("manifest.m3u8", { pid: "head" });
  const segment = (await (await fetch(hls.playback_url)).text()).split("\n").find((line) => line.startsWith("http"))!;
  for (const url of [ts.playback_url, file.playback_url, hls.playback_url, segment, ts.stat_url]) {
    const head = await fetch(url, { method: "HEAD" });
    const get = await fetch(url);
    const bytes = (await get.arrayBuffer()).byteLength;
    assertEquals([head.status, head.headers.get("content-type")], [get.status, get.headers.get("content-type")], url);
    assertEquals((await head.arrayBuffer()).byteLength, 0);
    const length = head.headers.get("content-length");
    if (url === ts.playback_url || url === file.playback_url) assertEquals(Number(length), bytes);
  }
});

test("download and upload limits hold, for the engine that has them", async () => {
  const open = await seedNoise(3 * MIB);
  const limited = await seedNoise(3 * MIB, { seed: 8, engine: { uploadLimitBytesPerSecond: 2 * MIB } });
  const player = await serveEngine({ downloadLimitBytesPerSecond: 2 * MIB });
  const free = await serveEngine();
  const secondsOf = async (engine: ServedEngine, from: typeof open) => {
    const before = performance.now();
    const started = await startSession(engine, "getfile", { magnet: from.magnet });
    assertSameBytes(await bytesOf(started.playback_url), from.data);
    return (performance.now() - before) / 1000;
  };
  try {
    const seconds = await Promise.all([secondsOf(player, open), secondsOf(free, limited)]);
    // 1.5 s at the limit, plus what the bucket holds and what is under way when it is empty.
    for (const one of seconds) assert(one > 0.6 && one < 6, `3 MiB at 2 MiB/s in ${one} s`);
    assertLess(await secondsOf(free, open), Math.min(...seconds), "without limits it is faster");
  } finally {
    await Promise.all([open, limited, player, free].map((engine) => engine.close()));
  }
});

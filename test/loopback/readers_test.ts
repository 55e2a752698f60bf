/** Several readers of one stream: fair, independent, and gone when they leave. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { assertSameBytes, bytesOf, MIB, type SeededNoise, seedNoise, startSession } from "./support.ts";

const SIZE = 48 * MIB;
let seeder: SeededNoise;
before(async () => {
  seeder = await seedNoise(SIZE);
});
after(() => seeder?.close());

const received = (served: ServedEngine) => served.engine.swarms.list()[0]?.status().downloadedBytes ?? 0;

test("five sessions on different positions are all served", async () => {
  const served = await serveEngine({ downloadLimitBytesPerSecond: 24 * MIB });
  try {
    const sessions = await Promise.all(
      [0, 1, 2, 3, 4].map((n) => startSession(served, "getfile", { magnet: seeder.magnet, pid: `at ${n}` })),
    );
    const ends = await Promise.all(sessions.map(async (session, n) => {
      const from = n * 9 * MIB;
      assertSameBytes(
        await bytesOf(session.playback_url, from, from + 2 * MIB),
        seeder.data.subarray(from, from + 2 * MIB),
      );
      return performance.now();
    }));
    assertLess(Math.max(...ends) - Math.min(...ends), 3_000, "nobody waits until the others have read ahead");
    assertEquals(served.engine.swarms.list().length, 1);
  } finally {
    await served.close();
  }
});

test("TS and HLS of one file play together from one swarm, in any order of segments", async () => {
  const bytes = clip("mkv-two-audio.mkv");
  const files: SeededFiles = await seedFiles([{ path: "clip.mkv", bytes }], { pieceLengthBytes: 16_384 });
  const served = await serveEngine({ downloadLimitBytesPerSecond: 4 * MIB });
  try {
    const [ts, again, hls] = await Promise.all([
      startSession(served, "getstream", { magnet: files.magnet, pid: "1" }),
      startSession(served, "getstream", { magnet: files.magnet, pid: "2" }),
      startSession(served, "manifest.m3u8", { magnet: files.magnet, pid: "3" }),
    ]);
    const playlist = await (await fetch(hls.playback_url)).text();
    const urls = playlist.split("\n").filter((line) => line.startsWith("http")).reverse();
    const [whole, other, ...segments] = await Promise.all(
      [ts.playback_url, again.playback_url, ...urls].map((url) => bytesOf(url)),
    );
    assertSameBytes(whole!, other!);
    assert(segments.length > 0 && segments.every((segment) => segment.length % 188 === 0 && segment[0] === 0x47));
    assertLess(received(served), bytes.length + 16_384 + 1);
  } finally {
    await served.close();
    await files.close();
  }
});

test("a client that leaves in the middle ends its demand: traffic stops", async () => {
  const served = await serveEngine({ downloadLimitBytesPerSecond: 4 * MIB });
  try {
    const started = await startSession(served, "getfile", { magnet: seeder.magnet, pid: "leaving" });
    const leaving = new AbortController();
    const response = await fetch(started.playback_url, { signal: leaving.signal });
    const reader = response.body!.getReader();
    for (let bytes = 0; bytes < MIB;) bytes += (await reader.read()).value?.length ?? 0;
    leaving.abort();
    await reader.closed.catch(() => {});
    let stillMs = performance.now(), last = received(served);
    await until("nothing more comes for a second", () => {
      const now = received(served);
      if (now !== last) stillMs = performance.now();
      last = now;
      return performance.now() - stillMs > 1_000;
    }, 8_000);
    assertLess(last, 14 * MIB, "less than the read-ahead of a reader that stays");
    assertSameBytes(await bytesOf(started.playback_url, 0, MIB), seeder.data.subarray(0, MIB), "the session lives on");
  } finally {
    await served.close();
  }
});

/** A viewer pauses, the engine is restarted on the same state directory, the viewer goes on. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { seedFiles, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { assertSameBytes, bytesOf, command, startSession } from "./support.ts";

test("players go on where they paused after a restart of the engine, but not after stop", async () => {
  const seeder = await seedFiles([
    { path: "a.ts", bytes: clip("ts-188.ts") },
    { path: "b.mkv", bytes: clip("mkv-two-audio.mkv") },
  ], { name: "season" });
  const state = await temporaryDirectory();
  const options = { stateDir: state.path, startTimeoutMs: 15_000 };
  let served = await serveEngine(options);
  /** The same address in the next run, which has another port. */
  const now = (url: string) => url.replace(/^http:\/\/[^/]+/, served.url);
  try {
    const query = { magnet: seeder.magnet, _idx: "1", preferred_audio_language: "deu" };
    const hls = await startSession(served, "manifest.m3u8", query);
    const playlist = await (await fetch(hls.playback_url)).text();
    const segments = playlist.split("\n").filter((line) => line.startsWith("http"));
    const last = await bytesOf(segments.at(-1)!);
    const ts = await startSession(served, "getstream", query);
    const whole = await bytesOf(ts.playback_url);
    const stopped = await startSession(served, "getfile", query);
    await command(stopped, "method=stop");
    await served.close();
    served = await serveEngine(options);
    assertSameBytes(await bytesOf(now(segments.at(-1)!)), last, "segment");
    assertSameBytes(await bytesOf(now(ts.playback_url), 188, whole.length), whole.subarray(188), "TS");
    assertEquals(
      await (await fetch(now(hls.playback_url))).text(),
      now(playlist).replaceAll(/http:\/\/[^/]+/g, served.url),
    );
    assertEquals((await fetch(now(stopped.playback_url))).status, 404);
  } finally {
    await served.close();
    await seeder.close();
    await state.remove();
  }
});

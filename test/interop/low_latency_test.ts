/** Low-latency HLS of a broadcast in a player that knows no parts. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { onAir } from "../support/live.ts";
import { run } from "../support/process.ts";

test("ffmpeg plays the segments of a low-latency playlist without an error", async () => {
  const air = await onAir({ viewer: { lowLatency: true } });
  try {
    const query = new URLSearchParams({ magnet: air.magnet, format: "json", playlist_output_format_live: "fmp4" });
    const { response, error } = await (await fetch(`${air.viewer.url}/engine/manifest.m3u8?${query}`)).json();
    assertEquals(error, null);
    const text = await (await fetch(response.playback_url)).text();
    assert(text.includes("#EXT-X-PART:"), text);
    // It warns of an init segment that it has read before, and skips it.
    const args = ["-v", "error", "-i", response.playback_url, "-t", "6", "-f", "framehash", "-"];
    const { code, stdout, stderr } = await run("ffmpeg", args, { timeoutMs: 60_000 });
    assertEquals([code, stderr], [0, ""]);
    // 25 pictures a second, and 47 frames of sound.
    const frames = new TextDecoder().decode(stdout).split("\n").filter((line) => /^[01],/.test(line));
    assert(frames.filter((line) => line.startsWith("0,")).length >= 140, `${frames.length} frames`);
  } finally {
    await air.close();
  }
});

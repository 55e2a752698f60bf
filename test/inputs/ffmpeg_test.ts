import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { ffmpegEvents } from "../../src/inputs/ffmpeg.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** Reads `url` for `seconds` through an ffmpeg that always fails; returns its arguments, and how often it was started. */
async function tried(url: string, seconds = 1): Promise<{ args: string; count: number }> {
  const clock = new FakeClock();
  let args = "";
  let count = 0;
  const spawn = (_: string, given: readonly string[]) => {
    args = given.join(" ");
    count++;
    return Promise.reject(new MillraceError("connection_failed", "it failed"));
  };
  const over = new AbortController();
  const events = ffmpegEvents({ clock, processes: { spawn } }, { url, before: [], once: false }, over.signal);
  const reading = (async () => {
    for await (const event of events) assertEquals(event.kind, "lost");
  })();
  const ended = reading.catch(() => {});
  for (let ms = 0; ms < 1000 * seconds; ms += 250) await clock.advanceAsync(250);
  over.abort();
  await ended;
  return { args, count };
}

test("ffmpegEvents() listens again within half a second where senders come to us, and calls ever less often", async () => {
  for (const url of ["rtmp://127.0.0.1/live/k?listen=1", "rtsp://127.0.0.1/live?listen=1", "srt://:9000"]) {
    const { count } = await tried(url, 20);
    assert(count > 15, `${url}: ${count}`);
  }
  for (const url of ["rtmp://h/live/k", "rtsp://h/live", "srt://h:9000"]) {
    const { count } = await tried(url, 20);
    assert(count < 8, `${url}: ${count}`);
  }
});

test("ffmpegEvents() tells ffmpeg how to listen", async () => {
  const table: readonly (readonly [string, string])[] = [
    ["rtmp://127.0.0.1/live/k?listen=1", "-listen 1 -i rtmp://127.0.0.1/live/k "],
    ["rtsp://127.0.0.1/live?listen=1", "-fflags nobuffer -rtsp_flags listen -i rtsp://127.0.0.1/live "],
    ["rtsp://h/live?a=1", "-fflags nobuffer -rtsp_flags prefer_tcp -i rtsp://h/live?a=1 "],
    ["srt://:9000", "-i srt://:9000?mode=listener "],
    ["srt://:9000?passphrase=0123456789", "-i srt://:9000?passphrase=0123456789&mode=listener "],
    ["srt://h:9000?mode=listener", "-i srt://h:9000?mode=listener "],
    ["srt://:9000?mode=caller", "-i srt://:9000?mode=caller "],
  ];
  for (const [url, expected] of table) assert((await tried(url)).args.includes(expected), url);
});

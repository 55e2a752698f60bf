import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { reachArguments } from "../../src/inputs/ffmpeg-reach.ts";

test("reachArguments() allows ffmpeg only the protocols that a source's scheme needs, and files only for files", () => {
  const protocols = (url: string) => reachArguments(url, false)[1]!.split(",");
  const table: [string, string[]][] = [
    ["/films/a.avi", ["file", "crypto", "data"]],
    ["file:/films/a.avi", ["file", "crypto", "data"]],
    ["C:/films/a.avi", ["file", "crypto", "data"]],
    ["list.ffconcat", ["file", "crypto", "data"]],
    ["RTMP://h/app/key", ["rtmp", "tcp"]],
    ["rtmps://h/app/key", ["rtmps", "rtmp", "tls", "tcp"]],
    ["srt://h:9000?mode=caller", ["srt", "udp"]],
    ["rtsp://user:word@h/1", ["rtsp", "rtp", "srtp", "udp", "tcp"]],
    ["concat:a.ts|b.ts", ["concat", "file"]],
    ["unix:/run/a.sock", ["unix"]],
    ["constructor://h", ["constructor"]],
  ];
  for (const [url, expected] of table) assertEquals(protocols(url), expected, url);
  for (const url of ["http://h/a.m3u8", "https://h/a.mpd", "hls+http://h/a", "rtsp://h/1", "srt://h:1", "udp://h:1"]) {
    assert(!protocols(url).includes("file"), url);
  }
});

test("reachArguments() with onlyMedia leaves out the formats that name other addresses", () => {
  const [, , option, formats] = reachArguments("file:/a.avi", true);
  assertEquals(option, "-format_whitelist");
  const allowed = formats!.split(",");
  for (const name of ["avi", "mov", "matroska", "mpegts", "flac"]) assert(allowed.includes(name), name);
  for (const name of ["hls", "dash", "concat", "sdp", "imf", "rtsp", "tee", "image2", "lavfi", "webm_dash_manifest"]) {
    assert(!allowed.includes(name), name);
  }
  assertEquals(new Set(allowed).size, allowed.length);
});

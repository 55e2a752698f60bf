import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { reachArguments } from "../../src/inputs/ffmpeg-reach.ts";
import { openToAll } from "../../src/inputs/ffmpeg.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { hear, OPTIONS, sourcePorts } from "./support.ts";

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

test("openToAll() warns of addresses on which anybody may become the source", async () => {
  const open = [
    "rtmp://0.0.0.0:1935/live/key?listen=1",
    "rtmp://192.0.2.1/live/key?listen=1",
    "rtsp://0.0.0.0:8554/live?listen=1",
    "srt://:9000",
    "srt://0.0.0.0:9000?mode=listener",
  ];
  const closed = [
    "rtmp://127.0.0.1:1935/live/key?listen=1",
    "rtmp://localhost/live/key?listen=1",
    "rtsp://127.0.0.1:8554/live?listen=1",
    "rtsp://camera.example/live",
    "rtmp://server.example/live/key",
    "srt://:9000?passphrase=0123456789",
    "srt://server.example:9000",
    "https://server.example/?listen=1",
  ];
  for (const url of open) assertMatch(openToAll(url) ?? "", /whoever reaches .* can send/, url);
  for (const url of closed) assertEquals(openToAll(url), null, url);
  const ports = await sourcePorts();
  await openSource(ports, open[0]!, OPTIONS);
  assertEquals(ports.lines.map(({ level }) => level), ["warn"]);
  assertEquals(ports.lines[0]!.message.includes("live/key"), false, ports.lines[0]!.message);
});

test("an rtsp:// source asks for TCP first, and does not refuse a server that has UDP alone", async () => {
  let asked: readonly string[] = [];
  const processes = {
    spawn: (_: string, args: readonly string[]) => {
      asked = args;
      return Promise.reject(new MillraceError("unavailable", "none here"));
    },
  };
  const { input } = await openSource({ ...await sourcePorts(), processes }, "rtsp://127.0.0.1/x", OPTIONS);
  await assertRejects(() => hear(input), MillraceError, "ffmpeg");
  assertEquals(asked.slice(asked.indexOf("-rtsp_flags"), asked.indexOf("-map")), [
    "-rtsp_flags",
    "prefer_tcp",
    "-i",
    "rtsp://127.0.0.1/x",
  ]);
  assertEquals(asked.includes("-rtsp_transport"), false);
});

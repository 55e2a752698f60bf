/** Players that we didn't write play a broadcast, from all outputs, while it is on the air. */
import process from "node:process";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { temporaryDirectory } from "../support/engine.ts";
import { type OnAir, onAir } from "../support/live.ts";
import { run } from "../support/process.ts";

/** Each player watches for this long, s. */
const WATCH_S = 20;

let air: OnAir;
let directory: { path: string; remove(): Promise<void> };
before(async () => {
  directory = await temporaryDirectory();
  air = await onAir({ directory: directory.path });
});
after(async () => {
  await air?.close();
  await directory?.remove();
});

/** MPEG TS, and HLS of both formats. */
const OUTPUTS = ["getstream?", "manifest.m3u8?", "manifest.m3u8?playlist_output_format_live=fmp4&"] as const;
const address = (path: string, pid: string) =>
  `${air.viewer.url}/engine/${path}${new URLSearchParams({ magnet: air.magnet, pid })}`;

/** ffmpeg reads the init segment again with every playlist, and notes that it has it. */
const READ_AGAIN = /Found duplicated MOOV Atom|Last message repeated/;
const complaintsIn = (stderr: string) => stderr.split("\n").filter((line) => line !== "" && !READ_AGAIN.test(line));

test("ffmpeg decodes all outputs of a broadcast for 20 s and has nothing to say", async () => {
  await Promise.all(OUTPUTS.map(async (path) => {
    const input = ["-v", "warning", "-nostdin", "-xerror", "-i", address(path, "ffmpeg")];
    const { code, stderr } = await run("ffmpeg", [...input, "-t", String(WATCH_S), "-f", "null", "-"]);
    assertEquals([code, complaintsIn(stderr)], [0, []], path);
  }));
});

test("ffmpeg decodes all outputs through restarts of the broadcaster and has nothing to say", async () => {
  const decoding = OUTPUTS.map(async (path) => {
    const input = ["-v", "warning", "-nostdin", "-i", address(path, "restarts"), "-t", "18", "-f", "null", "-"];
    const { code, stderr } = await run("ffmpeg", input);
    // Where the clip starts over, ffmpeg appends its times to the old ones and may be off by a few pictures.
    const complaints = complaintsIn(stderr).filter((line) => !/non monotonically increasing dts/.test(line));
    assertEquals([code, complaints], [0, []], path);
  });
  for (let i = 0; i < 2; i++) {
    await new Promise((resolve) => setTimeout(resolve, 4300));
    await air.restart(700);
  }
  await Promise.all(decoding);
});

test("mpv plays all outputs of a broadcast", async () => {
  const quiet = ["--no-config", "--vo=null", "--ao=null", "--msg-level=all=warn,cplayer=info", "--network-timeout=20"];
  await Promise.all(OUTPUTS.map(async (path) => {
    const { code, text } = await run("mpv", [...quiet, "--length=12", address(path, "mpv")]);
    assertEquals(code, 0, `${path}: ${text.slice(-800)}`);
    assertMatch(text, /Exiting\.\.\. \(End of file\)/, path);
    // Counters, times and starts are right: no demuxer or decoder complains.
    // The clip has no sound for an eighth of a second where it begins again.
    const complaints = text.split("\n").filter((line) =>
      /\b(error|invalid|corrupt|discontinu)/i.test(line) && !/Invalid audio PTS/.test(line)
    );
    assertEquals(complaints, [], path);
  }));
});

test("VLC plays all outputs of a broadcast", async () => {
  // VLC refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const sandbox = isRoot
    ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/tmp", "cvlc"]
    : ["cvlc"];
  const options = ["-vv", "--no-plugins-cache", "--vout=dummy", "--aout=dummy", "--run-time=12", "--play-and-exit"];
  await Promise.all(OUTPUTS.map(async (path) => {
    const [command, ...args] = [...sandbox, ...options, address(path, "vlc"), "vlc://quit"];
    const { code, stderr } = await run(command!, args);
    assertEquals(code, 0, `${path}: ${stderr.slice(-2000)}`);
    assertMatch(
      stderr,
      /Received first picture|VoutDisplayEvent|first picture|using video output module|Buffering 100%/i,
      path,
    );
    const complaints = stderr.split("\n").filter((line) =>
      /(ts|packetizer|avcodec|main) .*(error|warning)/.test(line) &&
      /discontinuity|corrupt|late picture|invalid|lost/i.test(line)
    );
    assertEquals(complaints, [], path);
    assert(!/libdvbpsi error/.test(stderr), path);
  }));
});

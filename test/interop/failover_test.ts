/** Players that we did not write continue when one broadcast of a channel is replaced by another. */
import { chmod, writeFile } from "node:fs/promises";
import process from "node:process";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { temporaryDirectory } from "../support/engine.ts";
import { recordFailover } from "../support/failover.ts";
import { run } from "../support/process.ts";

/** User id of "nobody": VLC refuses to run as root. */
const UNPRIVILEGED = ["--reuid=65534", "--regid=65534", "--clear-groups"];

async function recorded(clip: string, body: (path: string, bytes: number) => Promise<void>): Promise<void> {
  const directory = await temporaryDirectory();
  try {
    await chmod(directory.path, 0o755);
    const path = `${directory.path}/channel.ts`;
    const ts = await recordFailover(clip);
    await writeFile(path, ts);
    await body(path, ts.length);
  } finally {
    await directory.remove();
  }
}

/** How many seconds of a stream ffmpeg has decoded, from its output. */
async function decodedSeconds(path: string, stream: "v" | "a"): Promise<number> {
  const { code, stderr } = await run("ffmpeg", ["-nostdin", "-i", path, "-map", `0:${stream}`, "-f", "null", "-"]);
  assertEquals(code, 0, stderr.slice(-1000));
  const [, h, m, s] = [...stderr.matchAll(/time=(\d+):(\d+):([\d.]+)/g)].at(-1)!;
  return Number(h) * 3600 + Number(m) * 60 + Number(s);
}

test("ffmpeg and mpv decode picture and sound of both broadcasts of a channel", async () => {
  await recorded("ts-wrap.ts", async (path) => {
    const { stderr } = await run("ffmpeg", ["-v", "error", "-nostdin", "-i", path, "-map", "0:v", "-f", "null", "-"]);
    assertEquals(stderr.split("\n").filter((line) => /decod|no frame/i.test(line)), []);
    // The first broadcast ends after some three seconds.
    for (const stream of ["v", "a"] as const) {
      const seconds = await decodedSeconds(path, stream);
      assert(seconds > 8, `${stream}: ${seconds} s`);
    }
    const quiet = ["--no-config", "--vo=null", "--ao=null", "--ao-null-untimed=yes", "--untimed"];
    const mpv = await run("mpv", [...quiet, "--msg-level=all=warn,cplayer=info", path]);
    assertEquals([mpv.code, /End of file/.test(mpv.text)], [0, true], mpv.text.slice(-500));
    assertEquals(/no frame|Error while decoding/.test(mpv.text), false, mpv.text.slice(-500));
  });
});

test("VLC continues even when the other broadcast has other codecs", async () => {
  await recorded("ts-mpeg2.ts", async (path) => {
    const vlc = ["cvlc", "-I", "dummy", "--no-media-library", "-vv", "--vout=dummy", "--aout=dummy", "--play-and-exit"];
    const command = ["env", "HOME=/nonexistent", ...vlc, path];
    const [program, ...args] = process.getuid?.() === 0 ? ["setpriv", ...UNPRIVILEGED, ...command] : command;
    const { code, stderr } = await run(program!, args, { timeoutMs: 60_000 });
    assertEquals(code, 0, stderr.slice(-1000));
    const started = [...stderr.matchAll(/codec \((\w+)\) started/g)].map(([, codec]) => codec);
    assert(started.includes("h264") && started.at(-1) === "mpeg2video", `${started}`);
  });
});

/** What ffmpeg sends we broadcast, and what we loop or broadcast ffmpeg decodes. Needs ffmpeg and ffprobe. */
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { runtimeName } from "../../platform/detect.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { dataOf, hear, losses, OPTIONS, sourcePorts } from "../inputs/support.ts";
import { serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clipPath } from "../support/fixtures.ts";
import { run, start } from "../support/process.ts";

/** Seconds of a broadcast that are watched: more with MILLRACE_WATCH_S. */
const WATCH_S = Number(process.env["MILLRACE_WATCH_S"] ?? 15);

/** What ffmpeg says while it decodes `input`. */
async function complaints(input: string, ...options: string[]): Promise<string> {
  const args = ["-v", "warning", "-nostdin", "-xerror", "-i", input, ...options, "-f", "null", "-"];
  const { code, stderr } = await run("ffmpeg", args, { timeoutMs: 60_000 + 1000 * WATCH_S });
  assertEquals(code, 0, stderr);
  return stderr;
}

/** DTS of each packet, by stream, seconds. */
async function times(input: string): Promise<Map<string, number[]>> {
  const args = ["-v", "error", "-show_entries", "packet=stream_index,dts_time", "-of", "csv=p=0", input];
  const found = new Map<string, number[]>();
  for (const line of (await run("ffprobe", args)).text.split("\n")) {
    const [stream, dts] = line.split(",");
    if (dts !== undefined && dts !== "N/A") found.set(stream!, [...found.get(stream!) ?? [], Number(dts)]);
  }
  return found;
}

for (const name of ["ts-188.ts", "ts-192.m2ts", "ts-hevc.ts", "ts-wrap.ts", "mp4-front.mp4", "mkv-cues.mkv"]) {
  test(`ffmpeg decodes ${name} looped three times without a complaint, its times never stepping back`, async () => {
    const ports = await sourcePorts(50);
    const once = dataOf(await hear((await openSource(ports, clipPath(name), { ...OPTIONS, once: true })).input));
    const { input } = await openSource(ports, clipPath(name), OPTIONS);
    const looped = dataOf(await hear(input, (_, bytes) => bytes >= 3 * once.length)).subarray(0, 3 * once.length);
    const directory = await temporaryDirectory();
    try {
      const [file, single] = [`${directory.path}/looped.ts`, `${directory.path}/once.ts`];
      await writeFile(file, looped);
      await writeFile(single, once);
      assertEquals(await complaints(file), await complaints(single));
      const [all, first] = [await times(file), await times(single)];
      assertEquals(all.size, first.size);
      for (const [stream, dts] of all) {
        const steps = dts.slice(1).map((time, i) => time - dts[i]!);
        assert(Math.min(...steps) > 0, `${stream} steps back by ${Math.min(...steps)} s`);
        assert(Math.max(...steps) < 1, `${stream} jumps by ${Math.max(...steps)} s`);
        assert(Math.abs(dts.length - 3 * first.get(stream)!.length) <= 3);
      }
    } finally {
      await directory.remove();
    }
  });
}

test("a file with Opus sound is looped with AAC, which ffmpeg decodes without a complaint", async () => {
  const ports = await sourcePorts(4);
  const directory = await temporaryDirectory();
  try {
    const [opus, heardPath] = [`${directory.path}/opus.mkv`, `${directory.path}/heard.ts`];
    const make = ["-v", "error", "-i", clipPath("mkv-cues.mkv"), "-c:v", "copy", "-c:a", "libopus", opus];
    assertEquals((await run("ffmpeg", make)).stderr, "");
    const { input, bytesPerS } = await openSource(ports, opus, OPTIONS);
    const heard = await hear(input, (_, bytes) => bytes > 10 * bytesPerS!);
    assertEquals([losses(heard), ports.lines], [[], []]);
    await writeFile(heardPath, dataOf(heard));
    const dts = await times(heardPath);
    assertEquals(dts.size, 2);
    for (const steps of [...dts.values()].map((all) => all.slice(1).map((time, i) => time - all[i]!))) {
      assert(Math.min(...steps) > 0 && Math.max(...steps) < 1, `${Math.min(...steps)} to ${Math.max(...steps)}`);
    }
    assertEquals(await complaints(heardPath), "");
  } finally {
    await directory.remove();
  }
});

/** Arguments with which ffmpeg sends a clip over and over, in real time. */
const SEND = [
  "-v",
  "error",
  "-nostdin",
  "-re",
  "-stream_loop",
  "-1",
  "-i",
  clipPath("ts-188.ts"),
  "-map",
  "0",
  "-c",
  "copy",
];

/** Ways in which ffmpeg sends: its output options, and the source that hears it. */
const WAYS: readonly (readonly [string, (port: number) => string[], (port: number) => string])[] = [
  ["UDP", (port) => ["-f", "mpegts", `udp://127.0.0.1:${port}?pkt_size=1316`], (port) => `udp://127.0.0.1:${port}`],
  [
    "multicast",
    (port) => ["-f", "mpegts", `udp://239.192.77.3:${port}?pkt_size=1316&localaddr=127.0.0.1`],
    (port) => `udp://@239.192.77.3:${port}?localaddr=127.0.0.1`,
  ],
  ["RTP", (port) => ["-f", "rtp_mpegts", `rtp://127.0.0.1:${port}`], (port) => `rtp://127.0.0.1:${port}`],
  [
    "HTTP",
    (port) => ["-f", "mpegts", "-listen", "1", `http://127.0.0.1:${port}/live`],
    (port) => `http://127.0.0.1:${port}/live`,
  ],
  [
    "RTMP",
    (port) => ["-f", "flv", "-listen", "1", `rtmp://127.0.0.1:${port}/live/key`],
    (port) => `rtmp://127.0.0.1:${port}/live/key`,
  ],
  [
    "RTMP to us",
    (port) => ["-f", "flv", `rtmp://127.0.0.1:${port}/live/key`],
    (port) => `rtmp://127.0.0.1:${port}/live/key?listen=1`,
  ],
  ["SRT", (port) => ["-f", "mpegts", `srt://127.0.0.1:${port}?mode=listener`], (port) => `srt://127.0.0.1:${port}`],
];

for (const [name, output, source] of WAYS) {
  test(`a source hears what ffmpeg sends by ${name}, and ffmpeg decodes it`, async () => {
    const ports = await sourcePorts();
    const socket = await ports.tcp.listen({ host: "127.0.0.1", port: 0 }, () => {});
    const { port } = socket.address;
    await socket.close();
    const send = () => start("ffmpeg", [...SEND, ...output(port)]);
    let sender = send();
    const directory = await temporaryDirectory();
    try {
      const { input } = await openSource(ports, source(port), OPTIONS);
      const hearing = hear(input, (_, bytes) => bytes > 80_000);
      // A sender that comes before the source listens has to come again, as all of them do.
      while (name.endsWith("to us") && await Promise.race([sender.exited, hearing.then(() => -2)]) !== -2) {
        sender = send();
      }
      // Senders that listen may not do so yet: the source tries again.
      const heard = await hearing;
      assert(losses(heard).length <= 1, losses(heard).join("; "));
      const file = `${directory.path}/heard.ts`;
      await writeFile(file, dataOf(heard));
      const dts = await times(file);
      assertEquals(dts.size, 2);
      // It may have been joined in the middle of a group of pictures, which a decoder skips.
      const { code, stderr } = await run("ffmpeg", ["-v", "fatal", "-nostdin", "-i", file, "-f", "null", "-"]);
      assertEquals([code, stderr], [0, ""]);
    } finally {
      await sender.stop();
      await directory.remove();
    }
  });
}

test("a source follows the sliding HLS playlist that ffmpeg writes, without a loss, and ffmpeg decodes it", async () => {
  const ports = await sourcePorts();
  const directory = await temporaryDirectory();
  const server = await ports.http.serve({ host: "127.0.0.1", port: 0 }, async (request) => {
    const file = path.join(directory.path, path.basename(new URL(request.url).pathname));
    const bytes = await readFile(file).catch(() => null);
    return bytes === null ? new Response(null, { status: 404 }) : new Response(bytes);
  });
  const hls = ["-f", "hls", "-hls_time", "1", "-hls_list_size", "5", "-hls_flags", "delete_segments"];
  const sender = start("ffmpeg", [...SEND, ...hls, path.join(directory.path, "live.m3u8")]);
  try {
    const { input } = await openSource(ports, `http://127.0.0.1:${server.address.port}/live.m3u8`, OPTIONS);
    const heard = await hear(input, (_, bytes) => bytes > 200_000);
    // Before ffmpeg has written its first playlist there is nothing.
    const [first, ...others] = heard.map((one) => "lost" in one ? one.lost : "data");
    assertEquals(first === "data" ? others : others.slice(1), [], JSON.stringify(losses(heard)));
    const file = path.join(directory.path, "heard.ts");
    await writeFile(file, dataOf(heard));
    const dts = await times(file);
    for (const steps of [...dts.values()].map((all) => all.slice(1).map((time, i) => time - all[i]!))) {
      assert(Math.min(...steps) > 0 && Math.max(...steps) < 1);
    }
    // At the second seam of the clip ffmpeg's own segments have sound that overlaps by a part of a frame.
    assertEquals(await complaints(file, "-t", "10"), "");
  } finally {
    await sender.stop();
    await server.close(0);
    await directory.remove();
  }
});

test(`ffmpeg | millrace broadcast --source - is watched by ffmpeg for ${WATCH_S} s without a complaint`, async () => {
  const directory = await temporaryDirectory();
  const served = await serveEngine();
  const name = runtimeName();
  const main = fileURLToPath(new URL(`../../platform/${name}/main.ts`, import.meta.url));
  const runtime = name === "deno" ? ["run", "-A", "--no-check", "-q", main] : [main];
  const broadcast = start(process.execPath, [
    ...runtime,
    ...["broadcast", "--source", "-", "--name", "test", "--state-dir", path.join(directory.path, "state"), "--json"],
    ...["--peer-host", "127.0.0.1", "--peer-port", "0", "--no-dht", "--no-lsd"],
  ]);
  const sender = spawn("ffmpeg", [
    ...["-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"],
    ...["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-c:v", "libx264", "-preset", "ultrafast"],
    ...["-tune", "zerolatency", "-g", "25", "-b:v", "800k", "-c:a", "aac", "-b:a", "96k", "-f", "mpegts", "-"],
  ], { stdio: ["ignore", "pipe", "ignore"] });
  sender.stdout.pipe(broadcast.child.stdin!);
  try {
    const said = JSON.parse((await broadcast.line(/"event":"broadcast"/)).input) as { magnet: string; peers: string };
    const magnet = encodeURIComponent(`${said.magnet}&x.pe=${said.peers}`);
    const url = `${served.url}/engine/getstream?magnet=${magnet}`;
    assertEquals(await complaints(url, "-t", String(WATCH_S)), "");
  } finally {
    sender.kill("SIGKILL");
    await broadcast.stop();
    await served.close();
    await directory.remove();
  }
});

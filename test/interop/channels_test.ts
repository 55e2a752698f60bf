/** Players that we did not write play channels that come by HTTP from an encoder that we did not write. */
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { TOKEN } from "../api/support.ts";
import { type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clipPath } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { until } from "../support/until.ts";
import { serveWeb, type TestWeb } from "../support/web.ts";

/** Each player watches for this long, s. */
const WATCH_S = 8;
/** A clip in a loop, at its own speed, without being decoded. */
const looped = (
  name: string,
) => ["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", clipPath(name), "-c", "copy"];

/** What becomes segments of either kind. */
const CLIPS = { mpegts: "ts-188.ts", fmp4: "mp4-front.mp4" };

let engine: ServedEngine;
let web: TestWeb;
let directory: { path: string; remove(): Promise<void> };
const encoders = new Set<ReturnType<typeof spawn>>();
const asked: string[] = [];

function encoder(args: readonly string[], name = "ts-188.ts") {
  const child = spawn("ffmpeg", [...looped(name), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  encoders.add(child);
  child.on("close", () => encoders.delete(child));
  return child;
}

before(async () => {
  directory = await temporaryDirectory();
  engine = await serveEngine({ accessToken: TOKEN, stateDir: `${directory.path}/state` });
  web = await serveWeb((request, response) => {
    const path = request.url!;
    asked.push(path);
    if (path === "/live") {
      const child = encoder(["-f", "mpegts", "pipe:1"]);
      child.stdout!.pipe(response.writeHead(200, { "content-type": "video/mp2t" }));
      response.on("close", () => child.kill("SIGKILL"));
      return;
    }
    readFile(join(directory.path, path.slice(1))).then(
      (bytes) => response.writeHead(200).end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  const hls = ["-f", "hls", "-hls_time", "2", "-hls_list_size", "6", "-hls_flags", "delete_segments"];
  const key = [`${web.base}/key.bin`, `${directory.path}/key.bin`].join("\n");
  await writeFile(`${directory.path}/key.bin`, crypto.getRandomValues(new Uint8Array(16)));
  await writeFile(`${directory.path}/key.txt`, key);
  encoder([...hls, `${directory.path}/plain.m3u8`]);
  encoder([...hls, "-hls_key_info_file", `${directory.path}/key.txt`, `${directory.path}/sealed.m3u8`]);
  for (const [name, type] of [["parted", "mpegts"], ["apart", "fmp4"]] as const) {
    // Pictures and sound in playlists of their own, and segments of either kind.
    const apart = ["-var_stream_map", "v:0,agroup:a a:0,agroup:a,default:yes", "-master_pl_name", `${name}.m3u8`];
    const names = ["-hls_segment_filename", `${directory.path}/${name}_%v_%d.seg`, `${directory.path}/${name}_%v.m3u8`];
    encoder(["-map", "0:v", "-map", "0:a", ...hls, "-hls_segment_type", type, ...apart, ...names], CLIPS[type]);
  }
  const boxes = ["-hls_segment_type", "fmp4", "-hls_fmp4_init_filename", "boxes.mp4"];
  encoder([...hls, ...boxes, `${directory.path}/boxes.m3u8`], CLIPS.fmp4);
  for (const name of ["plain", "sealed", "boxes", "parted_1", "apart_1"]) {
    await until(`${name}.m3u8 has three segments`, async () => {
      const text = await readFile(`${directory.path}/${name}.m3u8`, "utf8").catch(() => "");
      return text.split("#EXTINF").length > 3;
    }, 60_000);
  }
});

after(async () => {
  for (const child of encoders) child.kill("SIGKILL");
  await engine?.close();
  await web?.close();
  await directory?.remove();
});

const OUTPUTS = ["getstream", "manifest.m3u8"] as const;
const SOURCES = ["live", "plain.m3u8", "sealed.m3u8", "boxes.m3u8", "parted.m3u8", "apart.m3u8"] as const;
const address = (output: string, source: string, pid: string, more: Record<string, string> = {}) =>
  `${engine.url}/engine/${output}?${new URLSearchParams({ direct_url: `${web.base}/${source}`, pid, ...more })}`;

test("ffmpeg decodes channels that come as MPEG TS, HLS and encrypted HLS, as both outputs, from one upstream each", async () => {
  asked.length = 0;
  await Promise.all(SOURCES.flatMap((source) =>
    OUTPUTS.map(async (output) => {
      const input = ["-v", "warning", "-nostdin", "-i", address(output, source, "ffmpeg")];
      const { code, stderr } = await run("ffmpeg", [...input, "-t", String(WATCH_S), "-f", "null", "-"]);
      // Where the clip begins again, its own times overlap by a picture.
      const complaints = stderr.split("\n").filter((line) => line !== "" && !/monotonic|dts/i.test(line));
      assertEquals([code, complaints], [0, []], `${output} of ${source}`);
    })
  ));
  assertEquals(asked.filter((path) => path === "/live").length, 1);
  const segments = asked.filter((path) => path.endsWith(".ts"));
  assertEquals(segments.length, new Set(segments).size, "no segment comes twice");
});

test("ffmpeg finds the pictures and the sound of fragmented MP4, and of playlists of their own, in step", async () => {
  for (const source of ["boxes.m3u8", "parted.m3u8", "apart.m3u8"]) {
    for (const format of ["ts", "fmp4"]) {
      const at = address("manifest.m3u8", source, "probe", { playlist_output_format_live: format });
      const args = [
        "-v",
        "error",
        "-read_intervals",
        "%+8",
        "-show_entries",
        "packet=codec_type,pts_time",
        "-of",
        "csv=p=0",
        at,
      ];
      const { code, text } = await run("ffprobe", args);
      assertEquals(code, 0, source);
      const lines = text.trim().split("\n").map((line) => line.split(","));
      const first = (type: string) =>
        Math.min(...lines.filter(([kind]) => kind === type).map(([, pts]) => Number(pts)));
      const apartS = Math.abs(first("video") - first("audio"));
      assertEquals(apartS < 0.3, true, `${source} as ${format}: ${apartS} s apart`);
    }
  }
});

test("mpv and VLC play a channel from both outputs", async () => {
  const isRoot = process.getuid?.() === 0;
  const sandbox = isRoot
    ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/tmp", "cvlc"]
    : ["cvlc"];
  const mpv = ["--no-config", "--vo=null", "--ao=null", "--msg-level=all=warn,cplayer=info", `--length=${WATCH_S}`];
  const vlc = ["-vv", "--no-plugins-cache", "--vout=dummy", "--aout=dummy", `--run-time=${WATCH_S}`, "--play-and-exit"];
  await Promise.all(OUTPUTS.flatMap((output) => [
    (async () => {
      const { code, text } = await run("mpv", [...mpv, address(output, "live", "mpv")]);
      assertEquals(code, 0, `${output}: ${text.slice(-800)}`);
      assertMatch(text, /Exiting\.\.\. \(End of file\)/, output);
    })(),
    (async () => {
      const { code, text } = await run("mpv", [...mpv, address(output, "apart.m3u8", "mpv 2")]);
      assertEquals(code, 0, `${output}: ${text.slice(-800)}`);
      assertMatch(text, /Exiting\.\.\. \(End of file\)/, output);
      assertMatch(text, /Audio.*aac[\s\S]*|AO:/, `${output} has sound`);
    })(),
    (async () => {
      const [command, ...args] = [...sandbox, ...vlc, address(output, "plain.m3u8", "vlc"), "vlc://quit"];
      const { code, stderr } = await run(command!, args);
      assertEquals(code, 0, `${output}: ${stderr.slice(-2000)}`);
      assertMatch(stderr, /Received first picture|first picture|using video output module|Buffering 100%/i, output);
    })(),
  ]));
});

test("ffmpeg and mpv play a recording while it grows, and ffprobe finds its length afterwards", async () => {
  const call = async (method: string, params: Record<string, string> = {}) => {
    const query = new URLSearchParams({ method, token: TOKEN, ...params });
    const { result, error } = await (await fetch(`${engine.url}/server/api?${query}`)).json();
    assertEquals(error, null, method);
    return result;
  };
  const { id } = await call("recording_start", { direct_url: `${web.base}/live`, title: "News", duration: "600" });
  const recording = async () => (await call("recording_list")).recordings[0];
  await until("four seconds are recorded", async () => (await recording()).duration > 4, 60_000);
  const { url, manifest_url: manifest } = await recording();
  await Promise.all([url, manifest].map(async (at) => {
    const { code, stderr } = await run("ffmpeg", ["-v", "warning", "-nostdin", "-i", at, "-t", "8", "-f", "null", "-"]);
    const complaints = stderr.split("\n").filter((line) => line !== "" && !/monotonic|dts/i.test(line));
    assertEquals([code, complaints], [0, []], at);
  }));
  const mpv = ["--no-config", "--vo=null", "--ao=null", "--msg-level=all=warn,cplayer=info", "--length=6"];
  const { code, text } = await run("mpv", [...mpv, manifest]);
  assertEquals(code, 0, text.slice(-800));
  await call("recording_stop", { id });
  const { duration } = await recording();
  const probe = await run("ffprobe", ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", manifest]);
  assertEquals(Math.abs(Number(probe.text) - duration) < 1, true, `${probe.text} for ${duration} s`);
});

test("a channel's upstream is closed soon after its last viewer left", async () => {
  const isRead = () => [...encoders].some(({ spawnargs }) => spawnargs.at(-1) === "pipe:1");
  await until("the encoder of /live has ended", () => !isRead(), 60_000);
});

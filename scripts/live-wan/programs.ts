/** The programs that make a broadcast: ffmpeg, the tracker and the broadcaster. */
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Program } from "../../test/support/process.ts";
import { commandOf } from "../support/runtimes.ts";
import { SourceTimes } from "./stream-clock.ts";
import type { WideArea } from "./wide-area.ts";

const PEER_PORT = 8621;
const TRACKER_PORT = 6969;
/** Options of all engines: nothing but the tracker, and what members say to each other, brings them together. */
export const ALONE = ["--no-dht", "--no-lsd", "--no-port-mapping", "--peer-port", String(PEER_PORT)];
/** A busy machine may take this long to start a program, ms. */
export const START_TIMEOUT_MS = 60_000;
/** Length of the clip that is broadcast again and again, s. */
const CLIP_S = 20;
const LONGEST_RUN_S = 1200;
const AUDIO_KBIT = 96;
/** What a transport stream adds to video and sound. */
const OVERHEAD = 1.075;

/** Makes a clip of that bitrate with a random access point each second; returns its path. */
export function makeClip(directory: string, streamMbit: number): string {
  const video = `${Math.round(1000 * streamMbit / OVERHEAD - AUDIO_KBIT)}k`;
  // Filled up, so that the picture has this rate however simple it is.
  const rate = ["-b:v", video, "-minrate", video, "-maxrate", video, "-bufsize", video, "-x264-params", "nal-hrd=cbr"];
  return encode(path.join(directory, "clip.ts"), "testsrc2=size=640x360:rate=25", rate, CLIP_S);
}

/** What has ffmpeg read `clip` again and again, in real time. */
export function loopOf(clip: string): readonly string[] {
  return ["-re", "-stream_loop", "-1", "-i", clip];
}

/** What has ffmpeg read `slateS` seconds of a black picture first, and then `clip` for as long as any run takes. */
export function afterSlate(directory: string, clip: string, slateS: number): readonly string[] {
  const slate = encode(path.join(directory, "slate.ts"), "color=black:size=640x360:rate=25", [], slateS);
  const list = path.join(directory, "list.txt");
  writeFileSync(list, [slate, ...Array(LONGEST_RUN_S / CLIP_S).fill(clip)].map((file) => `file '${file}'\n`).join(""));
  return ["-re", "-f", "concat", "-safe", "0", "-i", list];
}

function encode(file: string, picture: string, rate: readonly string[], seconds: number): string {
  const input = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", "sine=sample_rate=48000"];
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-bf", "0"];
  const sound = ["-c:a", "aac", "-b:a", `${AUDIO_KBIT}k`];
  const output = ["-t", String(seconds), "-pix_fmt", "yuv420p", "-f", "mpegts", "-y", file];
  const args = ["-v", "error", "-nostdin", ...input, ...encoder, ...rate, ...sound, ...output];
  const { status, error } = spawnSync("ffmpeg", args, { stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) throw new Error(`ffmpeg made no clip: ${error?.message ?? `exit ${status}`}`);
  return file;
}

/** Starts a tracker at a node; returns its announce address. */
export async function startTracker(network: WideArea, node: number): Promise<string> {
  const host = network.nodes[node]!.address;
  const script = fileURLToPath(new URL("./tracker.ts", import.meta.url));
  const tracker = network.start(node, [...commandOf("node"), script, host, String(TRACKER_PORT)]);
  await tracker.line(/^ready$/, START_TIMEOUT_MS);
  return `http://${host}:${TRACKER_PORT}/announce`;
}

/** A broadcaster that is on the air. */
export interface Broadcaster {
  readonly engine: Program;
  readonly magnet: string;
  /** When each moment of the stream was handed to the broadcaster. */
  readonly times: SourceTimes;
  stop(): void;
}

/** How a broadcaster is started. */
export interface BroadcasterOptions {
  readonly command: readonly string[];
  /** What ffmpeg reads: `loopOf()` or `afterSlate()`. */
  readonly input: readonly string[];
  readonly stateDir: string;
  readonly tracker: string;
  readonly limitMbit: number | undefined;
  readonly toldMbit: number | undefined;
}

/** Broadcasts from node 0. */
export async function startBroadcaster(network: WideArea, options: BroadcasterOptions): Promise<Broadcaster> {
  const { command, stateDir, tracker, limitMbit, toldMbit } = options;
  const rates = [
    ...limitMbit === undefined ? [] : ["--upload-limit", `${limitMbit}Mbit/s`],
    ...toldMbit === undefined ? [] : ["--bitrate", `${toldMbit}Mbit/s`],
  ];
  const stream = ["--source", "-", "--name", "wan", "--tracker", tracker, ...rates];
  const args = ["broadcast", ...stream, "--json", "--state-dir", stateDir, ...ALONE];
  const engine = network.start(0, [...command, ...args]);
  const output = ["-map", "0", "-c", "copy", "-f", "mpegts", "-pcr_period", "40", "-flush_packets", "1", "-"];
  const ffmpeg = spawn("ffmpeg", ["-v", "error", "-nostdin", ...options.input, ...output], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const times = new SourceTimes();
  ffmpeg.stdout!.on("data", (chunk: Uint8Array) => {
    times.sends(chunk, Date.now());
    engine.child.stdin!.write(chunk);
  });
  const stop = () => {
    ffmpeg.kill("SIGKILL");
  };
  try {
    const [line] = await engine.line(/^.*"magnet".*$/, START_TIMEOUT_MS);
    const { address, isClosed } = network.nodes[0]!;
    const { magnet } = JSON.parse(line) as { magnet: string };
    return { engine, magnet: isClosed ? magnet : `${magnet}&x.pe=${address}:${PEER_PORT}`, times, stop };
  } catch (error) {
    stop();
    throw error;
  }
}

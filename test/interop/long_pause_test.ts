/** Programs that we didn't write pause a live channel for longer than a session may be idle, and go on. */
import { spawnSync } from "node:child_process";
import { stat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import process from "node:process";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertGreater } from "@std/assert";
import { type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { start } from "../support/process.ts";
import { until } from "../support/until.ts";
import { startSession } from "../loopback/support.ts";

const TOKEN = "0123456789abcdef".repeat(4);
/** Rate of the channel, bytes/s: sockets hold some 10 MB, so that the engine can send nothing for most of the pause. */
const RATE = 1_000_000;
const HELD_BYTES = 10_000_000;
/** An idle session ends after 60 s. */
const PAUSE_S = 80;

let directory: { path: string; remove(): Promise<void> };
let studio: ServedEngine;
let viewer: ServedEngine;
let magnet: string;
before(async () => {
  directory = await temporaryDirectory();
  const source = `${directory.path}/channel.ts`;
  const noise = ["-f", "lavfi", "-i", "testsrc2=s=640x360:r=25:d=20,noise=alls=80:allf=t"];
  const rate = ["-b:v", "-minrate", "-maxrate", "-bufsize"].flatMap((option) => [option, String(RATE * 8)]);
  const made = spawnSync("ffmpeg", ["-v", "error", ...noise, "-c:v", "mpeg2video", "-g", "25", ...rate, source]);
  assertEquals([made.status, String(made.stderr)], [0, ""]);
  studio = await serveEngine({ accessToken: TOKEN });
  viewer = await serveEngine({ startTimeoutMs: 60_000 });
  const query = new URLSearchParams({ method: "broadcast_start", token: TOKEN, source, name: "channel" });
  const { result, error } = await (await fetch(`${studio.url}/server/api?${query}`)).json();
  assertEquals(error, null);
  magnet = `${result.magnet}&x.pe=${studio.peer}`;
});
after(async () => {
  await viewer?.close();
  await studio?.close();
  await directory?.remove();
});

/** The interface of a running mpv: its answers to commands. */
class Mpv {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (data: unknown) => void>();
  #count = 0;

  constructor(path: string) {
    this.#socket = connect(path);
    let text = "";
    this.#socket.on("error", () => {}).setEncoding("utf8").on("data", (part: string) => {
      const lines = (text + part).split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        const { request_id, data } = JSON.parse(line);
        this.#waiting.get(request_id)?.(data);
      }
    });
  }

  ask(...command: unknown[]): Promise<unknown> {
    const id = ++this.#count;
    this.#socket.write(`${JSON.stringify({ command, request_id: id })}\n`);
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  async position(): Promise<number> {
    return Number(await this.ask("get_property", "time-pos") ?? 0);
  }

  close(): void {
    this.#socket.destroy();
  }
}

const exists = (path: string) => stat(path).then(() => true, () => false);
const sizeOf = (path: string) => stat(path).then(({ size }) => size, () => 0);

test(`mpv and a recorder that stalls go on after a pause of ${PAUSE_S} s of a live channel`, async () => {
  const watched = await startSession(viewer, "getstream", { magnet, pid: "mpv" });
  const recorded = await startSession(viewer, "getstream", { magnet, pid: "recorder" });
  /** Where the session reads, Unix s. */
  const place = async () =>
    Number((await (await fetch(`${watched.stat_url}?skip_player_activity=1`)).json()).response.livepos.pos);
  const path = `${directory.path}/mpv`;
  const small = [
    "--cache=no",
    "--demuxer-max-bytes=512KiB",
    "--demuxer-readahead-secs=1",
    `--input-ipc-server=${path}`,
  ];
  const player = start("mpv", ["--no-config", "--vo=null", "--ao=null", ...small, watched.playback_url]);
  const file = `${directory.path}/recorded.ts`;
  const recorder = start("ffmpeg", [
    "-v",
    "error",
    "-nostdin",
    "-probesize",
    "500k",
    "-i",
    recorded.playback_url,
    "-c",
    "copy",
    file,
  ]);
  let mpv: Mpv | null = null;
  try {
    await until("mpv's interface", () => exists(path), 60_000);
    mpv = new Mpv(path);
    await until("mpv plays", async () => await mpv!.position() > 2, 60_000);
    await until("the recorder records", async () => await sizeOf(file) > 0, 60_000);
    await mpv.ask("set_property", "pause", true);
    process.kill(recorder.child.pid!, "SIGSTOP");
    const [paused, pausedBytes] = [await mpv.position(), await sizeOf(file)];
    await new Promise((resolve) => setTimeout(resolve, PAUSE_S * 1000));
    assertEquals(await mpv.position(), paused);
    const before = await place();
    // What the sockets hold is played in a moment, so that the rest has to come.
    await mpv.ask("set_property", "speed", 8);
    await mpv.ask("set_property", "pause", false);
    process.kill(recorder.child.pid!, "SIGCONT");
    await until("the recorder has more than was on its way", async () => {
      return await sizeOf(file) > pausedBytes + HELD_BYTES;
    }, 60_000);
    await until(
      "mpv gets more than was on its way",
      async () => await place() > before + HELD_BYTES / RATE,
      60_000,
    );
    await mpv.ask("set_property", "speed", 1);
    const late = await mpv.position();
    assertGreater(late, paused);
    await until("mpv plays on", async () => await mpv!.position() > late + 1, 10_000);
    assert(await mpv.ask("get_property", "eof-reached") !== true);
  } finally {
    mpv?.close();
    await Promise.all([player.stop(), recorder.stop()]);
  }
});

/** Players that we didn't write, and how many pictures each of them has shown so far. */
import { connect } from "node:net";
import process from "node:process";
import { freePort } from "../../test/support/tracker.ts";
import { type Program, start } from "../../test/support/process.ts";
import type { PlayerPage } from "../../test/browser/support.ts";

/** How often a player is asked, ms. */
const LOOK_EVERY_MS = 250;

/** Counts the pictures that a player has shown. */
export class Shown {
  pictures = 0;
  #lastMs = 0;
  /** Longest time without a new picture after the first, ms. */
  longestPauseMs = 0;
  readonly #waiting = new Set<() => void>();

  /** There are `pictures` by now. */
  at(pictures: number): void {
    if (pictures <= this.pictures) return;
    const nowMs = performance.now();
    if (this.pictures > 0) this.longestPauseMs = Math.max(this.longestPauseMs, nowMs - this.#lastMs);
    [this.pictures, this.#lastMs] = [pictures, nowMs];
    for (const look of [...this.#waiting]) look();
  }

  /** Resolves when it has shown `pictures`. */
  reached(pictures: number): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.pictures < pictures) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** Plays `url` until the stream or `signal` ends; returns what the player said last. */
export type GapPlayer = (url: string, signal: AbortSignal, shown: Shown) => Promise<string>;

async function ended(program: Program, signal: AbortSignal): Promise<void> {
  const over = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  if (!signal.aborted) await Promise.race([program.exited, over]);
  await program.stop();
}

/** GStreamer's playbin, which shows pictures at the pace of their clock. */
export const gstreamer: GapPlayer = async (url, signal, shown) => {
  const sink = (kind: string) => `fakesink name=${kind} sync=true silent=false`;
  const program = start("stdbuf", [
    ...["-oL", "gst-launch-1.0"],
    "-v",
    "playbin",
    `uri=${url}`,
    `video-sink=${sink("pictures")}`,
    `audio-sink=${sink("sound")}`,
  ]);
  let pictures = 0;
  program.child.stdout!.on("data", (text: string) => {
    pictures += text.match(/pictures: last-message = chain/g)?.length ?? 0;
    shown.at(pictures);
  });
  await ended(program, signal);
  const words = program.output().split("\n").filter((line) => /ERROR|WARN|EOS/.test(line));
  return words.slice(-3).join(" · ");
};

/** VLC, asked through its remote control. */
export const vlc: GapPlayer = async (url, signal, shown) => {
  const port = await freePort();
  const player = [
    ...["vlc", "-I", "rc", "--rc-host", `127.0.0.1:${port}`, "--no-plugins-cache"],
    ...["--vout=dummy", "--aout=dummy", "--play-and-exit", url],
  ];
  // It refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const as = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/tmp"];
  const [command, ...args] = isRoot ? [...as, ...player] : player;
  const program = start(command!, args);
  const socket = await connected(port, program);
  let text = "";
  socket?.setEncoding("utf8").on("error", () => {}).on("data", (part: string) => {
    text = (text + part).slice(-4000);
    // On a busy machine it drops pictures that are late.
    const figure = (name: string) =>
      Number(new RegExp(`frames ${name} *: *(\\d+)(?![^]*frames ${name})`).exec(text)?.[1] ?? 0);
    shown.at(figure("displayed") + figure("lost"));
  });
  const timer = setInterval(() => socket?.write("stats\n"), LOOK_EVERY_MS);
  await ended(program, signal);
  clearInterval(timer);
  socket?.destroy();
  const words = program.output().split("\n").filter((line) => /error|failed|discontinuity/i.test(line));
  return words.slice(-3).join(" · ");
};

/** A connection to the remote control, once it listens. */
async function connected(port: number, program: Program) {
  let isOver = false;
  void program.exited.then(() => isOver = true);
  while (!isOver) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    if (isOpen) return socket;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  return null;
}

/** hls.js with its own settings, in a page. */
export function hlsJs({ page }: PlayerPage): GapPlayer {
  return async (url, signal, shown) => {
    await page.evaluate((address) => {
      // deno-lint-ignore no-explicit-any
      const global = globalThis as any;
      const video = document.createElement("video");
      video.muted = true;
      document.querySelector("video")!.replaceWith(video);
      const said: string[] = [];
      const hls = new global.Hls({ enableWorker: false });
      // deno-lint-ignore no-explicit-any
      hls.on(global.Hls.Events.ERROR, (_: unknown, data: any) => {
        const why = data.reason ?? data.error?.message ?? "";
        said.push(`${data.fatal ? "fatal " : ""}${data.details} of ${data.frag?.sn ?? "-"}: ${why}`);
        if (!data.fatal) return;
        // As its own documentation says.
        if (data.type === global.Hls.ErrorTypes.MEDIA_ERROR) hls.recoverMediaError();
      });
      hls.loadSource(address);
      hls.attachMedia(video);
      video.play().catch(() => {});
      global.watched = { video, hls, said };
    }, url);
    const look = () =>
      page.evaluate(() => {
        // deno-lint-ignore no-explicit-any
        const { video, said } = (globalThis as any).watched;
        return {
          pictures: video.getVideoPlaybackQuality().totalVideoFrames as number,
          isOver: video.ended as boolean,
          words: (said as string[]).slice(-4).join(" · "),
        };
      });
    // The browser counts from the beginning where hls.js has to open another media source.
    let [base, last] = [0, 0];
    let now = await look();
    while (!now.isOver && !signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      now = await look();
      if (now.pictures < last) base += last;
      last = now.pictures;
      shown.at(base + last);
    }
    // deno-lint-ignore no-explicit-any
    await page.evaluate(() => (globalThis as any).watched.hls.destroy());
    return now.words;
  };
}

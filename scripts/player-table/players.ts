/** What each player makes of a film's HLS: which of its streams it plays. */
import { readFileSync } from "node:fs";
import process from "node:process";
import type { PlayerPage } from "../../test/browser/support.ts";
import { run } from "../../test/support/process.ts";
import { FILM_S, TEXT } from "./films.ts";

/** What came of a film. */
export interface Outcome {
  readonly video: boolean;
  readonly audio: boolean;
  readonly text: boolean;
  /** Why nothing plays, if the player says it. */
  readonly words?: string;
}

/** Plays the film at `url`. `folder`: for its files. */
export type Player = (url: string, folder: string) => Promise<Outcome>;

const TIMEOUT = { timeoutMs: 120_000 };
/** User id of "nobody": VLC refuses to run as root. */
const UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
/** Pictures that show that a film was played, not just begun. */
const ENOUGH = 25 * FILM_S * 0.8;

const lastLine = (text: string) => text.trim().split("\n").at(-1)?.slice(0, 160) ?? "";

const ffmpeg: Player = async (url) => {
  const shown = ["-show_entries", "stream=codec_type", "-of", "csv=p=0"];
  const input = ["-strict", "experimental", url];
  const { text } = await run("ffprobe", ["-v", "error", ...shown, ...input], TIMEOUT);
  const types = new Set(text.split("\n").map((line) => line.replace(/,.*/, "")));
  const decode = ["-nostdin", "-v", "error", "-i", url, "-f", "null", "-progress", "-", "-"];
  const { code, text: progress, stderr } = await run("ffmpeg", decode, TIMEOUT);
  const frames = Number(/frame=(\d+)(?![\s\S]*frame=)/.exec(progress)?.[1] ?? 0);
  const video = code === 0 && frames >= ENOUGH;
  const audio = code === 0 && types.has("audio") && !/Decoder .* not found/.test(stderr);
  return { video, audio, text: types.has("subtitle"), words: lastLine(stderr) };
};

const mpv: Player = async (url) => {
  const quiet = ["--no-config", "--vo=null", "--ao=null", "--untimed", "--demuxer-lavf-o=strict=-2", "--sid=1"];
  const { text } = await run("mpv", [...quiet, url], TIMEOUT);
  const ended = text.includes("End of file");
  return {
    video: ended && /\(\+\) Video/.test(text) && /VO: \[null\]/.test(text),
    audio: ended && /\(\+\) Audio/.test(text) && /AO: \[null\]/.test(text),
    text: /\(\+\) Subs/.test(text),
    words: lastLine(text),
  };
};

const vlc: Player = async (url, folder) => {
  const options = ["-vv", "-I", "dummy", "--no-plugins-cache", "--no-media-library", "--vout=dummy", "--aout=dummy"];
  const args = ["env", `HOME=${folder}`, "cvlc", ...options, "--sub-track=0", "--play-and-exit", url];
  const [program, ...rest] = process.getuid?.() === 0 ? [...UNPRIVILEGED, ...args] : args;
  const { stderr } = await run(program!, rest, TIMEOUT);
  return {
    video: /Received first picture/.test(stderr),
    audio: /Decoder buffering done|selecting program id=0|creating audio output/i.test(stderr) &&
      /audio output|aout/.test(stderr) && /output '\w+' \d+ Hz/.test(stderr),
    text: /looking for spu decoder module|using spu decoder module/.test(stderr),
    words: lastLine(stderr),
  };
};

const gstreamer: Player = async (url) => {
  const sinks = ["video-sink=fakesink", "audio-sink=fakesink", "text-sink=fakesink"];
  const { code, text } = await run("gst-launch-1.0", ["-v", "-m", "playbin3", `uri=${url}`, ...sinks], TIMEOUT);
  const ended = code === 0 && /Got EOS/.test(text);
  return {
    video: ended && /caps = video\/x-raw/.test(text),
    audio: ended && /caps = audio\/x-raw/.test(text),
    text: /caps = (?:text|subpicture|application\/x-subtitle)/.test(text),
    words: lastLine(/ERROR: [^\n]*/.exec(text)?.[0] ?? ""),
  };
};

/** The players that are programs. */
export const PROGRAMS: Readonly<Record<string, Player>> = { ffmpeg, mpv, VLC: vlc, GStreamer: gstreamer };

/** What a page measures, and the faults of the library. */
interface InPage extends Outcome {
  readonly faults: readonly string[];
}

/** Plays `url` in `page` by the library `name`, which the page has loaded. */
async function inPage({ page }: PlayerPage, name: "hls.js" | "shaka-player", url: string): Promise<Outcome> {
  const { faults, ...outcome }: InPage = await page.evaluate(async ([library, address, wanted]) => {
    // deno-lint-ignore no-explicit-any -- the library and Chromium's own counters
    const { Hls, shaka } = globalThis as any;
    // deno-lint-ignore no-explicit-any
    const video = document.createElement("video") as any;
    video.muted = true;
    document.querySelector("video")!.replaceWith(video);
    const faults: string[] = [];
    let text = false;
    const look = () => {
      for (const track of video.textTracks) {
        track.mode = "showing";
        text ||= [...track.cues ?? []].some((cue) => cue.text.includes(wanted));
      }
    };
    let close: () => unknown = () => {};
    const ended = new Promise<void>((resolve) => {
      video.addEventListener("ended", () => resolve());
      setTimeout(resolve, 60_000);
      const fail = (fault: string) => {
        faults.push(fault);
        resolve();
      };
      if (library === "hls.js") {
        const hls = new Hls({ enableWorker: false });
        close = () => hls.destroy();
        // deno-lint-ignore no-explicit-any
        hls.on(Hls.Events.ERROR, (_: unknown, data: any) => data.fatal && fail(data.details));
        hls.on(Hls.Events.SUBTITLE_TRACKS_UPDATED, () => {
          hls.subtitleTrack = 0;
          hls.subtitleDisplay = true;
        });
        hls.loadSource(address);
        hls.attachMedia(video);
        video.play().catch(() => {});
      } else {
        const player = new shaka.Player();
        close = () => player.destroy();
        // deno-lint-ignore no-explicit-any
        player.addEventListener("error", ({ detail }: any) => fail(`error ${detail.code}`));
        player.attach(video).then(() => player.load(address)).then(() => {
          const [track] = player.getTextTracks();
          if (track !== undefined) {
            player.selectTextTrack(track);
            player.setTextTrackVisibility?.(true);
          }
          // Where it is interrupted, the event above says why.
          video.play().catch(() => {});
          // deno-lint-ignore no-explicit-any
        }).catch((error: any) => fail(`error ${error?.code ?? error}`));
      }
    });
    const timer = setInterval(look, 200);
    await ended;
    look();
    clearInterval(timer);
    const outcome = {
      video: video.currentTime > 4 && video.getVideoPlaybackQuality().totalVideoFrames > 50,
      audio: video.currentTime > 4 && video.webkitAudioDecodedByteCount > 0,
      text,
      faults,
    };
    await close();
    return outcome;
  }, [name, url, TEXT] as const);
  return { ...outcome, words: faults.join(", ") };
}

/** The players that are libraries in a page; `shaka`: where the file of that one is, null: it is left out. */
export function pagePlayers(page: PlayerPage, shaka: string | null): Record<string, Player> {
  return {
    "hls.js": (url) => inPage(page, "hls.js", url),
    ...shaka === null ? {} : {
      "shaka-player": async (url: string) => {
        await page.page.addScriptTag({ content: readFileSync(shaka, "utf8") });
        return await inPage(page, "shaka-player", url);
      },
    },
  };
}

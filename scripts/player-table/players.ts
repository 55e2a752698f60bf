/** What each player makes of a film's HLS: which of its streams it plays. */
import process from "node:process";
import { run } from "../../test/support/process.ts";
import { FILM_S, type Row } from "./films.ts";

/** What came of a film. */
export interface Outcome {
  readonly video: boolean;
  readonly audio: boolean;
  readonly text: boolean;
  /** Why nothing plays, if the player says it. */
  readonly words?: string;
}

/** A film as players get it. */
export interface Offer {
  /** Its HLS. */
  readonly url: string;
  /** Address of the engine, and the film's selector and file there. */
  readonly engineUrl: string;
  readonly magnet: string;
  readonly index: number;
  /** For files of the player, also by another user. */
  readonly folder: string;
}

/** Plays a film to its end. */
export type Player = (offer: Offer) => Promise<Outcome>;

/** What stands in the table. */
export function cellOf([, , text]: Row, { video, audio, text: hasText, words }: Outcome): string {
  if (!video && !audio) return `no: ${words || "says nothing"}`;
  const lacks = [
    ...video ? [] : ["pictures"],
    ...audio ? [] : ["sound"],
    ...hasText || text === "none" ? [] : ["text"],
  ];
  return lacks.length === 0 ? "plays" : `without ${lacks.join(", ")}`;
}

const TIMEOUT = { timeoutMs: 120_000 };
/** User id of "nobody": VLC refuses to run as root. */
const UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
/** Pictures that show that a film was played, not just begun. */
const ENOUGH = 25 * FILM_S * 0.8;

const lastLine = (text: string) => text.trim().split("\n").at(-1)?.slice(0, 160) ?? "";

const ffmpeg: Player = async ({ url }) => {
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

const mpv: Player = async ({ url }) => {
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

const vlc: Player = async ({ url, folder }) => {
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

const gstreamer: Player = async ({ url }) => {
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

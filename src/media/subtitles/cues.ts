/** Subtitles as text: SubRip (.srt) and WebVTT files into cues. */
import { decodeText } from "../../bytes/text.ts";
import type { Cue } from "../model/types.ts";

/** Cues of one file: a film of four hours that shows one each second has fewer. */
export const MAX_CUES = 20_000;
/** Longest text of a cue, characters; the rest is cut. */
const MAX_TEXT = 2000;
/** Longest line that is read, characters. */
const MAX_LINE = 4000;

const TIMING =
  /^\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})\s{0,9}-->\s{0,9}(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})(?:\s(.*))?$/;
/** Settings that are passed on to the player. Regions are left out, because they are defined elsewhere. */
const SETTING = /^(?:vertical|line|position|size|align):[\w%,.-]{1,40}$/;

/** The cues of a file in either format, by their start. Leaves out what cannot be read. */
export function readCues(bytes: Uint8Array): readonly Cue[] {
  const lines = decodeText(bytes).split(/\r\n?|\n/);
  const isVtt = lines[0]?.startsWith("WEBVTT") ?? false;
  const cues: Cue[] = [];
  for (let at = 0; at < lines.length && cues.length < MAX_CUES; at++) {
    const timing = timingOf(lines[at]!);
    if (timing === null) continue;
    const texts: string[] = [];
    while (at + 1 < lines.length && lines[at + 1]!.trim() !== "") {
      if (timingOf(lines[at + 1]!) !== null) {
        // Without an empty line before the next cue, the last line here is that cue's number.
        if (/^\s*\d+\s*$/.test(texts.at(-1) ?? "")) texts.pop();
        break;
      }
      texts.push(lines[++at]!);
    }
    const raw = texts.join("\n").slice(0, MAX_TEXT);
    const text = (isVtt ? vttText(raw) : srtText(raw)).trim();
    const settings = isVtt ? timing.settings : placeOf(raw);
    if (text !== "" && timing.endMs > timing.startMs) cues.push({ ...timing, settings, text });
  }
  return cues.sort((a, b) => a.startMs - b.startMs);
}

function timingOf(line: string): { startMs: number; endMs: number; settings: string } | null {
  if (line.length > MAX_LINE || !line.includes("-->")) return null;
  const match = TIMING.exec(line);
  if (match === null) return null;
  const settings = settingsIn(match[9] ?? "");
  return { startMs: msOf(match.slice(1, 5)), endMs: msOf(match.slice(5, 9)), settings };
}

/** The settings of WebVTT in `text` that are passed on. */
export function settingsIn(text: string): string {
  return text.split(/\s+/).filter((part) => SETTING.test(part)).join(" ");
}

function msOf([hours = "0", minutes, seconds, fraction]: readonly (string | undefined)[]): number {
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(fraction!.padEnd(3, "0"));
}

/** Tags of SubRip that WebVTT has, too. */
const COMMON_TAG = /^<\/?[biu]>$/i;

/** The text of SubRip, from a file or a track of a film, converted to WebVTT. */
export function srtText(raw: string): string {
  const bare = raw.replace(/\{\\[^{}\n]{0,200}\}/g, "");
  return bare.split(/(<[^<>\n]{0,200}>)/).map((part, i) =>
    i % 2 === 0
      ? escaped(part)
      : COMMON_TAG.test(part)
      ? part.toLowerCase()
      : /^<\/?font\b/i.test(part)
      ? ""
      : escaped(part)
  ).join("").split("\n").map((line) => line.trim()).filter((line) => line !== "").join("\n");
}

/** WebVTT stays unchanged, except for lines that would end the cue. */
export function vttText(raw: string): string {
  return raw.replaceAll("-->", "--&gt;");
}

/** Plain text as WebVTT writes it. */
export function escapedText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function escaped(text: string): string {
  return text.replace(/&(?!(?:amp|lt|gt|nbsp|lrm|rlm);)/g, "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** SubRip borrows the alignment of Advanced SubStation: 7 to 9 are the top of the picture. */
export function placeOf(raw: string): string {
  return /\{\\an[789]\}/.test(raw) ? "line:0" : "";
}

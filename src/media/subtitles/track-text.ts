/** Texts in the tracks of a film as cues: SubRip, Advanced SubStation and both forms of WebVTT in Matroska, tx3g and WebVTT in MP4. */
import { type Box, boxesIn, viewOf } from "../../bytes/boxes.ts";
import type { Cue } from "../model/types.ts";
import { escapedText, placeOf, settingsIn, srtText, vttText } from "./cues.ts";

type Shown = Pick<Cue, "settings" | "text">;

/** Texts of MP4, which are more than text. */
const BINARY_FORMS: Readonly<Record<string, (data: Uint8Array) => readonly Shown[]>> = {
  tx3g: timedText,
  text: timedText,
  wvtt: webVttSample,
};

/** What stands in the block of a text, by the container's codec id. */
const FORMS: Readonly<Record<string, (raw: string, beside: string) => Shown>> = {
  "S_TEXT/UTF8": subRip,
  "S_TEXT/ASCII": subRip,
  "S_TEXT/ASS": subStation,
  "S_TEXT/SSA": subStation,
  "S_ASS": subStation,
  "S_SSA": subStation,
  // As mkvmerge writes it: settings, an identifier and comments stand beside the block, a line each.
  "S_TEXT/WEBVTT": (raw, beside) => ({ settings: settingsIn(beside.split("\n", 1)[0]!), text: vttText(raw) }),
  // As ffmpeg writes it: an identifier and settings come first.
  "D_WEBVTT/SUBTITLES": (raw) => {
    const [, settings = "", ...lines] = raw.split("\n");
    return { settings: settingsIn(settings), text: vttText(lines.join("\n")) };
  },
};

/** Longest text that is read, bytes; real ones have a few hundred. */
const MAX_TEXT_BYTES = 8192;
/** A text is shown no longer than this, ms, nor that long if the file does not say. */
const MAX_SHOWN_MS = 60_000;
const UNKNOWN_SHOWN_MS = 3000;

/** Whether texts of this codec id can be read. */
export function isTextCodec(codecId: string): boolean {
  return Object.hasOwn(FORMS, codecId) || Object.hasOwn(BINARY_FORMS, codecId);
}

/**
 * The cues of one block; none when nothing of it is shown. Times in ms; `shownMs` null: the file does not say. `beside`: what
 * the container keeps beside the block.
 */
export function cuesOf(
  codecId: string,
  data: Uint8Array,
  startMs: number,
  shownMs: number | null,
  beside: Uint8Array | null = null,
): readonly Cue[] {
  const durationMs = Math.min(MAX_SHOWN_MS, shownMs ?? UNKNOWN_SHOWN_MS);
  if (data.length > MAX_TEXT_BYTES || durationMs <= 0) return [];
  const binary = BINARY_FORMS[codecId];
  const shown = binary !== undefined
    ? binary(data)
    : [FORMS[codecId]!(asText(data), beside === null ? "" : asText(beside))];
  return shown.flatMap(({ settings, text }) => {
    const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
    return lines.length === 0 ? [] : [{ startMs, endMs: startMs + durationMs, settings, text: lines.join("\n") }];
  });
}

function asText(data: Uint8Array): string {
  const isUtf16 = data.length >= 2 &&
    ((data[0] === 0xfe && data[1] === 0xff) || (data[0] === 0xff && data[1] === 0xfe));
  const decoder = new TextDecoder(isUtf16 ? data[0] === 0xfe ? "utf-16be" : "utf-16le" : "utf-8");
  return decoder.decode(data).replace(/\r\n?/g, "\n").replaceAll("\0", "");
}

/** Bits of a face in `styl`, and the tags of WebVTT for them. */
const FACES: readonly (readonly [bit: number, tag: string])[] = [[1, "b"], [2, "i"], [4, "u"]];
const STYLE_BYTES = 12;

/** tx3g and QuickTime's text (3GPP TS 26.245, 5.17): a length, the text, and boxes; `styl` says what is slanted. */
function timedText(data: Uint8Array): readonly Shown[] {
  if (data.length < 2) return [];
  const view = viewOf(data);
  const end = 2 + view.getUint16(0);
  if (end > data.length) return [];
  const characters = [...asText(data.subarray(2, end))];
  const faces = new Uint8Array(characters.length);
  for (const box of boxesIn(view, end, data.length)) if (box.type === "styl") readFaces(box, faces);
  let text = "";
  let face = 0;
  const turnTo = (next: number) => {
    if (next === face) return;
    text += FACES.filter(([bit]) => face & bit).map(([, tag]) => `</${tag}>`).reverse().join("");
    text += FACES.filter(([bit]) => next & bit).map(([, tag]) => `<${tag}>`).join("");
    face = next;
  };
  for (const [i, character] of characters.entries()) {
    // Tags that span lines are closed before a line that is left out.
    turnTo(character === "\n" ? 0 : faces[i]!);
    text += escapedText(character);
  }
  turnTo(0);
  return [{ settings: "", text }];
}

function readFaces({ view, start, end }: Box, faces: Uint8Array): void {
  if (start + 2 > end) return;
  const count = Math.min(view.getUint16(start), Math.floor((end - start - 2) / STYLE_BYTES));
  for (let n = 0; n < count; n++) {
    const at = start + 2 + n * STYLE_BYTES;
    faces.fill(view.getUint8(at + 6) & 7, view.getUint16(at), view.getUint16(at + 2));
  }
}

/** WebVTT in MP4 (14496-30, 6): cues side by side, each a box of boxes. */
function webVttSample(data: Uint8Array): readonly Shown[] {
  const view = viewOf(data);
  const shown: Shown[] = [];
  for (const cue of boxesIn(view, 0, data.length)) {
    if (cue.type !== "vttc" || shown.length >= MAX_AT_ONCE) continue;
    const parts = new Map<string, string>();
    for (const { type, start, end } of boxesIn(view, cue.start, cue.end)) {
      parts.set(type, asText(data.subarray(start, end)));
    }
    shown.push({ settings: settingsIn(parts.get("sttg") ?? ""), text: vttText(parts.get("payl") ?? "") });
  }
  return shown;
}

/** Cues of one sample: a screen has room for no more. */
const MAX_AT_ONCE = 16;

function subRip(raw: string): Pick<Cue, "settings" | "text"> {
  return { settings: placeOf(raw), text: srtText(raw) };
}

/** Fields before the text: ReadOrder, Layer, Style, Name, three margins, Effect (Matroska's form of a Dialogue line). */
const FIELDS = 8;

/**
 * A line of Advanced SubStation: italics, bold, underlines, breaks and the place by `\an` are kept. Comments,
 * drawings, karaoke and other effects are not shown.
 */
function subStation(raw: string): Pick<Cue, "settings" | "text"> {
  let at = 0;
  for (let field = 0; field < FIELDS && at >= 0; field++) {
    const comma = raw.indexOf(",", at);
    at = comma < 0 ? -1 : comma + 1;
  }
  if (at < 0) return { settings: "", text: "" };
  const open: string[] = [];
  let text = "";
  let isDrawing = false;
  let place = BOTTOM;
  const close = (tag: string) => {
    const from = open.lastIndexOf(tag);
    if (from < 0) return;
    const inner = open.splice(from);
    text += inner.toReversed().map((one) => `</${one}>`).join("");
    for (const one of inner.slice(1)) begin(one);
  };
  const begin = (tag: string) => {
    if (open.includes(tag)) return;
    open.push(tag);
    text += `<${tag}>`;
  };
  // At odd places stands what was in braces.
  for (const [i, part] of inBraces(raw.slice(at)).entries()) {
    if (i % 2 === 0) {
      if (!isDrawing) text += plain(part);
      continue;
    }
    for (const [, name = "r", value] of part.matchAll(/\\(?:(an|[aibup])(\d+)|r)/g)) {
      if (name === "an") place = Number(value);
      else if (name === "a") place = OLD_PLACES[Number(value)] ?? BOTTOM;
      else if (name === "p") isDrawing = Number(value) > 0;
      else if (name === "r") [...open].forEach(close);
      else if (Number(value) > 0) begin(name!);
      else close(name!);
    }
  }
  for (const tag of open.toReversed()) text += `</${tag}>`;
  return { settings: settingsAt(place), text };
}

/** What stands outside of braces and within them, by turns. They don't nest: the first one that closes ends what was opened. */
function inBraces(text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let open = text.indexOf("{"); open >= 0; open = text.indexOf("{", from)) {
    const close = text.indexOf("}", open);
    if (close < 0) break;
    parts.push(text.slice(from, open), text.slice(open + 1, close));
    from = close + 1;
  }
  return [...parts, text.slice(from)];
}

/** The middle of the bottom, in the numbers of `\an`: those of the keys of a telephone upside down. */
const BOTTOM = 2;
/** Numbers of `\an` for those of the older `\a`. */
const OLD_PLACES: Readonly<Record<number, number>> = { 1: 1, 2: 2, 3: 3, 5: 7, 6: 8, 7: 9, 9: 4, 10: 5, 11: 6 };

/** Settings of WebVTT for a place of 1 to 9; none for others. */
function settingsAt(place: number): string {
  if (place < 1 || place > 9) return "";
  const height = place >= 7 ? ["line:0"] : place >= 4 ? ["line:50%"] : [];
  const side = place % 3 === 1 ? ["position:5%", "align:start"] : place % 3 === 0 ? ["position:95%", "align:end"] : [];
  return [...height, ...side].join(" ");
}

/** Text without codes, as WebVTT writes it. */
function plain(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll("\\N", "\n").replaceAll("\\n", "\n").replaceAll("\\h", " ");
}

/** Texts in the tracks of a film as cues: SubRip, Advanced SubStation and both forms of WebVTT in Matroska. */
import { type Cue, placeOf, srtText, vttText } from "./cues.ts";

/** What stands in the block of a text, by the container's codec id. */
const FORMS: Readonly<Record<string, (raw: string) => Pick<Cue, "settings" | "text">>> = {
  "S_TEXT/UTF8": subRip,
  "S_TEXT/ASCII": subRip,
  "S_TEXT/ASS": subStation,
  "S_TEXT/SSA": subStation,
  "S_ASS": subStation,
  "S_SSA": subStation,
  // As mkvmerge writes it: settings stand beside the block, and are not read.
  "S_TEXT/WEBVTT": (raw) => ({ settings: "", text: vttText(raw) }),
  // As ffmpeg writes it: an identifier and settings come first.
  "D_WEBVTT/SUBTITLES": (raw) => ({ settings: "", text: vttText(raw.split("\n").slice(2).join("\n")) }),
};

/** Longest text that is read, bytes; real ones have a few hundred. */
const MAX_TEXT_BYTES = 8192;
/** A text is shown no longer than this, ms, nor that long if the file does not say. */
const MAX_SHOWN_MS = 60_000;
const UNKNOWN_SHOWN_MS = 3000;

/** Whether texts of this codec id can be read. */
export function isTextCodec(codecId: string): boolean {
  return codecId in FORMS;
}

/** The cue of one block; null when nothing of it is shown. Times in ms; `shownMs` null: the file does not say. */
export function cueOf(codecId: string, data: Uint8Array, startMs: number, shownMs: number | null): Cue | null {
  if (data.length > MAX_TEXT_BYTES) return null;
  const raw = new TextDecoder().decode(data).replace(/\r\n?/g, "\n").replaceAll("\0", "");
  const { settings, text } = FORMS[codecId]!(raw);
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const durationMs = Math.min(MAX_SHOWN_MS, shownMs ?? UNKNOWN_SHOWN_MS);
  if (lines.length === 0 || durationMs <= 0) return null;
  return { startMs, endMs: startMs + durationMs, settings, text: lines.join("\n") };
}

function subRip(raw: string): Pick<Cue, "settings" | "text"> {
  return { settings: placeOf(raw), text: srtText(raw) };
}

/** Fields before the text: ReadOrder, Layer, Style, Name, three margins, Effect (Matroska's form of a Dialogue line). */
const FIELDS = 8;

/**
 * A line of Advanced SubStation: italics, bold, underlines, breaks and the top of the picture are kept. Comments,
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
  let isTop = false;
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
  for (const [i, part] of raw.slice(at).split(/\{([^{}]*)\}/).entries()) {
    if (i % 2 === 0) {
      if (!isDrawing) text += plain(part);
      continue;
    }
    for (const [, name = "r", value] of part.matchAll(/\\(?:(an|[aibup])(\d+)|r)/g)) {
      if (name === "an") isTop = Number(value) >= 7;
      else if (name === "a") isTop = Number(value) >= 5 && Number(value) <= 7;
      else if (name === "p") isDrawing = Number(value) > 0;
      else if (name === "r") [...open].forEach(close);
      else if (Number(value) > 0) begin(name!);
      else close(name!);
    }
  }
  for (const tag of open.toReversed()) text += `</${tag}>`;
  return { settings: isTop ? "line:0" : "", text };
}

/** Text without codes, as WebVTT writes it. */
function plain(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll("\\N", "\n").replaceAll("\\n", "\n").replaceAll("\\h", " ");
}

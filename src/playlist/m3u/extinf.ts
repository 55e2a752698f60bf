/** Reads and writes the text of `#EXTINF` and `#EXTM3U` lines. */

/** Most attributes of one line; real lines have a dozen. */
const MAX_ATTRIBUTES = 64;
const ATTRIBUTE =
  /([A-Za-z][\w.-]{0,63})(?:\s?=\s?"((?:[^"\\]|\\.)*\\"(?:[^"\\]|\\.)*)"(?=[\s,]|$)|\s?=\s?"([^"]*)"|\s?=\s?'([^']*)'|=([^\s"',]*))/y;
/** Matches attributes after a comma: some lists put one before them, too. */
const ATTRIBUTE_AFTER_COMMA = /^\s*[A-Za-z][\w.-]{0,63}\s?=\s?"[^"]*"/;

/** They look like a comma and a quote, and are none to any reader: a single low quotation mark, a letter of few languages. */
const LOW_COMMA = "\u201a";
const LETTER_QUOTE = "\u02ee";

/** A line's parts. */
export interface ExtInf {
  readonly durationSeconds: number;
  readonly attributes: Record<string, string>;
  readonly title: string;
}

/**
 * Reads attributes in `text` from `start` to the comma that ends them; `end` is the comma's index, -1 without one. `after` is
 * the index after the last attribute.
 */
export function readAttributes(
  text: string,
  start = 0,
): { attributes: Record<string, string>; end: number; after: number } {
  const attributes: Record<string, string> = {};
  let count = 0;
  let at = start;
  let after = start;
  while (at < text.length) {
    const char = text[at]!;
    if (char === ",") return { attributes, end: at, after };
    if (/[A-Za-z]/.test(char)) {
      ATTRIBUTE.lastIndex = at;
      const match = ATTRIBUTE.exec(text);
      if (match !== null) {
        if (count++ < MAX_ATTRIBUTES) {
          addAttribute(attributes, match[1]!.toLowerCase(), valueOf(match));
        }
        at = after = ATTRIBUTE.lastIndex;
        continue;
      }
      // Skip the whole word, so that its tail is not taken for a name.
      while (at + 1 < text.length && /[\w.-]/.test(text[at + 1]!)) at++;
    }
    at++;
  }
  return { attributes, end: -1, after };
}

/**
 * A quote inside a value may stand behind a backslash. Likenesses that `writeExtInf` and `writeAttributes` made are turned
 * back: a low quotation mark after a word is no German quote.
 */
function valueOf([, , escaped, double, single, bare]: RegExpExecArray): string {
  const value = (escaped?.replaceAll('\\"', '"') ?? double ?? single ?? bare ?? "").trim();
  return value.replaceAll(LETTER_QUOTE, '"').replace(/(?<=[^\s(])\u201a/g, ",");
}

/** `value` without commas, for players that take what follows the first one for the title, in quotes or not, as mpv and VLC do. */
function withoutCommas(value: string): string {
  if (/^data:/i.test(value)) return value;
  return /^https?:/i.test(value) ? value.replaceAll(",", "%2C") : value.replace(/(?<=[^\s(]),/g, LOW_COMMA);
}

/** Of an attribute that a line repeats the first value counts, as in players; several groups are several groups. */
function addAttribute(attributes: Record<string, string>, name: string, value: string): void {
  const before = attributes[name];
  if (!before) attributes[name] = value;
  else if (name === "group-title" && value !== "") attributes[name] = `${before};${value}`;
}

/** Reads what follows `#EXTINF:`. Never fails: missing parts are -1 or empty. */
export function readExtInf(text: string): ExtInf {
  // U+FF0C is the wide comma.
  const duration = /^\s*(-?\d{1,9}(?:\.\d{1,9})?)(?=[\s,\uFF0C]|$)/.exec(text);
  const seconds = Number(duration?.[1] ?? -1);
  const durationSeconds = seconds < 0 ? -1 : Math.round(seconds * 1000) / 1000;
  const start = duration?.[0].length ?? 0;
  const first = readAttributes(text, start);
  const { attributes } = first;
  let { end } = first;
  if (end === -1) {
    // An unclosed quote swallowed the comma, or it is a wide one, or there is none.
    const comma = text.lastIndexOf(",");
    const title = comma >= start ? text.slice(comma + 1) : text.slice(first.after).replace(/^\s*\uFF0C/, "");
    return { durationSeconds, attributes, title: title.replaceAll('"', "").trim() };
  }
  for (let rounds = 0; rounds < MAX_ATTRIBUTES && ATTRIBUTE_AFTER_COMMA.test(text.slice(end + 1)); rounds++) {
    const more = readAttributes(text, end + 1);
    if (more.end === -1) break;
    for (const [name, value] of Object.entries(more.attributes)) addAttribute(attributes, name, value);
    end = more.end;
  }
  return { durationSeconds, attributes, title: text.slice(end + 1).trim() };
}

/**
 * ` name="value"` for each attribute. Line ends become spaces, and double quotes their likeness: Kodi, like many, reads no
 * other form of value.
 */
export function writeAttributes(attributes: Readonly<Record<string, string>>): string {
  let text = "";
  for (const [name, raw] of Object.entries(attributes)) {
    if (/^[A-Za-z][\w.-]{0,63}$/.test(name)) text += ` ${name}="${oneLine(raw).replaceAll('"', LETTER_QUOTE)}"`;
  }
  return text;
}

/**
 * The whole `#EXTINF` line. Commas in values are written so that each player finds the title, except in `tvg-id`: it has to
 * equal the channel's id in the guide.
 */
export function writeExtInf({ durationSeconds, attributes, title }: ExtInf): string {
  const values = Object.entries(attributes).map(([name, value]) => [
    name,
    name === "tvg-id" ? value : withoutCommas(value),
  ]);
  return `#EXTINF:${durationSeconds}${writeAttributes(Object.fromEntries(values))},${safeTitle(title)}`;
}

/** Makes a title that no reader takes for attributes: one line; if it begins like an attribute, its quotes become single. */
export function safeTitle(title: string): string {
  const name = oneLine(title);
  return ATTRIBUTE_AFTER_COMMA.test(name) ? name.replaceAll('"', "'") : name;
}

/** Control characters except the tab, and Unicode's line separators: readers of lists break lines at many of them. */
// deno-lint-ignore no-control-regex
const LINE_BREAKING = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]+/g;

/** `text` as one trimmed line, whatever characters its reader takes for line ends. */
export function oneLine(text: string): string {
  return text.replace(LINE_BREAKING, " ").trim();
}

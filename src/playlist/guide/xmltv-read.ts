/**
 * Reads XMLTV guides of any size in bounded memory: bytes in, channels and programmes out.
 *
 * The parser is htmlparser2: it streams, and takes guides as they are, with bare ampersands and unclosed elements. It knows
 * no entities but those of XML, so a document can define none. The readers of XMLTV on npm need the whole text at once,
 * and lose times that are written in other ways than theirs.
 */
import { Parser } from "htmlparser2";
import { asUtf8 } from "../../bytes/as-utf8.ts";
import { isTurnDue, nextTurn } from "../../bytes/turn.ts";
import { abortError, MillraceError } from "../../errors.ts";
import { readXmltvTime } from "./xmltv-time.ts";

/** A channel of a guide. */
export interface XmltvChannel {
  readonly kind: "channel";
  /** As the guide writes it. */
  readonly id: string;
  readonly names: readonly string[];
  /** Address of its picture; empty: none. */
  readonly icon: string;
}

/** What a programme is called in one language. */
export interface XmltvText {
  /** As the guide writes it (`de`, `en-GB`); empty: unknown. */
  readonly lang: string;
  readonly title: string;
  readonly subtitle: string;
  readonly description: string;
}

/** A programme. Times are Unix seconds. */
export interface XmltvProgramme {
  readonly kind: "programme";
  /** The channel's id. */
  readonly channel: string;
  readonly start: number;
  /** Null: not stated. Always later than `start`. */
  readonly stop: number | null;
  /** One per language of its titles, in their order; at least one. */
  readonly texts: readonly XmltvText[];
  readonly categories: readonly string[];
  /** Address of its picture; empty: none. */
  readonly icon: string;
  /** `S02E05`, or as the guide writes it; empty: unknown. */
  readonly episode: string;
  /** Of its production; null: unknown. */
  readonly year: number | null;
}

/** What the reader yields. */
export type XmltvEvent = XmltvChannel | XmltvProgramme;

/** Options of `readXmltv`. */
export interface ReadXmltvOptions {
  /** True for channels whose programmes nobody wants: they are read past, in half the time. */
  readonly isUnwanted?: (channel: string) => boolean;
  readonly signal?: AbortSignal;
}

/** Characters parsed between two checks of the clock: less than a millisecond. */
const SLICE_CHARS = 16 * 1024;
/** Longest tag, comment or reference, characters. */
const MAX_TOKEN_CHARS = 256 * 1024;
/** Most characters without a tag. */
const MAX_GAP_CHARS = 1024 * 1024;
/** Elements around each other; those of XMLTV are 5 deep. */
const MAX_DEPTH = 32;
/** Most channels and programmes of one guide; the largest guides have some 2 million. */
const MAX_RECORDS = 6_000_000;

/** Longest id, characters; a channel or programme with a longer one is left out. */
const MAX_ID_CHARS = 200;
/** Longest text of each kind, characters; the rest is cut off. */
const MAX_TITLE_CHARS = 500;
const MAX_DESCRIPTION_CHARS = 4000;
const MAX_URL_CHARS = 2048;
/** Most names, languages and categories. */
const MAX_NAMES = 16;
const MAX_LANGUAGES = 4;
const MAX_CATEGORIES = 8;

/** Elements of a record whose text is read. */
const FIELDS: Readonly<Record<string, number>> = {
  "display-name": MAX_TITLE_CHARS,
  title: MAX_TITLE_CHARS,
  "sub-title": MAX_TITLE_CHARS,
  desc: MAX_DESCRIPTION_CHARS,
  category: MAX_TITLE_CHARS,
  "episode-num": MAX_TITLE_CHARS,
  date: MAX_TITLE_CHARS,
};

/**
 * Yields channels and programmes in the order of the guide, several at a time; programmes without a start or a title, and
 * channels without an id, are left out. Throws `invalid_argument` for anything but a whole XMLTV document (what came before is
 * yielded), `too_large` beyond 6 million elements, `aborted`. Other tasks get turns. Leaving the loop cancels `chunks`.
 */
export async function* readXmltv(
  chunks: AsyncIterable<Uint8Array>,
  { isUnwanted = () => false, signal }: ReadXmltvOptions = {},
): AsyncGenerator<readonly XmltvEvent[]> {
  const reading = new Reading(isUnwanted);
  const decoder = new TextDecoder();
  for await (const chunk of asUtf8(chunks)) {
    const text = decoder.decode(chunk, { stream: true });
    for (let at = 0; at < text.length; at += SLICE_CHARS) {
      const events = reading.parse(text.slice(at, at + SLICE_CHARS));
      if (events.length > 0) yield events;
      if (isTurnDue()) await nextTurn();
      if (signal?.aborted) throw abortError(signal);
    }
  }
  const events = reading.end();
  if (events.length > 0) yield events;
  reading.requireWhole();
}

/** A channel or programme whose end was not read yet. */
interface Begun {
  readonly element: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly names: string[];
  readonly titles: Said[];
  readonly subtitles: Said[];
  readonly descriptions: Said[];
  readonly categories: string[];
  icon: string;
  episode: string;
  episodeSystem: string;
  date: string;
}

interface Said {
  readonly lang: string;
  readonly text: string;
}

/** The parsed part of one guide. */
class Reading {
  readonly #isUnwanted: (channel: string) => boolean;
  readonly #parser: Parser;
  #events: XmltvEvent[] = [];
  #depth = 0;
  #records = 0;
  /** Characters written, and where the last tag began or ended. */
  #written = 0;
  #lastTag = 0;
  #isWhole = false;
  /** The record under way, and the field of it whose text is being read. */
  #record: Begun | null = null;
  #field: { readonly name: string; readonly attributes: Readonly<Record<string, string>>; text: string } | null = null;

  constructor(isUnwanted: (channel: string) => boolean) {
    this.#isUnwanted = isUnwanted;
    this.#parser = new Parser({
      onopentag: (name, attributes) => this.#opened(name, attributes),
      ontext: (text) => this.#said(text),
      onclosetag: (name, isImplied) => this.#closed(name, isImplied),
    }, { xmlMode: true, decodeEntities: true });
  }

  /** Parses more text; returns what ended in it. */
  parse(text: string): readonly XmltvEvent[] {
    this.#written += text.length;
    this.#parser.write(text);
    if (this.#written - this.#parser.endIndex > MAX_TOKEN_CHARS || this.#written - this.#lastTag > MAX_GAP_CHARS) {
      throw noGuide("it has text of great length where a guide has elements");
    }
    return this.#taken();
  }

  /** Ends the document; returns what was left. */
  end(): readonly XmltvEvent[] {
    this.#record = null;
    this.#parser.end();
    return this.#taken();
  }

  /** Throws unless the document's element was there and ended. */
  requireWhole(): void {
    if (!this.#isWhole) throw noGuide(this.#lastTag === 0 ? "it is empty" : "it breaks off in the middle");
  }

  #taken(): readonly XmltvEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #opened(name: string, attributes: Readonly<Record<string, string>>): void {
    this.#lastTag = this.#written;
    if (this.#depth === 0 && name !== "tv") {
      throw noGuide(/^(?:!doctype|html)$/i.test(name) ? "it is a web page" : "its first element is not <tv>");
    }
    if (++this.#depth > MAX_DEPTH) throw noGuide("its elements are nested far too deep");
    if (this.#depth === 2) {
      this.#record = name === "programme" || name === "channel" ? this.#begun(name, attributes) : null;
    } else if (this.#depth === 3 && this.#record !== null) {
      if (name === "icon" && this.#record.icon === "") this.#record.icon = pictureAddress(attributes["src"] ?? "");
      else if (Object.hasOwn(FIELDS, name)) this.#field = { name, attributes, text: "" };
    }
  }

  #begun(element: string, attributes: Readonly<Record<string, string>>): Begun | null {
    if (++this.#records > MAX_RECORDS) {
      throw new MillraceError("too_large", `the guide has more than ${MAX_RECORDS} channels and programmes`);
    }
    const id = idOf(element, attributes);
    if (id === "" || element === "programme" && this.#isUnwanted(id)) return null;
    return {
      element,
      attributes,
      names: [],
      titles: [],
      subtitles: [],
      descriptions: [],
      categories: [],
      icon: "",
      episode: "",
      episodeSystem: "",
      date: "",
    };
  }

  #said(text: string): void {
    const field = this.#field;
    // White space in front is trimmed later; a guide that has nothing else has an empty text then.
    if (field !== null && field.text.length < FIELDS[field.name]!) field.text += text;
  }

  #closed(name: string, isImplied: boolean): void {
    this.#lastTag = this.#written;
    this.#depth--;
    if (this.#depth === 2) {
      if (this.#field !== null && this.#record !== null) addField(this.#record, this.#field);
      this.#field = null;
    } else if (this.#depth === 1) {
      const event = this.#record === null ? null : made(this.#record);
      if (event !== null) this.#events.push(event);
      this.#record = null;
    } else if (this.#depth === 0) {
      this.#isWhole ||= name === "tv" && !isImplied;
    }
  }
}

function idOf(element: string, attributes: Readonly<Record<string, string>>): string {
  const id = (attributes[element === "channel" ? "id" : "channel"] ?? "").trim();
  return id.length <= MAX_ID_CHARS ? id : "";
}

function addField(
  record: Begun,
  { name, attributes, text: raw }: { name: string; attributes: Readonly<Record<string, string>>; text: string },
): void {
  const text = raw.replace(/\s+/g, " ").trim().slice(0, FIELDS[name]);
  if (text === "") return;
  const said = { lang: (attributes["lang"] ?? "").slice(0, 16), text };
  if (name === "display-name") addOnce(record.names, text, MAX_NAMES);
  else if (name === "title") addSaid(record.titles, said);
  else if (name === "sub-title") addSaid(record.subtitles, said);
  else if (name === "desc") addSaid(record.descriptions, said);
  else if (name === "category") addOnce(record.categories, text, MAX_CATEGORIES);
  else if (name === "date") record.date = text;
  else addEpisode(record, attributes["system"] ?? "onscreen", text);
}

/** The form for people is kept, or what is made of the one for programs. */
function addEpisode(record: Begun, system: string, text: string): void {
  if (record.episodeSystem === "onscreen" && record.episode !== "") return;
  const episode = system === "xmltv_ns" ? onScreen(text) : system === "onscreen" ? text : "";
  if (episode === "") return;
  record.episode = episode.slice(0, 64);
  record.episodeSystem = system;
}

/** `S02E05` of `1.4.0/1`, whose numbers count from 0; either may be missing. */
function onScreen(text: string): string {
  const [season, episode] = text.split(".").map((part) => /^\s*(\d{1,5})/.exec(part)?.[1]);
  const number = (letter: string, value: string | undefined) =>
    value === undefined ? "" : letter + String(Number(value) + 1).padStart(2, "0");
  return number("S", season) + number("E", episode);
}

function addOnce(all: string[], text: string, most: number): void {
  if (all.length < most && !all.includes(text)) all.push(text);
}

function addSaid(all: Said[], said: Said): void {
  if (all.length < MAX_LANGUAGES && !all.some(({ lang }) => lang === said.lang)) all.push(said);
}

function made(record: Begun): XmltvEvent | null {
  const { element, attributes, names, icon, titles, categories, episode, date } = record;
  const id = idOf(element, attributes);
  if (element === "channel") return { kind: "channel", id, names, icon };
  const start = readXmltvTime(attributes["start"] ?? "");
  if (start === null || titles.length === 0) return null;
  const stop = readXmltvTime(attributes["stop"] ?? "");
  // A text without a language, or the only one, is that of every title.
  const matching = (all: readonly Said[], lang: string) =>
    (all.find((one) => one.lang === lang) ?? all.find((one) => one.lang === "") ?? (all.length === 1 ? all[0] : null))
      ?.text ?? "";
  const texts = titles.map(({ lang, text: title }) => ({
    lang,
    title,
    subtitle: matching(record.subtitles, lang),
    description: matching(record.descriptions, lang),
  }));
  const year = /^(?:19|20|21)\d\d/.exec(date)?.[0];
  return {
    kind: "programme",
    channel: id,
    start,
    stop: stop !== null && stop > start ? stop : null,
    texts,
    categories,
    icon,
    episode,
    year: year === undefined ? null : Number(year),
  };
}

function pictureAddress(text: string): string {
  const url = text.trim();
  return /^https?:\/\/./i.test(url) && url.length <= MAX_URL_CHARS ? url : "";
}

function noGuide(why: string): MillraceError {
  return new MillraceError("invalid_argument", `invalid guide: ${why}`);
}

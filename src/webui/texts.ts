/** The page's texts in the user's language. The next language is one file, and one line here. */
import { mistakeOf } from "./naming.ts";
import { EN, type Texts } from "./texts/en.ts";

/**
 * The languages by their tags (BCP 47 primary subtag), with their own names. English is part of the page; the others are
 * loaded when they are needed.
 */
export const LANGUAGES: Readonly<Record<string, string>> = {
  en: "English",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  it: "Italiano",
  pt: "Português",
  ru: "Русский",
  zh: "中文",
};

/** The first of `languages` that there is a catalogue for; English without one. */
export function chooseLanguage(languages: readonly string[]): string {
  return languages.map((language) => language.split("-")[0]!.toLowerCase()).find((name) => name in LANGUAGES) ?? "en";
}

let texts: Texts = EN;
let language = "en";

/** Takes a catalogue; `chosen` is its language, one that `chooseLanguage` returned. */
export function setLanguage(chosen: string, catalogue: Texts): void {
  language = chosen;
  texts = catalogue;
}

/** A text with its gaps filled in. */
export function text(key: keyof Texts, ...values: readonly (string | number)[]): string {
  return texts[key].replace(/\{(\d)\}/g, (_, n) => String(values[Number(n)] ?? ""));
}

/** Why it waits, in words; null for a reason that has none. */
export function reasonText(reason: string): string | null {
  return reason in texts ? text(reason as keyof Texts) : null;
}

/** What `get_media_files` says of a magnet whose description nobody sent, once the search for it is over. */
export const UNTOLD = "no peer sent the torrent's description in time";

/** Codes of the page's own beside those of the API. */
const OWN_CODES = { media: 11, disk: 12, faults: 13, clocks: 14 };
/** Code of the page's own for too many passwords in a row. */
export const TOO_OFTEN = 15;
/** Codes of the API, and those of the page's own, by the code of the engine's error. */
const API_CODES: Readonly<Record<string, number>> = {
  ...{ bad_media: OWN_CODES.media, unsupported_media: OWN_CODES.media, no_playable_file: OWN_CODES.media },
  ...{ invalid_argument: 3, bad_transport_file: 3, too_large: 3, denied: 4, not_found: 5, closed: 5 },
  ...{ timeout: 6, start_timeout: 6, aborted: 6, conflict: 8, too_busy: 9, unavailable: 9, connection_failed: 9 },
  ...{ protocol_violation: 9, tracker: 9, disk_full: OWN_CODES.disk, io: OWN_CODES.disk },
  ...{ corrupt: 10, config: 10, internal: 10 },
};

/** The code that `failureText` takes, for that of an error of the engine; null: the page has no words for it. */
export function codeOf(error: string | null): number | null {
  return API_CODES[error ?? ""] ?? null;
}

/**
 * The same for a session that goes on: there the file plays with faults (`corrupt`), and clocks that do not agree are the only
 * clash (`conflict`).
 */
export function sessionCodeOf(error: string | null): number | null {
  if (error === "corrupt") return OWN_CODES.faults;
  return error === "conflict" ? OWN_CODES.clocks : codeOf(error);
}

/**
 * What the engine said of a failure, in the page's words: `code` is that of the API, where it is known. The engine's own
 * words are English, and there they say more than the code.
 */
export function failureText(message: string, code: number | null = null): string {
  const reason = /^start timeout: (\w+)$/.exec(message)?.[1];
  if (message === UNTOLD) return text("gaveUp", text("no_metadata"));
  if (reason !== undefined) return text("gaveUp", reasonText(reason) ?? reason);
  const key = `error_${code === 7 ? 1 : code}`;
  return text("failed", language !== "en" && key in texts ? text(key as keyof Texts) : message);
}

/**
 * The same of a list that was fetched or imported; `error` is the code of the engine's error, null where an older engine noted
 * none. What helps most is in the engine's words: the server's answer, and what was lost.
 */
export function listFailureText(message: string, error: string | null): string {
  const status = /^the server answered (\d{3})/.exec(message)?.[1];
  const [, lost, all] = /^the list lacks (\d+) of its (\d+) items/.exec(message) ?? [];
  if (language === "en") return text("failed", message);
  if (status !== undefined) return text(status === "401" ? "listLogin" : "listStatus", status);
  if (lost !== undefined) return text("listShrunk", lost, all!);
  return /^invalid playlist|^the list has no entries/.test(message)
    ? text("noList")
    : failureText(message, codeOf(error));
}

/** What the engine says of lines of a list, and the page's own words. */
const LINE_WORDS: readonly (readonly [said: string, key: keyof Texts])[] = [
  ["no address follows", "lineNoAddress"],
  ["the line is too long", "lineTooLong"],
  ["the address is too long", "lineAddressTooLong"],
  ["not an address that can be played", "lineNotPlayable"],
];

/** The same of a line of a list, after the name of the list where it stands before it. */
export function lineText(message: string): string {
  const [said, key] = LINE_WORDS.find(([said]) => message.endsWith(said)) ?? ["", null];
  return key === null ? message : message.slice(0, message.length - said.length) + text(key);
}

/** What to say of `error`: a failed call, or whatever else was thrown. */
export function errorText(error: unknown): string {
  const { message = "", code = null } = (error ?? {}) as { message?: string; code?: unknown };
  return message === "" ? text("engineGone") : failureText(message, typeof code === "number" ? code : null);
}

/** What somebody pasted that names no content: what it was taken for, and what would do. Null: it may name some. */
export function mistakeText(pasted: string): string | null {
  const mistake = mistakeOf(pasted);
  return mistake === null ? null : text(mistake.kind, ...mistake.values);
}

/** A number of items or channels. */
export function countText(what: "items" | "channels", count: number): string {
  return count === 1 ? text(what === "items" ? "oneItem" : "oneChannel") : text(what, count);
}

/** A Unix time in seconds as people of the page's language write it. */
export function timeText(unixS: number): string {
  const style = { dateStyle: "medium", timeStyle: "short" } as const;
  return new Intl.DateTimeFormat(language, style).format(new Date(unixS * 1000));
}

/** The time of day of a Unix time in seconds. */
export function hourText(unixS: number): string {
  return new Intl.DateTimeFormat(language, { timeStyle: "short" }).format(new Date(unixS * 1000));
}

/** The day of a Unix time in seconds. */
export function dayText(unixS: number): string {
  const style = { weekday: "long", day: "numeric", month: "long" } as const;
  return new Intl.DateTimeFormat(language, style).format(new Date(unixS * 1000));
}

/** Bytes with a unit that people read. */
export function bytesText(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** A language by its name in that of the page; its tag where it has none. */
export function languageText(tag: string): string {
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** About how long something takes: ten seconds and more in steps of ten, from a minute and a half on in whole minutes. */
export function durationText(seconds: number): string {
  const isLong = seconds >= 90;
  const value = isLong ? Math.round(seconds / 60) : seconds > 10 ? Math.ceil(seconds / 10) * 10 : Math.ceil(seconds);
  const unit = isLong ? "minute" : "second";
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "short" }).format(value);
}

/** Seconds with their sign, as a delay has them. */
export function secondsText(seconds: number): string {
  const style = { style: "unit", unit: "second", unitDisplay: "narrow", signDisplay: "exceptZero" } as const;
  return new Intl.NumberFormat(language, style).format(seconds);
}

/** Seconds as a clock shows them. */
export function clockText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

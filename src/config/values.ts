/**
 * Kinds of option values: how text becomes a typed value and how `--help` describes it. A parser throws a plain `Error`
 * whose message completes the sentence "--flag …"; the caller adds the name.
 */
import { exactOrigin } from "../bytes/origin.ts";
import { parseProxy } from "../bytes/proxy-url.ts";
import { trimEndOf } from "../bytes/trim.ts";

/** Reads values of one kind. */
export interface ValueKind<T> {
  /** Placeholder in `--help`; empty for flags that take no value. */
  readonly placeholder: string;
  /** The value of `text`. Throws an `Error` that describes the expected form. */
  parse(text: string): T;
  /** How a default is shown. */
  format(value: T): string;
}

/** Longest value accepted, characters: longer ones are mistakes or attacks. */
const MAX_VALUE_CHARS = 4096;

/** Longest list accepted. */
const MAX_LIST_ITEMS = 256;

function expected(what: string, text: string): Error {
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  return new Error(`needs ${what}, not ${JSON.stringify(shown)}`);
}

/** A kind from a function that returns undefined for text that it does not accept. */
function kind<T>(
  placeholder: string,
  what: string,
  read: (text: string) => T | undefined,
  format: (value: T) => string = String,
): ValueKind<T> {
  return {
    placeholder,
    parse(text) {
      const value = text.length > MAX_VALUE_CHARS ? undefined : read(text.trim());
      if (value === undefined) throw expected(what, text);
      return value;
    },
    format,
  };
}

const TRUE = new Set(["1", "true", "yes", "on"]);
const FALSE = new Set(["0", "false", "no", "off"]);

/** On or off. On the command line the bare flag means on. */
export const boolean: ValueKind<boolean> = kind("", "true or false", (text) => {
  const word = text.toLowerCase();
  return TRUE.has(word) ? true : FALSE.has(word) ? false : undefined;
});

/** A switch whose flag is named `no-…`: giving the flag means false. */
export const negated: ValueKind<boolean> = {
  placeholder: "",
  parse: (text) => !boolean.parse(text),
  format: (value) => String(!value),
};

/** Any text that is not empty. */
export function text(placeholder: string): ValueKind<string> {
  return kind(placeholder, "a value", (value) => value === "" ? undefined : value);
}

/** A value that may be omitted; then null. */
export function optional<T>(inner: ValueKind<T>): ValueKind<T | null> {
  return { ...inner, format: (value) => value === null ? "" : inner.format(value) };
}

/** One of several words. */
export function choice<T extends string>(...words: readonly T[]): ValueKind<T> {
  const what = words.slice(0, -1).join(", ") + " or " + words[words.length - 1];
  return kind(words.join("|"), what, (value) => words.find((word) => word === value.toLowerCase()));
}

/** Whether what peers share comes before or after addresses; `library`: neither, as they stand there. */
export const channelOrder = choice("library", "peers-first", "peers-last");

/** A whole number in [min, max]. */
export function integer(min: number, max: number): ValueKind<number> {
  return kind("N", `a whole number from ${min} to ${max}`, (value) => {
    if (!/^\d{1,15}$/.test(value)) return undefined;
    const number = Number(value);
    return number >= min && number <= max ? number : undefined;
  });
}

/** A port, 0–65535; 0 picks a free one. */
export const port: ValueKind<number> = { ...integer(0, 65535), placeholder: "PORT" };

/** One of several words, and the port that may follow it. */
export function withPort<T extends string>(
  ...words: readonly T[]
): ValueKind<{ readonly name: T; readonly port: number | null }> {
  const name = choice(...words);
  return {
    placeholder: "NAME[=PORT]",
    parse(text) {
      const at = text.indexOf("=");
      if (at < 0) return { name: name.parse(text), port: null };
      return { name: name.parse(text.slice(0, at)), port: port.parse(text.slice(at + 1)) };
    },
    format: (value) => value.port === null ? value.name : `${value.name}=${value.port}`,
  };
}

/** A literal address or a host name, without brackets. */
export const host: ValueKind<string> = kind("HOST", "a host name or address", (value) => {
  const bare = value.startsWith("[") && value.endsWith("]") ? value.slice(1, -1) : value;
  return /^[0-9A-Za-z._:%-]{1,255}$/.test(bare) ? bare : undefined;
});

/** `host:port` with a port of 1–65535; IPv6 addresses in brackets. */
export const hostPort: ValueKind<string> = kind("HOST:PORT", "host:port", (value) => {
  const match = /^(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._-]+):(\d{1,5})$/.exec(value);
  const number = Number(match?.[2]);
  return match !== null && number >= 1 && number <= 65535 ? value : undefined;
});

/** A host with the port of its web server and, where it wants them, a user and a password. The message of its error hides them. */
export const hostWithPassword: ValueKind<string> = {
  placeholder: "HOST",
  parse(text) {
    const value = text.trim();
    const url = value.length <= MAX_VALUE_CHARS && URL.canParse(`http://${value}`) ? new URL(`http://${value}`) : null;
    if (url === null || url.hostname === "" || /[/?#\\]/.test(value)) {
      throw new Error("needs [user:password@]host[:port], with special characters of the password percent-encoded");
    }
    return value;
  },
  format: () => "",
};

/** A proxy. The message of its error hides what may be a password. */
export const proxy: ValueKind<string> = {
  placeholder: "URL",
  parse(text) {
    const value = text.trim().slice(0, MAX_VALUE_CHARS + 1);
    parseProxy(value);
    return value;
  },
  format: () => "",
};

/** An absolute URL with one of the `schemes`, without a trailing slash. */
export function url(...schemes: readonly string[]): ValueKind<string> {
  return kind("URL", `an absolute ${schemes.join(", ")} URL`, (value) => {
    const parsed = URL.canParse(value) ? new URL(value) : undefined;
    if (parsed === undefined || !schemes.includes(parsed.protocol.slice(0, -1)) || parsed.hostname === "") {
      return undefined;
    }
    return trimEndOf(value, "/");
  });
}

/** The origin of a page. `null` and `*` are refused: each matches any page. */
export const origin: ValueKind<string> = kind(
  "ORIGIN",
  "one origin such as https://tv.example:8443",
  (value) => exactOrigin(value) ?? undefined,
);

/** A path component made of letters, digits, `-` and `_`. */
export const pathName: ValueKind<string> = kind(
  "NAME",
  "letters, digits, - or _",
  (value) => /^[0-9A-Za-z][0-9A-Za-z_-]{0,63}$/.test(value) ? value : undefined,
);

/** Several values, separated by commas or white space; the flag may be repeated. */
export function list<T>(inner: ValueKind<T>): ValueKind<readonly T[]> {
  return {
    placeholder: inner.placeholder,
    parse(text) {
      const items = text.split(/[\s,]+/).filter((item) => item !== "");
      if (items.length > MAX_LIST_ITEMS) throw new Error(`takes at most ${MAX_LIST_ITEMS} values`);
      return items.map((item) => inner.parse(item));
    },
    format: (values) => values.map((value) => inner.format(value)).join(","),
  };
}

const SIZE_UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

const BIT_UNITS: Readonly<Record<string, number>> = { bit: 1 / 8, kbit: 125, mbit: 125e3, gbit: 125e6 };

const TIME_UNITS: Readonly<Record<string, number>> = {
  "": 1000,
  ms: 1,
  s: 1000,
  m: 60e3,
  min: 60e3,
  h: 3600e3,
  d: 86400e3,
};

function withUnit(value: string, units: Readonly<Record<string, number>>): number | undefined {
  const match = /^(\d{1,15}(?:\.\d{1,9})?) ?([a-z]*)$/i.exec(value);
  const unit = match === null ? undefined : own(units, match[2]!.toLowerCase());
  const number = unit === undefined ? NaN : Math.round(Number(match![1]) * unit);
  return Number.isSafeInteger(number) ? number : undefined;
}

function own(units: Readonly<Record<string, number>>, name: string): number | undefined {
  return Object.hasOwn(units, name) ? units[name] : undefined;
}

/** The largest unit that yields a whole number. */
function inUnits(value: number, names: readonly string[], units: Readonly<Record<string, number>>): string {
  const name = names.find((candidate) =>
    value >= units[candidate.toLowerCase()]! && value % units[candidate.toLowerCase()]! === 0
  );
  return value === 0 || name === undefined ? String(value) : `${value / units[name.toLowerCase()]!}${name}`;
}

/** Bare numbers below this lack their unit: nobody wants so few bytes. 0 has a meaning of its own. */
const MIN_BARE_SIZE = 2 ** 20;
/** The same for bytes per second. */
const MIN_BARE_RATE = 1024;

/** `inner`, which refuses bare numbers from 1 to before `min` and suggests `unit`. */
function withoutLostUnit(inner: ValueKind<number>, min: number, unit: string): ValueKind<number> {
  return {
    ...inner,
    parse(text) {
      const value = inner.parse(text);
      const number = text.trim();
      if (value === 0 || value >= min || !/^[\d.]+$/.test(number)) return value;
      throw new Error(`needs a unit: ${number} alone is ${number} bytes; did you mean ${number}${unit}?`);
    },
  };
}

/** Bytes: `512MiB`, `2GB`, or a bare number that is not small. */
export const size: ValueKind<number> = withoutLostUnit(
  kind(
    "SIZE",
    "a size such as 512MiB or 2GB",
    (value) => withUnit(value, SIZE_UNITS),
    (value) => inUnits(value, ["TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB"], SIZE_UNITS),
  ),
  MIN_BARE_SIZE,
  "GiB",
);

/** Bytes: a multiple of `step` up to `max`. */
export function sizeInSteps(step: number, max: number): ValueKind<number> {
  return kind("SIZE", `a multiple of ${size.format(step)} up to ${size.format(max)}`, (value) => {
    const bytes = withUnit(value, SIZE_UNITS);
    return bytes !== undefined && bytes >= step && bytes <= max && bytes % step === 0 ? bytes : undefined;
  }, size.format);
}

/** Bytes per second: `2MB/s`, `16Mbit/s`, or a bare number that is not small. */
export const rate: ValueKind<number> = withoutLostUnit(
  kind(
    "RATE",
    "a rate such as 2MB/s or 16Mbit/s",
    (value) => withUnit(value.replace(/\/s$/i, ""), { ...SIZE_UNITS, ...BIT_UNITS }),
    (value) => value === 0 ? "0" : `${size.format(value)}/s`,
  ),
  MIN_BARE_RATE,
  "MB/s",
);

/** Milliseconds, from `30s`, `500ms`, `2m`, `1h`, or a bare number of seconds. */
export const duration: ValueKind<number> = kind(
  "TIME",
  "a time such as 30s or 2m",
  (value) => withUnit(value, TIME_UNITS),
  (value) => inUnits(value, ["h", "m", "s", "ms"], TIME_UNITS),
);

/** Seconds of a film in the forms of `duration`, 1 s to 2 h, or a word. */
export const cushion: ValueKind<"auto" | "off" | number> = kind(
  "auto|off|TIME",
  "auto, off or a time from 1s to 2h",
  (text) => {
    const word = text.toLowerCase();
    if (word === "auto" || word === "off") return word;
    const ms = withUnit(text, TIME_UNITS);
    return ms !== undefined && ms >= 1000 && ms <= 7_200_000 ? ms / 1000 : undefined;
  },
);

/** Milliseconds, in the forms of `duration`, from `min` to `max`. */
export function durationBetween(min: number, max: number): ValueKind<number> {
  return kind(
    "TIME",
    `a time from ${duration.format(min)} to ${duration.format(max)}`,
    (value) => {
      const ms = withUnit(value, TIME_UNITS);
      return ms !== undefined && ms >= min && ms <= max ? ms : undefined;
    },
    duration.format,
  );
}

/** Addresses of what a channel sent earlier, as lists describe them: the attributes `catchup…` of `#EXTINF`. */

/** What is asked for, Unix seconds. */
export interface CatchupTime {
  readonly startS: number;
  /** How long it lasts, s. */
  readonly durationS: number;
  readonly nowS: number;
}

/** Longest address that is made, characters. */
const MAX_CHARS = 8192;
const DAY_S = 86_400;
const USUAL_DAYS = 7;
/** More than any archive has. */
const MAX_DAYS = 365;

/**
 * The address at which the channel of `address` can be watched from `time.startS` on; null where its list says nothing of
 * that, or so long ago is over.
 */
export function catchupAddress(
  address: string,
  attributes: Readonly<Record<string, string>>,
  time: CatchupTime,
): string | null {
  const type = (attributes["catchup"] || attributes["catchup-type"] || "").trim().toLowerCase();
  const source = attributes["catchup-source"] ?? "";
  if (type === "" && source === "") return null;
  const days = Number(attributes["catchup-days"] || attributes["timeshift"] || attributes["tvg-rec"] || 0);
  if (days > 0 && time.nowS - time.startS > days * DAY_S) return null;
  const bar = address.indexOf("|");
  const [url, fields] = bar < 0 ? [address, ""] : [address.slice(0, bar), address.slice(bar)];
  const template = templateOf(type, url, source);
  if (template === null) return null;
  const filled = fill(template, time);
  return filled.length + fields.length > MAX_CHARS || !URL.canParse(filled) ? null : filled + fields;
}

/** How many days of the channel of `address` can be watched, where its list does not say: a week; 0: none. */
export function catchupDays(address: string, attributes: Readonly<Record<string, string>>): number {
  if (catchupAddress(address, attributes, { startS: 0, durationS: 1, nowS: 0 }) === null) return 0;
  const days = Number(attributes["catchup-days"] || attributes["timeshift"] || attributes["tvg-rec"] || 0);
  return days > 0 ? Math.ceil(Math.min(days, MAX_DAYS)) : USUAL_DAYS;
}

/** The address with words in braces; null: it cannot be made. */
function templateOf(type: string, url: string, source: string): string | null {
  switch (type) {
    case "append":
      return source === "" ? null : url + source;
    case "shift":
    case "timeshift":
      return `${url}${url.includes("?") ? "&" : "?"}utc={utc}&lutc={lutc}`;
    case "flussonic":
    case "flussonic-hls":
    case "flussonic-ts":
    case "fs":
      return source !== "" ? absolute(source, url) : flussonic(url, type === "flussonic-ts");
    case "xc":
      return source !== "" ? absolute(source, url) : xtream(url);
    default:
      return source === "" ? null : absolute(source, url);
  }
}

function absolute(source: string, url: string): string | null {
  if (/^https?:\/\//i.test(source)) return source;
  const { origin, pathname } = new URL(url);
  return source.startsWith("/") ? origin + source : origin + pathname.slice(0, pathname.lastIndexOf("/") + 1) + source;
}

/** `http://host/channel/mpegts?token=…` and `http://host/channel/index.m3u8?token=…`. */
function flussonic(url: string, isTs: boolean): string | null {
  const match = /^(https?:\/\/[^/]+\/.+)\/([^/?]+)(\?.*)?$/i.exec(url);
  if (match === null) return null;
  const [, base, file = "", query = ""] = match;
  if (isTs || !/\.m3u8$/i.test(file)) return `${base}/timeshift_abs-{utc}.ts${query}`;
  const name = file.replace(/\.m3u8$/i, "");
  return `${base}/${name === "index" ? "archive" : name}-{utc}-{duration}.m3u8${query}`;
}

/** `http://host[/live]/user/password/number[.ts|.m3u8]`. */
function xtream(url: string): string | null {
  const match = /^(https?:\/\/[^/]+)(?:\/live)?\/([^/]+)\/([^/]+)\/(\d+)(\.\w+)?$/i.exec(url);
  if (match === null) return null;
  const [, host, user, password, number, type = ".ts"] = match;
  return `${host}/timeshift/${user}/${password}/{duration:60}/{Y}-{m}-{d}:{H}-{M}/${number}${type}`;
}

/** The words in `{…}` and `${…}` filled in; others stay as they are. */
function fill(template: string, { startS, durationS, nowS }: CatchupTime): string {
  const start = new Date(startS * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const seconds: Readonly<Record<string, number>> = {
    utc: startS,
    start: startS,
    timestamp: nowS,
    now: nowS,
    lutc: nowS,
    utcend: startS + durationS,
    end: startS + durationS,
    duration: durationS,
    offset: Math.max(0, nowS - startS),
  };
  const parts: Readonly<Record<string, string>> = {
    Y: String(start.getUTCFullYear()),
    m: two(start.getUTCMonth() + 1),
    d: two(start.getUTCDate()),
    H: two(start.getUTCHours()),
    M: two(start.getUTCMinutes()),
    S: two(start.getUTCSeconds()),
  };
  return template.replace(/\$?\{([A-Za-z]+)(?::(\d{1,6}))?\}/g, (whole, name: string, divisor?: string) => {
    const value = seconds[name];
    if (value === undefined) return parts[name] ?? whole;
    return String(Math.floor(value / Math.max(1, Number(divisor ?? 1))));
  });
}

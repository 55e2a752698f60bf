/**
 * Reads extended M3U lists of any size in bounded memory: bytes in, entries and line errors out.
 *
 * The reader is our own. The npm parsers that know the attributes of real lists (iptv-playlist-parser and the like) need
 * the whole text as one string and return one array; those made for HLS (m3u8-parser, hls-parser) do not know them.
 */
import { trimEndOf } from "../../bytes/trim.ts";
import { abortError, MillraceError } from "../../errors.ts";
import { oneLine, readAttributes, readExtInf, safeTitle } from "./extinf.ts";
import { textLines } from "./lines.ts";
import type { M3uEntry, M3uEvent, M3uHeader, M3uLimits } from "./m3u-entry.ts";
import { unpacked } from "./unpack.ts";

/** Options of `readM3u`. */
export interface ReadM3uOptions extends M3uLimits {
  /** Base of relative addresses; without it they are errors. */
  readonly baseUrl?: string;
  readonly signal?: AbortSignal;
}

/** Longest address, characters. */
const MAX_URL_CHARS = 8192;
/** Most guides of one list. */
const MAX_GUIDES = 1000;
/** Most directives of one entry; the rest is left out. */
const MAX_DIRECTIVES = 64;
/** An absolute URL. The scheme has at least two letters: `C:\video.ts` is not a URL. */
const ABSOLUTE = /^[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s]/;
/** Schemes that no list from elsewhere may use. */
const FORBIDDEN = /^(?:javascript|vbscript|data|file|blob|about):/i;
/** Tags of HLS manifests (RFC 8216), which list segments and renditions, not channels. */
const HLS_ONLY = /^#EXT-X-(?:TARGETDURATION|MEDIA-SEQUENCE|STREAM-INF|PART-INF)/;

/** What names content of its own in a line without directives: an address with its authority, a magnet link, a content id. */
const NAMES_CONTENT = /^(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:\/\/[^\s/]|magnet:\?|[0-9a-f]{40}$)/i;
/** Text that servers put in place of an address: markup, JSON. */
const NO_PATH = /^[<{}[\]"]|[<>]/;
/** A relative address that no `#EXTINF` announces must look like a path: messages of servers do not. */
const PATH =
  /^[^\s:/?]*[/?]\S*$|^[^\s:]+\.[a-z0-9]{2,5}$|^[^:]+\.(?:aac|avi|flac|m3u8|m4a|mkv|mov|mp[34]|ogg|ts|wmv)$/i;

/** An event of the reader whose entries are of type `Made`. */
type EventOf<Made> = Exclude<M3uEvent, { kind: "entry" }> | { kind: "entry"; line: number; entry: Made };

/** Makes an entry from its address and the lines before it: the text of `#EXTINF`, its group and other directives. */
type MakeEntry<Made> = (url: string, info: string | null, group: string, directives: readonly string[]) => Made;

/**
 * Yields headers, each of which holds for the entries after it, entries, and errors for lines that could not be used, in order. Throws `too_large`
 * over a limit of bytes, `invalid_argument` for anything but a list (a web page, an HLS manifest, damaged gzip or xz), `aborted`.
 * Servers send errors with status 200, so text is a list only if it has `#EXTM3U` or `#EXTINF`, or begins with an address.
 * Leaving the loop cancels `stream`.
 */
export function readM3u(stream: ReadableStream<Uint8Array>, options: ReadM3uOptions = {}): AsyncGenerator<M3uEvent> {
  return eventsOf(stream, options, entry);
}

/** Counts the entries that `readM3u` would yield, in less than half its time. Rejects as it throws. */
export async function countM3u(stream: ReadableStream<Uint8Array>, options: ReadM3uOptions = {}): Promise<number> {
  let count = 0;
  for await (const event of eventsOf(stream, options, () => null)) if (event.kind === "entry") count++;
  return count;
}

async function* eventsOf<Made>(
  stream: ReadableStream<Uint8Array>,
  options: ReadM3uOptions,
  make: MakeEntry<Made>,
): AsyncGenerator<EventOf<Made>> {
  const maxEntries = options.maxEntries ?? 500_000;
  let info: string | null = null;
  let infoLine = 0;
  let group = "";
  let directives: string[] = [];
  let entries = 0;
  let begun = false;
  let isList = false;
  /** True when a line was neither an address nor a directive before it was known whether this is a list. */
  let isDoubtful = false;
  const fail = (line: number, message: string) => ({ kind: "error" as const, error: { line, message } });
  const reset = () => {
    info = null;
    directives = [];
  };
  const { signal, maxLineBytes } = options;
  for await (const lines of textLines(unpacked(stream, options), { signal, maxLineBytes })) {
    for (const { number, text: raw } of lines) {
      if (signal?.aborted) throw abortError(signal);
      if (raw === null) {
        yield fail(number, "the line is too long");
        continue;
      }
      // Joined lists have byte order marks in their middle.
      const text = oneLine(raw.startsWith("\uFEFF") ? raw.slice(1) : raw);
      if (text === "") continue;
      if (!begun && /^<(?:!doctype|html|\?xml)/i.test(text)) {
        throw new MillraceError("invalid_argument", "invalid playlist: it is a web page or XML document");
      }
      if (HLS_ONLY.test(text)) {
        throw new MillraceError("invalid_argument", "invalid playlist: it is the HLS manifest of one stream");
      }
      begun = true;
      if (/^#EXTM3U(?=[\s:]|$)/i.test(text)) {
        isList = true;
        group = "";
        yield { kind: "header", header: { attributes: readAttributes(withoutCommas(text.slice(7))).attributes } };
      } else if (/^#EXTINF:/i.test(text)) {
        isList = true;
        if (info !== null) yield fail(infoLine, "no address follows");
        info = text.slice(8);
        infoLine = number;
      } else if (/^#EXTGRP:/i.test(text)) {
        // It holds for all entries until the next one, which may be empty.
        group = text.slice(8).trim();
      } else if (/^#(?:EXT|KODIPROP)[\w-]*:/i.test(text)) {
        if (directives.length < MAX_DIRECTIVES) directives.push(text);
      } else if (!text.startsWith("#")) {
        if (!isList) {
          if (!NAMES_CONTENT.test(text)) isDoubtful = true;
          else if (isDoubtful) throw noList();
          else isList = true;
        }
        const url = isList ? address(text, options.baseUrl, info !== null) : null;
        if (url === null) {
          yield fail(
            number,
            text.length > MAX_URL_CHARS ? "the address is too long" : "not an address that can be played",
          );
        } else if (++entries > maxEntries) {
          yield fail(number, `the list has more than ${maxEntries} entries; the rest is left out`);
          return;
        } else {
          yield { kind: "entry", line: number, entry: make(url, info, group, directives) };
        }
        reset();
      }
    }
  }
  if (isDoubtful && !isList) throw noList();
  if (info !== null) yield fail(infoLine, "no address follows");
}

function noList(): MillraceError {
  return new MillraceError("invalid_argument", "invalid playlist: it neither has #EXTM3U nor begins with an address");
}

/** Guides that a header names, each once, in their order. */
export function guidesOf(header: M3uHeader): string[] {
  const guides = new Set<string>();
  for (const name of ["url-tvg", "x-tvg-url", "tvg-url", "url-epg"]) {
    // Commas and semicolons may be parts of an address.
    for (const part of (header.attributes[name] ?? "").split(/[\s,;|](?=https?:\/\/)/i)) {
      const url = trimEndOf(part.trim(), ",;| ");
      if (/^https?:\/\//i.test(url) && URL.canParse(url) && guides.size < MAX_GUIDES) guides.add(url);
    }
  }
  return [...guides];
}

function entry(url: string, text: string | null, group: string, directives: readonly string[]): M3uEntry {
  const info = text === null ? null : readExtInf(text);
  return {
    url,
    title: safeTitle(info?.title || info?.attributes["tvg-name"] || titleOf(url)),
    durationSeconds: info?.durationSeconds ?? -1,
    attributes: info?.attributes ?? {},
    group,
    directives,
  };
}

/** The absolute address that a line names; null when it names none. `isAnnounced`: `#EXTINF` stands before it. */
function address(text: string, baseUrl: string | undefined, isAnnounced: boolean): string | null {
  if (text.length > MAX_URL_CHARS || FORBIDDEN.test(text)) return null;
  if (ABSOLUTE.test(text) || /^[0-9a-f]{40}$/i.test(text)) return text;
  if (NO_PATH.test(text) || !(isAnnounced || PATH.test(text))) return null;
  if (baseUrl === undefined || /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text) || !URL.canParse(text, baseUrl)) return null;
  return new URL(text, baseUrl).href;
}

/** The last part of the path, else the address. */
function titleOf(url: string): string {
  const path = trimEndOf(url.split(/[?#|]/, 1)[0]!, "/");
  const name = path.slice(path.lastIndexOf("/") + 1) || url;
  try {
    return oneLine(decodeURIComponent(name)) || url;
  } catch {
    return name;
  }
}

/** Header attributes may be separated by commas; those inside quotes stay. */
function withoutCommas(text: string): string {
  return text.replace(/"[^"]*"|'[^']*'|,/g, (part) => part === "," ? " " : part);
}

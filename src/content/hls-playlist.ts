/** HLS playlists (RFC 8216), read by hls-parser within bounds: whole for broadcasting, their beginning for analysis. */
import { parse, setOptions } from "hls-parser";
import { MillraceError } from "../errors.ts";
import { type HlsVariables, NO_VARIABLES, withVariables } from "./hls-variables.ts";

/** Largest playlist, bytes: a day of two-second segments has 2 MiB. */
export const MAX_PLAYLIST_BYTES = 4 * 1024 * 1024;
/**
 * Most lines that are read, each a few microseconds of parsing, in which the engine does nothing else: a day of two-second
 * segments has 86,400, one of six-second segments that have a range, a key and a discontinuity each has 72,000.
 */
export const MAX_PLAYLIST_LINES = 90_000;
/** Newest segments that are read of a playlist that still grows: a reader is three behind its end, or catches up. */
const MAX_LIVE_SEGMENTS = 1000;
/** Most lines of the beginning: a start page of variants, or the first segments. */
const HEAD_LINES = 4096;
/** Most variants and renditions together: each variant is compared with all renditions. Large playlists have 200. */
export const MAX_CHOICES = 512;
/** The tags of choices. */
const CHOICES: ReadonlySet<string> = new Set(["EXT-X-STREAM-INF", "EXT-X-I-FRAME-STREAM-INF", "EXT-X-MEDIA"]);
/** Tags with attributes that are read, and longest such line: signed addresses have 2 KiB. */
const LISTS: ReadonlySet<string> = new Set([...CHOICES, "EXT-X-KEY", "EXT-X-MAP"]);
const MAX_LIST_CHARS = 8192;
/** An attribute; commas in quotes do not end it. */
const ATTRIBUTE = /(?:[^,"]|"[^"]*"?)+/g;
/**
 * Attributes that are read. For others the parser reports what is wrong with them, which costs more than all the rest.
 */
const ATTRIBUTES: ReadonlySet<string> = new Set(
  [
    ...["METHOD", "KEYFORMAT", "IV", "BANDWIDTH", "AUDIO", "TYPE", "GROUP-ID", "NAME", "URI", "BYTERANGE"],
    ...["DEFAULT", "AUTOSELECT"],
  ],
);
/** Tags that matter here. The parser compares some of the others with all of their kind: seconds for a few thousand. */
const TAGS: ReadonlySet<string> = new Set([
  ...LISTS,
  "EXTM3U",
  "EXTINF",
  "EXT-X-BYTERANGE",
  "EXT-X-DISCONTINUITY",
  "EXT-X-ENDLIST",
  "EXT-X-GAP",
  "EXT-X-MEDIA-SEQUENCE",
  "EXT-X-TARGETDURATION",
]);
/** Tags about the segment that follows. */
const SEGMENT_TAGS = /^#(?:EXTINF|EXT-X-BYTERANGE|EXT-X-DISCONTINUITY|EXT-X-GAP|EXT-X-KEY|EXT-X-MAP)(?::|$)/;
/** Tags that an M3U list of channels lacks: sections 4.3.2 to 4.3.4. */
const HLS_TAG = /^#EXT-X-(?:TARGETDURATION|MEDIA-SEQUENCE|STREAM-INF|PART-INF|PLAYLIST-TYPE|MAP|BYTERANGE):?/m;
/** It says that it will not change (4.3.3.5). */
const RECORDED = /^#EXT-X-PLAYLIST-TYPE:\s*VOD\s*$/m;
/** Longest segment, s; longer durations are damage. */
const MAX_SEGMENT_S = 600;

// Playlists are often a little wrong; what matters is checked here.
setOptions({ strictMode: false, silent: true });

/** How a segment is encrypted: AES-128 in CBC mode (RFC 8216, 4.3.2.4). */
export interface SegmentKey {
  /** Where the 16 bytes of the key are. Absolute. */
  readonly url: string;
  /** 16 bytes. */
  readonly iv: Uint8Array<ArrayBuffer>;
}

/** Part of a resource, bytes. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** What segments of fragmented MP4 need before their own bytes (RFC 8216, 4.3.2.5). */
export interface SegmentMap {
  /** Absolute. */
  readonly url: string;
  /** null: all of it. */
  readonly range: ByteRange | null;
}

/** One media segment. */
export interface PlaylistSegment {
  /** Absolute. */
  readonly url: string;
  readonly durationS: number;
  /** Media sequence number. */
  readonly sequence: number;
  /** Its content does not continue that of the segment before. */
  readonly isDiscontinuity: boolean;
  /** Part of the resource, bytes; null: all of it. */
  readonly range: ByteRange | null;
  /** null: it needs none. */
  readonly map: SegmentMap | null;
  /** There is nothing at its address, and it is not to be asked for (RFC 8216bis, 4.4.4.7). */
  readonly isGap: boolean;
  /** null: it is not encrypted. */
  readonly key: SegmentKey | null;
  /** Why it can't be read, else null. */
  readonly unfit: string | null;
}

/** A media playlist. */
export interface MediaList {
  readonly kind: "media";
  /** At least 1. */
  readonly targetDurationS: number;
  /** Number of the first segment, also when there is none. */
  readonly firstSequence: number;
  /** No segment will be added. */
  readonly hasEnded: boolean;
  readonly segments: readonly PlaylistSegment[];
}

/** A choice of a master playlist. */
export interface Variant {
  /** Absolute. */
  readonly url: string;
  /** Bits a second; 0 when it does not say. */
  readonly bandwidth: number;
  /** The playlist of its sound, absolute; null: its segments contain their sound. */
  readonly soundUrl: string | null;
}

/** A master playlist. */
export interface MasterList {
  readonly kind: "master";
  readonly variants: readonly Variant[];
  /** For the playlists that it leads to. */
  readonly variables: HlsVariables;
}

/** The facts in the beginning of a playlist. */
export interface HlsHead {
  /** The title among the session data (4.3.4.4). */
  readonly title: string | null;
  /** Addresses of a master playlist; null for a media playlist. */
  readonly variants: readonly string[] | null;
  /** A media playlist is live until it has `EXT-X-ENDLIST` (4.3.3.4) or says that it will not change; null for a master. */
  readonly isLive: boolean | null;
}

/** True when `text`, or its beginning, is an HLS playlist and not a list of channels. */
export function isHlsPlaylist(text: string): boolean {
  return HLS_TAG.test(text);
}

/**
 * Reads a playlist that came from `baseUrl`; `variables` are those of the master playlist that led to it, default none.
 * Throws `bad_media` for any other text, or one with more in it than any playlist needs.
 */
export function parseHls(text: string, baseUrl: string, variables = NO_VARIABLES): MediaList | MasterList {
  return read(text, baseUrl, false, variables);
}

/** Reads a playlist as far as `HlsHead` needs; it may be cut anywhere. Throws `bad_media` for any other text. */
export function readHlsHead(text: string, baseUrl: string): HlsHead {
  const title = sessionTitle(text);
  const list = read(text, baseUrl, true, NO_VARIABLES);
  if (list.kind === "master") return { title, variants: list.variants.map(({ url }) => url), isLive: null };
  return { title, variants: null, isLive: !list.hasEnded && !RECORDED.test(text) };
}

function read(text: string, baseUrl: string, isHead: boolean, imported: HlsVariables): MediaList | MasterList {
  let list: ReturnType<typeof parse>;
  let variables = NO_VARIABLES;
  try {
    const trimmed = text.trimStart();
    // Some servers leave the first line out.
    const isBare = trimmed.startsWith("#EXT-X-");
    if (!isBare && !trimmed.startsWith("#EXTM3U")) throw new Error("it does not begin with #EXTM3U");
    const whole = withVariables(isBare ? `#EXTM3U\n${trimmed}` : trimmed, baseUrl, imported);
    variables = whole.variables;
    list = parse(linesThatMatter(whole.text, isHead));
  } catch (cause) {
    throw new MillraceError("bad_media", `the HLS playlist cannot be read: ${(cause as Error).message}`, { cause });
  }
  return list.isMasterPlaylist ? readMaster(list, baseUrl, variables) : readMedia(list, baseUrl);
}

/** The title among the session data, which parsers expect in master playlists alone. */
function sessionTitle(text: string): string | null {
  for (const [line] of text.matchAll(/^#EXT-X-SESSION-DATA:.*$/gm)) {
    const id = /DATA-ID="([^"]*)"/.exec(line)?.[1] ?? "";
    const value = /[:,]VALUE="([^"]*)"/.exec(line)?.[1]?.trim();
    if (/(?:^|\.)title$/i.test(id) && value) return value;
  }
  return null;
}

/**
 * `text` without the unused lines; of a head at most its first lines and its end. Throws when the rest is too much to
 * parse.
 */
function linesThatMatter(text: string, isHead: boolean): string {
  // A list without end is left at once: each segment has two lines.
  if (!isHead && holdsMore(text, "\n#EXTINF", MAX_PLAYLIST_LINES / 2)) throw tooManyLines();
  const lines: string[] = [];
  let choices = 0;
  for (let line of linesOf(text)) {
    if (line === "") continue;
    if (isHead && (lines.length >= HEAD_LINES || choices >= MAX_CHOICES) && line !== "#EXT-X-ENDLIST") continue;
    if (line.startsWith("#")) {
      const tag = line.slice(1).split(":", 1)[0]!.trim();
      if (!TAGS.has(tag) || (tag === "EXT-X-MEDIA" && !line.includes("TYPE=AUDIO"))) continue;
      if (CHOICES.has(tag) && ++choices > MAX_CHOICES) throw new Error(`it has more than ${MAX_CHOICES} choices`);
      // The parser fails on titles beyond ASCII, which nobody reads here.
      if (tag === "EXTINF") line = `${line.split(",", 1)[0]},`;
      if (LISTS.has(tag)) line = `#${tag}:${attributesThatMatter(line.slice(line.indexOf(":") + 1))}`;
    }
    if (lines.push(line) > MAX_PLAYLIST_LINES) throw tooManyLines();
  }
  const whole = withoutTail(lines);
  return (isHead ? whole : newestOf(whole)).join("\n");
}

function tooManyLines(): Error {
  return new Error(`it has more than ${MAX_PLAYLIST_LINES} lines`);
}

/** Whether `part` stands more than `times` times in `text`. */
function holdsMore(text: string, part: string, times: number): boolean {
  let found = 0;
  for (let at = text.indexOf(part); at >= 0 && found <= times; at = text.indexOf(part, at + part.length)) found++;
  return found > times;
}

/** The lines of `text`, trimmed, one after the other: most of a text that is too long is never looked at. */
function* linesOf(text: string): Generator<string, void> {
  for (let at = 0; at < text.length;) {
    const end = text.indexOf("\n", at);
    yield text.slice(at, end < 0 ? text.length : end).trim();
    at = end < 0 ? text.length : end + 1;
  }
}

/** `lines` without tags about a segment that does not follow: it comes with a later playlist, and its tags then, too. */
function withoutTail(lines: readonly string[]): readonly string[] {
  const end = lines.findLastIndex((line) => !line.startsWith("#")) + 1;
  return [...lines.slice(0, end), ...lines.slice(end).filter((line) => !SEGMENT_TAGS.test(line))];
}

/** The lines about the newest segments, if segments may still be added: parsing a day of them takes 70 MB. */
function newestOf(lines: readonly string[]): readonly string[] {
  if (lines.some((line) => line === "#EXT-X-ENDLIST" || line.startsWith("#EXT-X-STREAM-INF"))) return lines;
  const ends = [...lines.keys()].filter((i) => !lines[i]!.startsWith("#"));
  const dropped = ends.length - MAX_LIVE_SEGMENTS;
  if (dropped <= 0) return lines;
  const cut = ends[dropped - 1]! + 1;
  const before = lines.slice(0, cut);
  const last = (tag: string) => before.findLast((line) => line.startsWith(`#${tag}:`)) ?? "";
  const first = Number.parseInt(last("EXT-X-MEDIA-SEQUENCE").split(":")[1] ?? "", 10) || 0;
  return [
    "#EXTM3U",
    last("EXT-X-TARGETDURATION"),
    `#EXT-X-MEDIA-SEQUENCE:${first + dropped}`,
    // These hold for what follows them.
    last("EXT-X-KEY"),
    last("EXT-X-MAP"),
    ...lines.slice(cut),
  ];
}

function attributesThatMatter(list: string): string {
  if (list.length > MAX_LIST_CHARS) throw new Error(`it has a tag of more than ${MAX_LIST_CHARS} characters`);
  const all = list.match(ATTRIBUTE) ?? [];
  return all.filter((attribute) => ATTRIBUTES.has(attribute.split("=", 1)[0]!.trim())).join(",");
}

/**
 * The variant to play: the highest bit rate; of equal ones the first that contains its sound, else the first. null when
 * there is none.
 */
export function chooseVariant({ variants }: MasterList): Variant | null {
  const isBetter = (one: Variant, best: Variant) =>
    one.bandwidth > best.bandwidth ||
    (one.bandwidth === best.bandwidth && one.soundUrl === null && best.soundUrl !== null);
  return variants.reduce<Variant | null>((best, one) => best === null || isBetter(one, best) ? one : best, null);
}

type ParsedMaster = Extract<ReturnType<typeof parse>, { isMasterPlaylist: true }>;
type ParsedMedia = Exclude<ReturnType<typeof parse>, { isMasterPlaylist: true }>;

function readMaster(list: ParsedMaster, baseUrl: string, variables: HlsVariables): MasterList {
  const variants = list.variants.flatMap((variant): Variant[] => {
    const url = resolve(variant.uri, baseUrl);
    if (url === null || variant.isIFrameOnly === true) return [];
    const sounds = variant.audio;
    const sound = sounds.find(({ isDefault }) => isDefault === true) ??
      sounds.find(({ autoselect }) => autoselect === true) ?? sounds[0];
    const soundUrl = sound?.uri ? resolve(sound.uri, baseUrl) : null;
    // Variants for the ear alone name the same playlist twice.
    return [{ url, bandwidth: atLeast(0, variant.bandwidth), soundUrl: soundUrl === url ? null : soundUrl }];
  });
  return { kind: "master", variants, variables };
}

function readMedia(list: ParsedMedia, baseUrl: string): MediaList {
  const firstSequence = Math.floor(atLeast(0, list.mediaSequenceBase));
  const segments: PlaylistSegment[] = [];
  /** Where the last range ended, for those of the same resource that say no offset (RFC 8216, 4.3.2.2). */
  let last: { readonly url: string | null; readonly end: number } | null = null;
  for (const [i, segment] of list.segments.entries()) {
    const url = resolve(segment.uri, baseUrl);
    const range: ByteRange | null = rangeOf(segment.byterange, last?.url === url ? last.end : 0);
    last = range === null ? null : { url, end: range.offset + range.length };
    const key = keyOf(segment, firstSequence + i, baseUrl);
    segments.push({
      url: url ?? baseUrl,
      durationS: Math.min(atLeast(0, segment.duration), MAX_SEGMENT_S),
      sequence: firstSequence + i,
      isDiscontinuity: segment.discontinuity === true,
      range,
      map: mapOf(segment, baseUrl),
      isGap: segment.gap === true,
      key,
      unfit: url === null ? "its address is no http or https URL" : unfit(segment, key),
    });
  }
  const longest = segments.reduce((most, { durationS }) => Math.max(most, durationS), 1);
  const target = Math.min(atLeast(0, list.targetDuration), MAX_SEGMENT_S);
  return {
    kind: "media",
    targetDurationS: target >= 1 ? target : longest,
    firstSequence,
    hasEnded: list.endlist === true,
    segments,
  };
}

/** A range; one that says no offset begins at `follows`. */
function rangeOf(
  range: { readonly offset: number; readonly length: number } | undefined,
  follows: number,
): ByteRange | null {
  if (!range) return null;
  const offset = Number.isSafeInteger(range.offset) && range.offset >= 0 ? range.offset : follows;
  return { offset, length: Math.floor(atLeast(0, range.length)) };
}

function mapOf({ map }: ParsedMedia["segments"][number], baseUrl: string): SegmentMap | null {
  const url = map ? resolve(map.uri, baseUrl) : null;
  return url === null ? null : { url, range: rangeOf(map?.byterange, 0) };
}

function unfit({ key }: ParsedMedia["segments"][number], known: SegmentKey | null): string | null {
  if (key && key.method !== "NONE" && known === null) return `it is encrypted (${String(key.method).slice(0, 20)})`;
  return null;
}

/** The key of a segment; null where it has none, or one that is not given out openly. */
function keyOf({ key }: ParsedMedia["segments"][number], sequence: number, baseUrl: string): SegmentKey | null {
  if (key?.method !== "AES-128" || (key.format ?? "identity") !== "identity") return null;
  const url = resolve(key.uri, baseUrl);
  if (url === null) return null;
  const iv = new Uint8Array(16);
  const given = key.iv as Uint8Array | undefined;
  if (given !== undefined && given.length <= iv.length) iv.set(given, iv.length - given.length);
  else new DataView(iv.buffer).setBigUint64(8, BigInt(sequence));
  return { url, iv };
}

function resolve(uri: unknown, baseUrl: string): string | null {
  const url = typeof uri === "string" ? URL.parse(uri, baseUrl) : null;
  return url !== null && (url.protocol === "http:" || url.protocol === "https:") ? url.href : null;
}

function atLeast(min: number, value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? Math.max(min, value) : min;
}

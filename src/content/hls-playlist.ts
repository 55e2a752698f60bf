/** HLS playlists (RFC 8216), read by hls-parser within bounds: whole for broadcasting, their beginning for analysis. */
import { parse, setOptions } from "hls-parser";
import { MillraceError } from "../errors.ts";
import { linesThatMatter, partsOf } from "./hls-lines.ts";
import { type HlsVariables, NO_VARIABLES, withVariables } from "./hls-variables.ts";

/** Largest playlist, bytes: a day of two-second segments has 2 MiB. */
export const MAX_PLAYLIST_BYTES = 4 * 1024 * 1024;
/** Tags that an M3U list of channels lacks: sections 4.3.2 to 4.3.4. */
const HLS_TAG = /^#EXT-X-(?:TARGETDURATION|MEDIA-SEQUENCE|STREAM-INF|PART-INF|PLAYLIST-TYPE|MAP|BYTERANGE):?/m;
/** The line of a playlist that will not change (4.3.3.5). */
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
export interface ResourceRange {
  readonly offset: number;
  readonly length: number;
}

/** What segments of fragmented MP4 need before their own bytes (RFC 8216, 4.3.2.5). */
export interface SegmentMap {
  /** Absolute. */
  readonly url: string;
  /** null: all of it. */
  readonly range: ResourceRange | null;
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
  readonly range: ResourceRange | null;
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
  return finished(read(text, baseUrl, false, variables));
}

/** As `parseHls`; `turn` is awaited after every some milliseconds of work. */
export async function parseLongHls(
  text: string,
  baseUrl: string,
  variables: HlsVariables,
  turn: () => Promise<void>,
): Promise<MediaList | MasterList> {
  const steps = read(text, baseUrl, false, variables);
  for (let step = steps.next();; step = steps.next()) {
    if (step.done) return step.value;
    await turn();
  }
}

function finished<T>(steps: Generator<void, T>): T {
  for (let step = steps.next();; step = steps.next()) if (step.done) return step.value;
}

/** Reads a playlist as far as `HlsHead` needs; it may be cut anywhere. Throws `bad_media` for any other text. */
export function readHlsHead(text: string, baseUrl: string): HlsHead {
  const title = sessionTitle(text);
  const list = finished(read(text, baseUrl, true, NO_VARIABLES));
  if (list.kind === "master") return { title, variants: list.variants.map(({ url }) => url), isLive: null };
  return { title, variants: null, isLive: !list.hasEnded && !RECORDED.test(text) };
}

/** Reads a playlist in steps, of which a long one has many. */
function* read(
  text: string,
  baseUrl: string,
  isHead: boolean,
  imported: HlsVariables,
): Generator<void, MediaList | MasterList> {
  const media = new MediaReader(baseUrl);
  try {
    const trimmed = text.trimStart();
    // Some servers leave the first line out.
    const isBare = trimmed.startsWith("#EXT-X-");
    if (!isBare && !trimmed.startsWith("#EXTM3U")) throw new Error("it does not begin with #EXTM3U");
    const whole = withVariables(isBare ? `#EXTM3U\n${trimmed}` : trimmed, baseUrl, imported);
    const lines = yield* linesThatMatter(whole.text, isHead);
    for (const part of partsOf(lines)) {
      const list = parse(part);
      if (list.isMasterPlaylist) return readMaster(list, baseUrl, whole.variables);
      media.add(list);
      yield;
    }
  } catch (cause) {
    throw new MillraceError("bad_media", `the HLS playlist cannot be read: ${(cause as Error).message}`, { cause });
  }
  return media.list;
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

/** Reads a media playlist part by part. */
class MediaReader {
  readonly #baseUrl: string;
  readonly #segments: PlaylistSegment[] = [];
  #firstSequence: number | null = null;
  #targetS = 0;
  #longestS = 1;
  #hasEnded = false;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  add(list: ParsedMedia): void {
    this.#firstSequence ??= Math.floor(atLeast(0, list.mediaSequenceBase));
    this.#targetS = Math.min(atLeast(0, list.targetDuration), MAX_SEGMENT_S);
    this.#hasEnded ||= list.endlist === true;
    for (const segment of list.segments) {
      const url = resolve(segment.uri, this.#baseUrl);
      const sequence = this.#firstSequence + this.#segments.length;
      const key = keyOf(segment, sequence, this.#baseUrl);
      const durationS = Math.min(atLeast(0, segment.duration), MAX_SEGMENT_S);
      this.#longestS = Math.max(this.#longestS, durationS);
      this.#segments.push({
        url: url ?? this.#baseUrl,
        durationS,
        sequence,
        isDiscontinuity: segment.discontinuity === true,
        range: rangeOf(segment.byterange),
        map: mapOf(segment, this.#baseUrl),
        isGap: segment.gap === true,
        key,
        unfit: url === null ? "its address is no http or https URL" : unfit(segment, key),
      });
    }
  }

  get list(): MediaList {
    return {
      kind: "media",
      targetDurationS: this.#targetS >= 1 ? this.#targetS : this.#longestS,
      firstSequence: this.#firstSequence ?? 0,
      hasEnded: this.#hasEnded,
      segments: this.#segments,
    };
  }
}

function rangeOf(range: { readonly offset: number; readonly length: number } | undefined): ResourceRange | null {
  if (!range) return null;
  const offset = Number.isSafeInteger(range.offset) && range.offset >= 0 ? range.offset : 0;
  return { offset, length: Math.floor(atLeast(0, range.length)) };
}

function mapOf({ map }: ParsedMedia["segments"][number], baseUrl: string): SegmentMap | null {
  const url = map ? resolve(map.uri, baseUrl) : null;
  return url === null ? null : { url, range: rangeOf(map?.byterange) };
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

/**
 * The query parameters of the playback endpoints: section 4.1 of the HTTP API. Parsing, `/openapi.json` and the table on the
 * page of the API come from this schema.
 */
import * as z from "zod";
import { booleanOf, EXPECTED, integerOf, partsOf } from "./param-text.ts";

/** Longest value read, characters: a magnet with many trackers is some kilobytes. */
export const MAX_VALUE_CHARS = 16_384;
/** Longest list of integers. */
const MAX_LIST = 10_000;

type Context = z.core.$RefinementCtx;

/** `value`, or a fault in our words where there is none. */
function orFault<T>(value: T | null, ctx: Context, fault: string): T {
  if (value !== null) return value;
  ctx.issues.push({ code: "custom", message: fault, input: value });
  return z.NEVER;
}

const integer = (text: string, ctx: Context) => orFault(integerOf(text), ctx, EXPECTED.integer);

/** Seconds (`90.5`), `minutes:seconds` or `hours:minutes:seconds` as seconds; null for other texts. */
export function secondsOf(text: string): number | null {
  const parts = /^(?:(?:(\d{1,4}):)?(\d{1,2}):)?(\d{1,12}(?:\.\d{1,6})?)$/.exec(text.trim());
  if (parts === null) return null;
  const [hours, minutes, seconds] = [parts[1], parts[2], parts[3]].map((part) => Number(part ?? 0));
  if ((parts[1] !== undefined && minutes! >= 60) || (parts[2] !== undefined && seconds! >= 60)) return null;
  return hours! * 3600 + minutes! * 60 + seconds!;
}

/** What is said of a text that is no time. */
export const TIME_EXPECTED = "seconds (90.5) or a time (1:02:03) are expected";

const TEXT = z.string();
const FLAG = z.preprocess((text: string, ctx) => orFault(booleanOf(text), ctx, EXPECTED.boolean), z.boolean());
const INTEGER = z.preprocess(integer, z.int());
/** Separated by commas, or repeated. */
const INTEGERS = z.preprocess((text: string, ctx) => {
  const parts = partsOf(text);
  // Too many are not looked at one by one.
  return parts.length > MAX_LIST ? parts.map(() => 0) : parts.map((part) => integer(part, ctx));
}, z.array(z.int()).max(MAX_LIST));
const TIME = z.string().meta({ pattern: "^([0-9]+:){0,2}[0-9]+([.][0-9]+)?$" })
  .transform((text, ctx) => orFault(secondsOf(text), ctx, TIME_EXPECTED));

/** Most seconds of a film that are waited for: more is a download. */
const MAX_CUSHION_S = 7200;

/** `auto`, `off`, or seconds of the film, 1 to 7200. */
export const CUSHION = z.string().meta({ pattern: "^(auto|off|[0-9]+)$" }).transform((text, ctx) => {
  const word = text.trim().toLowerCase();
  if (word === "auto" || word === "off") return word;
  const seconds = integerOf(text);
  const isFit = seconds !== null && seconds >= 1 && seconds <= MAX_CUSHION_S;
  return orFault(isFit ? seconds : null, ctx, `auto, off or 1 to ${MAX_CUSHION_S} seconds are expected`);
});

/** A parameter, which may be left out. */
const has = <T extends z.ZodType>(type: T, description: string) => type.optional().describe(description);
/** A parameter that is accepted and checked, but has no effect, and why. */
const lacks = <T extends z.ZodType>(type: T, why: string) => has(type, `${NO_EFFECT}${why}`);
const NO_EFFECT = "Has no effect: ";

const NO_ADVERTISING = "there is no advertising";
const NO_VENDOR = "it belongs to a vendor's own service";
const UNTOLD = "its meaning is not documented";

/** Formats of segments (`HlsFormat`). */
const HLS_FORMATS = ["auto", "ts", "fmp4"] as const;

/** All parameters. Key, item, group, renditions and subtitles are our additions. */
export const PLAYBACK = z.object({
  content_id: has(
    TEXT,
    "Content id of the stream: 40 hexadecimal digits. Of the selectors one is needed; the first of content_id, infohash, url and magnet counts",
  ),
  id: has(TEXT, "The same as content_id").meta({ deprecated: true }),
  infohash: has(TEXT, "Infohash of the stream: 40 hexadecimal digits"),
  url: has(TEXT, "Address of the stream's transport file"),
  magnet: has(TEXT, "Magnet link of the stream"),
  manifest_url: has(TEXT, "The same as url, for clients that ask /hls/manifest.m3u8").meta({ deprecated: true }),
  key: has(TEXT, "Signs the stream for players on other machines; from /engine/playlist.m3u"),
  token: has(TEXT, "The access token, which opens item, group and direct_url on other machines without a key"),
  item: has(
    INTEGER,
    "Number of an item of the playlist, where no stream is named: the other items of its channel stand in for it",
  ),
  group: has(
    TEXT,
    "Media group of the playlist, where no stream is named: id:TVG-ID, or name: and the normalised name",
  ),
  renditions: has(
    FLAG,
    "HLS alone: a multivariant playlist with each sound of the film in segments of its own, the texts inside it and the .srt and .vtt files that belong to it",
  ),
  subtitles: has(FLAG, "The older name of renditions").meta({ deprecated: true }),
  format: has(
    z.enum(["redirect", "json"]).meta({ default: "redirect" }),
    "redirect: leads to the stream; json: tells its address, and those that control the session",
  ),
  pid: has(
    TEXT,
    "Names the player: the same pid joins the same session. Without it the address of the caller does",
  ),
  sid: has(TEXT, "The same as pid").meta({ deprecated: true }),
  _idx: has(INTEGER, "Number of the file; without it the largest playable one"),
  preferred_audio_language: has(TEXT, "Languages of the audio track that comes first, separated by commas"),
  use_api_stop: has(
    FLAG,
    "The client will call stop: without activity the session ends after an hour instead of a minute",
  ),
  use_api_events: has(FLAG, "Adds event_url to the answer"),
  use_stop_notifications: has(FLAG, "The event download_stopped is told, and event_url is in the answer"),
  force_session_restart: has(FLAG, "Ends a running session of the same player first"),
  client_session_id: has(INTEGER, "Any number of the client's; the answer and stat repeat it"),
  playlist_output_format_vod: has(
    z.string().transform((text) => HLS_FORMATS.find((format) => format === text) ?? "auto"),
    "HLS of a file: ts, MPEG TS; fmp4, fragmented MP4; auto, and any other word: MPEG TS, or fragmented MP4 where MPEG TS cannot carry the film",
  ),
  playlist_output_format_live: has(
    z.string().transform((text) => text === "fmp4" ? "fmp4" : "ts"),
    "HLS of a broadcast: fmp4, fragmented MP4; any other word: MPEG TS",
  ),
  playlist_selected_indexes: has(INTEGERS, "Numbers of the files of which the default one is chosen"),
  next_file_indexes: has(
    INTEGERS,
    "Numbers of the files that may be played next: their beginning is fetched ahead",
  ),
  start_from: has(
    TIME,
    "Where playing begins: seconds (90.5) or a time (1:02:03) in a file; Unix seconds of a broadcast, as far as its window reaches",
  ),
  cushion: has(
    CUSHION,
    "How much is waited for once the peers have proved slower than the film: auto, so much that the rest plays without a stop; off; or seconds of the film. Without it --cushion decides",
  ),
  quality: lacks(INTEGER, "a stream has one quality"),
  stream_id: lacks(INTEGER, "a stream has one variant"),
  provider: lacks(TEXT, NO_VENDOR),
  direct_url: has(
    TEXT,
    "Address of an MPEG TS or HLS stream, where nothing else names one; fields for its server follow a |, as in |User-Agent=Player&Referer=http://host/",
  ),
  mode: lacks(TEXT, UNTOLD),
  debug_options: lacks(TEXT, UNTOLD),
  cas: lacks(TEXT, NO_VENDOR),
  product_key: lacks(TEXT, NO_VENDOR),
  secondary_product_key: lacks(TEXT, NO_VENDOR),
  transcode_audio: has(FLAG, "Makes AAC of sound that MPEG TS cannot carry, or browsers cannot play"),
  transcode_mp3: has(FLAG, "With transcode_audio: of MP3 and MP2, too"),
  transcode_ac3: has(FLAG, "With transcode_audio: of AC-3 and E-AC-3, too"),
  disable_p2p: has(
    FLAG,
    "1: neither trackers, DHT nor peers are asked; only web seeds, and what is here already",
  ),
  hlc: lacks(FLAG, UNTOLD),
  allow_multiple_threads_reading: has(FLAG, "0: each new read of the session ends the one before"),
  stop_prev_read_thread: has(FLAG, "1: each new read of the session ends the one before"),
  proxy_vast_response: lacks(FLAG, NO_ADVERTISING),
  gdpr_consent: lacks(FLAG, NO_ADVERTISING),
  force_ads: lacks(FLAG, NO_ADVERTISING),
  is_restarted_session: lacks(FLAG, "a restarted session is known by its key"),
  collect_start_stats: lacks(FLAG, "stat tells what is known of the start"),
});

/** Parsed parameters; absent ones are undefined. */
export type PlaybackParams = Readonly<z.output<typeof PLAYBACK>>;

/** Parameters whose repeated values are one list; of others the first value counts. */
export const LISTS: ReadonlySet<string> = new Set(
  ["playlist_selected_indexes", "next_file_indexes"] satisfies (keyof PlaybackParams)[],
);

/** Parameters whose values have a form of their own. */
const SPECIAL_KINDS: Readonly<Partial<Record<string, string>>> = {
  start_from: "time",
  cushion: "word or seconds",
};

/** Markdown for the page of the API: each parameter, the kind of its values and what it does. */
export function playbackMarkdown(): string {
  const { properties } = z.toJSONSchema(PLAYBACK, { io: "input" });
  const rows = Object.entries(properties ?? {}).map(([name, field]) => {
    const { type, enum: words, description, deprecated } = field as z.core.JSONSchema.BaseSchema;
    const kind = SPECIAL_KINDS[name] ?? (type === "array" ? "integers" : words?.join(" or ") ?? type);
    return `| \`${name}\` | ${kind} | ${description}${deprecated ? " (deprecated)" : ""} |`;
  });
  return ["| parameter | value | |", "| --- | --- | --- |", ...rows].join("\n");
}

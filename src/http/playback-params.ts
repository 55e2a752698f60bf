/** The query parameters of the playback endpoints: section 4.1 of the HTTP API, typed in one table. */
import { MillraceError } from "../errors.ts";
import { type AudioTranscoding, sameTranscoding, type TranscodeAudio } from "../media/transcode/types.ts";

type Kind = "string" | "integer" | "integers" | "boolean" | "format" | "time";

const NO_ADVERTISING = "there is no advertising";
const NO_VENDOR = "it belongs to a vendor's own service";
const UNTOLD = "its meaning is not documented";

/**
 * Name → type, and `true` if it has an effect. Otherwise it is accepted and checked, and the text says why it has none.
 */
const TABLE = {
  content_id: ["string", true],
  id: ["string", true],
  infohash: ["string", true],
  url: ["string", true],
  magnet: ["string", true],
  /** Our addition: `/engine/playlist.m3u` signs addresses for players elsewhere. */
  key: ["string", true],
  /** Our additions: an item of the library, and a channel of it. */
  item: ["integer", true],
  group: ["string", true],
  /** Our addition: HLS with the subtitles beside the film. */
  subtitles: ["boolean", true],
  format: ["format", true],
  pid: ["string", true],
  sid: ["string", true],
  _idx: ["integer", true],
  preferred_audio_language: ["string", true],
  use_api_stop: ["boolean", true],
  use_api_events: ["boolean", true],
  use_stop_notifications: ["boolean", true],
  force_session_restart: ["boolean", true],
  client_session_id: ["integer", true],
  playlist_output_format_vod: ["string", "the path names the output"],
  playlist_output_format_live: ["string", "the path names the output"],
  playlist_selected_indexes: ["integers", true],
  next_file_indexes: ["integers", true],
  start_from: ["time", true],
  quality: ["integer", "a stream has one quality"],
  stream_id: ["integer", "a stream has one variant"],
  provider: ["string", NO_VENDOR],
  direct_url: ["string", "only torrents and broadcasts are played"],
  mode: ["string", UNTOLD],
  debug_options: ["string", UNTOLD],
  cas: ["string", NO_VENDOR],
  product_key: ["string", NO_VENDOR],
  secondary_product_key: ["string", NO_VENDOR],
  transcode_audio: ["boolean", true],
  transcode_mp3: ["boolean", true],
  transcode_ac3: ["boolean", true],
  disable_p2p: ["boolean", true],
  hlc: ["boolean", UNTOLD],
  allow_multiple_threads_reading: ["boolean", true],
  stop_prev_read_thread: ["boolean", true],
  proxy_vast_response: ["boolean", NO_ADVERTISING],
  gdpr_consent: ["boolean", NO_ADVERTISING],
  force_ads: ["boolean", NO_ADVERTISING],
  is_restarted_session: ["boolean", "a restarted session is known by its key"],
  collect_start_stats: ["boolean", "stat tells what is known of the start"],
} as const satisfies Record<string, readonly [Kind, true | string]>;

type Table = typeof TABLE;
interface Values {
  string: string;
  integer: number;
  integers: readonly number[];
  boolean: boolean;
  format: "redirect" | "json";
  /** Seconds. */
  time: number;
}

/** Parsed parameters; absent ones are undefined. */
export type PlaybackParams = { readonly [Name in keyof Table]?: Values[Table[Name][0]] };

/** Accepted parameters without an effect, and why. */
export const PARAMETERS_WITHOUT_EFFECT: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(TABLE).flatMap(([name, [, why]]) => why === true ? [] : [[name, why]]),
);

/** Names of the parameters that have an effect. */
export type EffectiveName = { [Name in keyof Table]: Table[Name][1] extends true ? Name : never }[keyof Table];

/** All parameters with their types, for the documentation. */
export const PLAYBACK_PARAMETERS: readonly (readonly [name: string, kind: Kind])[] = Object.entries(TABLE).map(
  ([name, [kind]]) => [name, kind],
);

/** Longest value read: a magnet with many trackers is some kilobytes. */
const MAX_VALUE_CHARS = 16_384;
/** Longest list of integers. */
const MAX_LIST = 10_000;

/** The parameters that choose the sound converted to AAC. */
type SoundParams = Readonly<
  Partial<Record<"transcode_audio" | "transcode_mp3" | "transcode_ac3", boolean | undefined>>
>;

/** The sound that the parameters ask to convert to AAC; `byDefault` if they do not say; null: none. */
export function transcodingOf(params: SoundParams, byDefault: TranscodeAudio): AudioTranscoding | null {
  const asked = params.transcode_audio ?? (byDefault === "always" ? true : byDefault === "auto" ? null : false);
  if (asked === false) return null;
  if (asked === null) return { mp3: false, ac3: false, onlyIfSilent: true };
  return { mp3: params.transcode_mp3 ?? false, ac3: params.transcode_ac3 ?? false };
}

/** Adds the parameters from which `transcodingOf` makes `transcode`; none if that is the default. */
export function addTranscoding(
  query: URLSearchParams,
  transcode: AudioTranscoding | null,
  byDefault: TranscodeAudio,
): void {
  if (sameTranscoding(transcode, transcodingOf({}, byDefault))) return;
  query.set("transcode_audio", transcode === null ? "0" : "1");
  if (transcode?.mp3) query.set("transcode_mp3", "1");
  if (transcode?.ac3) query.set("transcode_ac3", "1");
}

/** Whether each read of a session ends the one before (by default any number may read). */
export function wantsSingleReader(params: PlaybackParams): boolean {
  const { allow_multiple_threads_reading: allowed, stop_prev_read_thread: stops } = params;
  return allowed === undefined ? stops ?? false : !allowed;
}

/** Parses a query; unknown names are ignored, empty values count as absent. Throws `invalid_argument` naming the parameter. */
export function parsePlaybackParams(query: URLSearchParams): PlaybackParams {
  const params: Record<string, unknown> = {};
  for (const [name, [kind]] of Object.entries(TABLE)) {
    const all = query.getAll(name);
    const text = kind === "integers" ? all.join(",") : all[0];
    if (text === undefined || text === "") continue;
    if (text.length > MAX_VALUE_CHARS) {
      throw new MillraceError("invalid_argument", `invalid ${name}: longer than ${MAX_VALUE_CHARS} characters`);
    }
    params[name] = parseValue(name, kind, text);
  }
  return params as PlaybackParams;
}

function parseValue(name: string, kind: Kind, text: string): unknown {
  switch (kind) {
    case "string":
      return text;
    case "boolean":
      return parseBoolean(name, text);
    case "integer":
      return parseInteger(name, text);
    case "integers": {
      const parts = text.split(",").filter((part) => part.trim() !== "");
      if (parts.length > MAX_LIST) {
        throw new MillraceError("invalid_argument", `invalid ${name}: more than ${MAX_LIST} values`);
      }
      return parts.map((part) => parseInteger(name, part));
    }
    case "format":
      if (text !== "redirect" && text !== "json") {
        throw new MillraceError("invalid_argument", `invalid ${name}: redirect or json is expected`);
      }
      return text;
    case "time":
      return parseTime(name, text);
  }
}

/** 0/1/true/false, any case. */
function parseBoolean(name: string, text: string): boolean {
  const value = text.trim().toLowerCase();
  if (value === "1" || value === "true") return true;
  if (value === "0" || value === "false") return false;
  throw new MillraceError("invalid_argument", `invalid ${name}: 0 or 1 is expected`);
}

/**
 * Seconds (`90.5`, and Unix seconds of broadcasts), `minutes:seconds` or `hours:minutes:seconds` as seconds. Throws
 * `invalid_argument` naming the parameter.
 */
export function parseTime(name: string, text: string): number {
  const parts = /^(?:(?:(\d{1,4}):)?(\d{1,2}):)?(\d{1,12}(?:\.\d{1,6})?)$/.exec(text.trim());
  const [hours, minutes, seconds] = [parts?.[1], parts?.[2], parts?.[3]].map((part) => Number(part ?? 0));
  const isTime = parts !== null && (parts[1] === undefined || minutes! < 60) &&
    (parts[2] === undefined || seconds! < 60);
  if (!isTime) {
    throw new MillraceError("invalid_argument", `invalid ${name}: seconds (90.5) or a time (1:02:03) are expected`);
  }
  return hours! * 3600 + minutes! * 60 + seconds!;
}

function parseInteger(name: string, text: string): number {
  const value = Number(text);
  if (!/^\s*-?\d{1,15}\s*$/.test(text) || !Number.isSafeInteger(value)) {
    throw new MillraceError("invalid_argument", `invalid ${name}: an integer is expected`);
  }
  return value;
}

/** The query parameters of the playback endpoints: section 4.1 of the HTTP API, typed in one table. */
import { MillraceError } from "../errors.ts";
import type { AudioTranscoding } from "../media/transcode/types.ts";

type Kind = "string" | "integer" | "integers" | "boolean" | "format";

/** Name → type. `true` = it has an effect here; `false` = accepted and checked, but nothing depends on it yet. */
const TABLE = {
  content_id: ["string", true],
  id: ["string", true],
  infohash: ["string", true],
  url: ["string", true],
  magnet: ["string", true],
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
  playlist_output_format_vod: ["string", false],
  playlist_output_format_live: ["string", false],
  playlist_selected_indexes: ["integers", false],
  next_file_indexes: ["integers", false],
  start_from: ["string", false],
  quality: ["integer", false],
  stream_id: ["integer", false],
  provider: ["string", false],
  direct_url: ["string", false],
  mode: ["string", false],
  debug_options: ["string", false],
  cas: ["string", false],
  product_key: ["string", false],
  secondary_product_key: ["string", false],
  transcode_audio: ["boolean", true],
  transcode_mp3: ["boolean", true],
  transcode_ac3: ["boolean", true],
  disable_p2p: ["boolean", false],
  hlc: ["boolean", false],
  allow_multiple_threads_reading: ["boolean", false],
  stop_prev_read_thread: ["boolean", false],
  proxy_vast_response: ["boolean", false],
  gdpr_consent: ["boolean", false],
  force_ads: ["boolean", false],
  is_restarted_session: ["boolean", false],
  collect_start_stats: ["boolean", false],
} as const satisfies Record<string, readonly [Kind, boolean]>;

type Table = typeof TABLE;
interface Values {
  string: string;
  integer: number;
  integers: readonly number[];
  boolean: boolean;
  format: "redirect" | "json";
}

/** Parsed parameters; absent ones are undefined. */
export type PlaybackParams = { readonly [Name in keyof Table]?: Values[Table[Name][0]] };

/** Accepted parameters without an effect so far. */
export const PARAMETERS_WITHOUT_EFFECT: readonly string[] = Object.entries(TABLE).filter(([, [, used]]) => !used).map((
  [name],
) => name);

/** Longest value read: a magnet with many trackers is some kilobytes. */
const MAX_VALUE_CHARS = 16_384;
/** Longest list of integers. */
const MAX_LIST = 10_000;

/** What the parameters ask to be made into AAC; null: nothing (B20). */
export function transcodingOf(params: PlaybackParams): AudioTranscoding | null {
  if (params.transcode_audio !== true) return null;
  return { mp3: params.transcode_mp3 ?? false, ac3: params.transcode_ac3 ?? false };
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
  }
}

/** 0/1/true/false, any case (B3). */
function parseBoolean(name: string, text: string): boolean {
  const value = text.trim().toLowerCase();
  if (value === "1" || value === "true") return true;
  if (value === "0" || value === "false") return false;
  throw new MillraceError("invalid_argument", `invalid ${name}: 0 or 1 is expected`);
}

function parseInteger(name: string, text: string): number {
  const value = Number(text);
  if (!/^\s*-?\d{1,15}\s*$/.test(text) || !Number.isSafeInteger(value)) {
    throw new MillraceError("invalid_argument", `invalid ${name}: an integer is expected`);
  }
  return value;
}

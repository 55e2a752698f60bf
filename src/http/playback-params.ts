/** Reads the query parameters of the playback endpoints, and what some of them mean together. */
import { MillraceError } from "../errors.ts";
import { type AudioTranscoding, sameTranscoding, type TranscodeAudio } from "../media/model/audio-target.ts";
import { faultText } from "./param-text.ts";
import { LISTS, MAX_VALUE_CHARS, PLAYBACK, type PlaybackParams, secondsOf, TIME_EXPECTED } from "./playback-schema.ts";

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
  const texts: Record<string, string> = {};
  for (const name of Object.keys(PLAYBACK.shape)) {
    const all = query.getAll(name);
    const text = LISTS.has(name) ? all.join(",") : all[0];
    if (text === undefined || text === "") continue;
    if (text.length > MAX_VALUE_CHARS) throw invalid(name, `at most ${MAX_VALUE_CHARS} characters`);
    texts[name] = text;
  }
  const parsed = PLAYBACK.safeParse(texts);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw invalid(String(issue.path[0]), faultText(issue));
}

/**
 * Seconds (`90.5`, and Unix seconds of broadcasts), `minutes:seconds` or `hours:minutes:seconds` as seconds. Throws
 * `invalid_argument` naming the parameter.
 */
export function parseTime(name: string, text: string): number {
  const seconds = secondsOf(text);
  if (seconds === null) throw invalid(name, TIME_EXPECTED);
  return seconds;
}

function invalid(name: string, why: string): MillraceError {
  return new MillraceError("invalid_argument", `invalid ${name}: ${why}`);
}

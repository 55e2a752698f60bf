/** Parameters of a start as the document describes them. */
import { type EffectiveName, PARAMETERS_WITHOUT_EFFECT, PLAYBACK_PARAMETERS } from "../playback-params.ts";
import { inQuery } from "./parameters.ts";
import type { Components, Json } from "./schema.ts";

const DESCRIPTIONS: Readonly<Record<EffectiveName, string>> = {
  content_id:
    "Content id of the stream: 40 hexadecimal digits. Of the selectors one is needed; the first of content_id, infohash, url and magnet counts",
  id: "The same as content_id",
  infohash: "Infohash of the stream: 40 hexadecimal digits",
  url: "Address of the stream's transport file",
  magnet: "Magnet link of the stream",
  item: "Number of an item of the playlist, where no stream is named: the other items of its channel stand in for it",
  group: "Media group of the playlist, where no stream is named: id:TVG-ID, or name: and the normalised name",
  key: "Signs the stream for players on other machines; from /engine/playlist.m3u",
  format: "redirect: leads to the stream; json: tells its address, and those that control the session",
  pid: "Names the player: the same pid joins the same session. Without it the address of the caller does",
  sid: "The same as pid",
  _idx: "Number of the file; without it the largest playable one",
  preferred_audio_language: "Languages of the audio track that comes first, separated by commas",
  use_api_stop: "The client will call stop: without activity the session ends after an hour instead of a minute",
  use_api_events: "Adds event_url to the answer",
  use_stop_notifications: "The event download_stopped is told, and event_url is in the answer",
  force_session_restart: "Ends a running session of the same player first",
  client_session_id: "Any number of the client's; the answer and stat repeat it",
  playlist_selected_indexes: "Numbers of the files of which the default one is chosen",
  next_file_indexes: "Numbers of the files that may be played next: their beginning is fetched ahead",
  subtitles:
    "HLS alone: a multivariant playlist with the .srt and .vtt files that belong to the film, where there are some",
  start_from:
    "Where playing begins: seconds (90.5) or a time (1:02:03) in a file; Unix seconds of a broadcast, as far as its window reaches",
  disable_p2p: "1: neither trackers, DHT nor peers are asked; only web seeds, and what is here already",
  transcode_audio: "Makes AAC of sound that MPEG TS cannot carry, or browsers cannot play",
  transcode_mp3: "With transcode_audio: of MP3 and MP2, too",
  transcode_ac3: "With transcode_audio: of AC-3 and E-AC-3, too",
  allow_multiple_threads_reading: "0: each new read of the session ends the one before",
  stop_prev_read_thread: "1: each new read of the session ends the one before",
};

const SCHEMAS: Readonly<Record<(typeof PLAYBACK_PARAMETERS)[number][1], Json>> = {
  string: { type: "string" },
  integer: { type: "integer", format: "int64" },
  integers: { type: "array", items: { type: "integer", format: "int64" } },
  boolean: { type: "boolean" },
  format: { type: "string", enum: ["redirect", "json"], default: "redirect" },
  time: { type: "string", pattern: "^([0-9]+:){0,2}[0-9]+([.][0-9]+)?$" },
};

/** Aliases that section 9 of the HTTP API calls deprecated. */
const DEPRECATED = new Set(["id", "sid"]);

/** All parameters of a start, also those without an effect. */
export function startParameters(components: Components): readonly Json[] {
  return PLAYBACK_PARAMETERS.map(([name, kind]) => {
    const why = PARAMETERS_WITHOUT_EFFECT[name];
    const description = why === undefined ? DESCRIPTIONS[name as EffectiveName] : `Has no effect: ${why}`;
    const parameter = inQuery(name, { ...SCHEMAS[kind], description });
    const told = DEPRECATED.has(name) ? { ...parameter, deprecated: true } : parameter;
    return components.parameter(nameOf(name), told);
  });
}

/** Some of the parameters of a start, for other operations that take them. */
export function someOfStart(components: Components, names: readonly EffectiveName[]): readonly Json[] {
  const all = startParameters(components);
  return all.filter(({ $ref }) => names.some((name) => String($ref).endsWith(`/${nameOf(name)}`)));
}

const nameOf = (parameter: string) => `start.${parameter}`;

/** The operations of playback: section 4.1 and 4.2 of the HTTP API, under the canonical prefix. */
import { body, PLAYBACK_REFUSALS, playbackAnswer } from "./answers.ts";
import { BY_NOTHING, inPath, inQuery } from "./parameters.ts";
import { COMMAND_DONE, EVENT, SESSION_STATE, STARTED } from "./playback-answers.ts";
import { startParameters } from "./playback-parameters.ts";
import type { Components, Json } from "./schema.ts";

const BYTES: Json = { type: "string", format: "binary" };
const TS = "video/mp2t";
const HLS = "application/vnd.apple.mpegurl";
const INFOHASH = inPath("infohash", "Infohash of the stream", { type: "string", pattern: "^[0-9a-f]{40}$" });
const SESSION = inPath("session", "Id of the session, a secret: as in the addresses that a start returns");
const UNKNOWN = "A session that is not known is an error with status 200";

/** Paths of starts with what they lead to: operation id, output, summary. */
const STARTS = [
  ["getstream", "start_ts", "MPEG TS"],
  ["manifest.m3u8", "start_hls", "HLS"],
  ["getfile", "start_file", "the file as it is, for players that read its container themselves"],
] as const;

/** The paths of starts, sessions and streams. */
export function playbackPaths(components: Components): Json {
  const paths: Json = {};
  for (const [name, operationId, what] of STARTS) {
    paths[`/engine/${name}`] = startOperations(operationId, what, components);
  }
  const session = (operation: Json) => ({
    get: {
      tags: ["Session"],
      security: BY_NOTHING,
      ...operation,
      parameters: [INFOHASH, SESSION, ...(operation["parameters"] as Json[])],
    },
  });
  const answers = (content: Json) => ({
    200: { description: UNKNOWN, content: body(content) },
    403: PLAYBACK_REFUSALS[403],
  });
  paths["/engine/stat/{infohash}/{session}"] = session({
    operationId: "session_stat",
    summary: "The state of a session; asking counts as activity.",
    parameters: [
      inQuery("skip_player_activity", {
        type: "integer",
        enum: [0, 1],
        description: "1: asking does not count as activity",
      }),
      inQuery("detail", {
        type: "integer",
        enum: [0, 1],
        description: "1: with pieces, tracks, peers and members; not for pages of other sites",
      }),
    ],
    responses: answers(playbackAnswer(components, "stat_answer", SESSION_STATE)),
  });
  paths["/engine/cmd/{infohash}/{session}"] = session({
    operationId: "session_command",
    summary: "Controls a session.",
    parameters: [
      inQuery("method", {
        type: "string",
        enum: ["stop", "play_now", "liveseek", "set_stream", "set_player_activity_timeout"],
        description:
          "stop: ends it; play_now: does not wait for a cushion until the next seek; liveseek: moves it in a broadcast; set_stream: chooses a variant; " +
          "set_player_activity_timeout: how long it lives without activity",
      }, true),
      inQuery("pos", { type: "number", description: "For liveseek: Unix seconds; -1: the edge" }),
      inQuery("stream_index", { type: "integer", description: "For set_stream: 0, the one there is" }),
      inQuery("timeout", { type: "number", description: "For set_player_activity_timeout: seconds, up to a day" }),
    ],
    responses: answers(playbackAnswer(components, "command_answer", COMMAND_DONE)),
  });
  paths["/engine/event/{infohash}/{session}"] = session({
    operationId: "session_event",
    summary: "The next event of a session, or null after 15 s.",
    parameters: [inQuery("after", {
      type: "integer",
      minimum: 0,
      description:
        "The id of the newest event that the listener has, 0 at first; so several listeners take nothing from each other",
    })],
    responses: answers(playbackAnswer(components, "event_answer", EVENT)),
  });
  return { ...paths, ...streamPaths() };
}

function startOperations(operationId: string, what: string, components: Components): Json {
  const location = { description: "Address of the stream", schema: { type: "string" } };
  const common = {
    tags: ["Playback"],
    security: BY_NOTHING,
    description:
      "With format=redirect failures have a status and a line of text; with format=json they are status 200 and error.",
    parameters: startParameters(components),
    responses: {
      200: {
        description: "With format=json; the broadcast of an item or a group comes as MPEG TS itself",
        content: body(playbackAnswer(components, "start_answer", STARTED)),
      },
      302: { description: "With format=redirect", headers: { Location: location } },
      ...PLAYBACK_REFUSALS,
    },
  };
  return {
    get: { operationId, summary: `Starts or joins a session that delivers ${what}.`, ...common },
    post: {
      operationId: `${operationId}_post`,
      summary: `The same of a transport file, which is the body.`,
      ...common,
      requestBody: { required: true, content: body(BYTES, "application/x-bittorrent") },
    },
  };
}

/** Of the addresses of recordings. */
const RECORDED: readonly Json[] = [
  inPath("recording", "Id of the recording"),
  inQuery("key", { type: "string", description: "From recording_list" }),
];

/** Addresses that players read. Programs take these addresses from responses and never make them. */
function streamPaths(): Json {
  const range: Json = {
    name: "Range",
    in: "header",
    description: "Part of the bytes, where there is an exact length (RFC 9110 section 14.2)",
    schema: { type: "string", example: "bytes=0-65535" },
  };
  const stream = (
    operationId: string,
    summary: string,
    parameters: readonly Json[],
    type: string,
    isRanged = false,
  ): Json => ({
    get: {
      operationId,
      tags: ["Streams"],
      summary,
      security: BY_NOTHING,
      parameters: [...parameters, ...(isRanged ? [range] : [])],
      responses: {
        200: { description: "The bytes", content: body(BYTES, type) },
        ...(isRanged ? { 206: { description: "The range of them", content: body(BYTES, type) } } : {}),
        403: PLAYBACK_REFUSALS[403],
        404: PLAYBACK_REFUSALS[404],
        415: PLAYBACK_REFUSALS[415],
        ...(isRanged
          ? { 416: { description: "There are no such bytes", content: body({ type: "string" }, "text/plain") } }
          : {}),
        503: PLAYBACK_REFUSALS[503],
        504: PLAYBACK_REFUSALS[504],
      },
    },
  });
  const flag = (name: string) => inQuery(name, { type: "integer", enum: [0, 1], description: "As at the start" });
  return {
    "/engine/r/{infohash}/{session}": stream("read_ts", "A session's MPEG TS.", [INFOHASH, SESSION], TS, true),
    "/engine/f/{infohash}/{session}/{name}": stream(
      "read_file",
      "A session's file as it is.",
      [INFOHASH, SESSION, inPath("name", "Name of the file")],
      "application/octet-stream",
      true,
    ),
    "/engine/m/{infohash}/{session}.m3u8": stream(
      "read_playlist",
      "A session's HLS playlist, or with renditions (subtitles, an older name) the multivariant one.",
      [
        INFOHASH,
        SESSION,
        inQuery("start_from", { type: "string", description: "As at the start" }),
        flag("renditions"),
        flag("subtitles"),
        inQuery("playlist_output_format_live", { type: "string", description: "As at the start" }),
        inQuery("rendition", { type: "string", description: "v, the pictures, or a sound: its playlist" }),
        inQuery("subtitle", { type: "integer", description: "Number of subtitles: their playlist" }),
      ],
      HLS,
    ),
    "/engine/recording/{recording}.ts": stream("read_recording", "A recording as MPEG TS.", RECORDED, TS, true),
    "/engine/recording/{recording}.m3u8": stream("read_recording_playlist", "A recording as HLS.", RECORDED, HLS),
    "/engine/recording/{recording}/{segment}.ts": stream("read_recording_segment", "A segment of a recording.", [
      ...RECORDED,
      inPath("segment", "Number of the segment", { type: "integer" }),
    ], TS),
    "/engine/s/{infohash}/{session}/{subtitle}.vtt": stream("read_subtitles", "Subtitles of a session as WebVTT.", [
      INFOHASH,
      SESSION,
      inPath("subtitle", "Number of the subtitles", { type: "integer" }),
    ], "text/vtt"),
    "/engine/s/{infohash}/{session}/drawn.json": stream(
      "list_drawn_subtitles",
      "Subtitles of a session that are drawn, and where its segments begin, ms.",
      [INFOHASH, SESSION],
      "application/json",
    ),
    "/engine/s/{infohash}/{session}/fonts.json": stream(
      "list_drawn_fonts",
      "The fonts that a session's film brings along for its scripts, and how many more are too many or too large.",
      [INFOHASH, SESSION],
      "application/json",
    ),
    "/engine/s/{infohash}/{session}/font-{font}": stream(
      "read_drawn_font",
      "A font that a session's film brings along.",
      [INFOHASH, SESSION, inPath("font", "Its number in fonts.json", { type: "integer" })],
      "font/sfnt",
    ),
    "/engine/s/{infohash}/{session}/d{subtitle}.ass": stream(
      "read_drawn_head",
      "The head of a script of subtitles: what stands before its events.",
      [INFOHASH, SESSION, inPath("subtitle", "Its number in drawn.json", { type: "integer" })],
      "text/x-ssa",
    ),
    "/engine/s/{infohash}/{session}/d{subtitle}-{segment}": stream(
      "read_drawn_subtitles",
      "What drawn subtitles begin to show in a segment: a .sup of PGS, or lines of an .ass.",
      [
        INFOHASH,
        SESSION,
        inPath("subtitle", "Its number in drawn.json", { type: "integer" }),
        inPath("segment", "Number of the segment, and .sup or .ass"),
        flag("here"),
      ],
      "application/octet-stream",
    ),
    "/engine/s/{infohash}/{session}/{rendition}-{segment}": stream(
      "read_rendition",
      "A segment of the pictures or of a sound of a session.",
      [
        INFOHASH,
        SESSION,
        inPath("rendition", "v, the pictures, or a sound as the multivariant playlist names it"),
        inPath("segment", "Its file, as the playlist of the rendition names it"),
      ],
      TS,
      true,
    ),
    "/engine/c/{infohash}/{segment}.ts": stream("read_segment", "A segment of an HLS playlist.", [
      INFOHASH,
      inPath("segment", "Number of the segment", { type: "integer" }),
      inQuery("_idx", { type: "integer", description: "Number of the file" }),
      inQuery("preferred_audio_language", { type: "string", description: "As at the start" }),
      ...["transcode_audio", "transcode_mp3", "transcode_ac3"].map(flag),
    ], TS),
  };
}

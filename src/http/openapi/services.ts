/** The operations besides playback and the method API: version, lists for players, search, keys, this document. */
import type { Method } from "../api/method.ts";
import { VERSION_INFO } from "../api/schemas.ts";
import { body, FORBIDDEN, methodAnswer, methodRefusals, PLAYBACK_REFUSALS } from "./answers.ts";
import { answerOf } from "./methods.ts";
import { apiVersion, BY_NOTHING, BY_TOKEN, inQuery } from "./parameters.ts";
import { someOfStart } from "./playback-parameters.ts";
import type { Components, Json } from "./schema.ts";

/** An operation for the operator of the engine. */
function operating(operationId: string, summary: string, more: Json = {}): Json {
  return {
    operationId,
    tags: ["Operating"],
    summary,
    security: BY_NOTHING,
    responses: {
      200: { description: "A text", content: body({ type: "string" }, "text/plain") },
      ...more,
      ...FORBIDDEN,
    },
  };
}

/** The guide of the playlist. */
function guide(operationId: string, type: string, components: Components): Json {
  return {
    operationId,
    tags: ["Service"],
    summary: "The programme guide of the playlist's channels as XMLTV, with the channel ids of playlist.m3u.",
    description: "Open to the callers that may read the playlist.",
    security: [...BY_TOKEN, {}],
    parameters: [
      inQuery("owner", { type: "string", description: "Leaves out channels of other owners" }),
      inQuery("category", { type: "string", description: "Channels of this category alone" }),
      ...someOfStart(components, ["key"]),
    ],
    responses: { 200: { description: "The guide", content: body({ type: "string" }, type) }, ...PLAYBACK_REFUSALS },
  };
}

/** The paths; `search` is the method behind `/search`. */
export function servicePaths(search: Method, components: Components): Json {
  const version = methodAnswer(components, "get_version_answer", components.schemaOf(VERSION_INFO, "output"));
  const { properties = {} } = components.schemaOf(search.params, "input") as { properties?: Record<string, Json> };
  return {
    "/webui/api/service": {
      get: {
        operationId: "get_version",
        tags: ["Service"],
        summary: "The engine's version.",
        security: BY_NOTHING,
        parameters: [
          inQuery("method", { type: "string", enum: ["get_version"], description: "Name of the method" }, true),
          inQuery("format", {
            type: "string",
            enum: ["json", "jsonp"],
            description: "jsonp: for pages of other origins",
          }),
          inQuery("callback", { type: "string", description: "With format=jsonp: the function that is called" }),
        ],
        responses: { 200: { description: "Result or failure", content: body(version) }, ...FORBIDDEN },
      },
    },
    "/search": {
      get: {
        operationId: "search_playlist",
        tags: ["Search"],
        summary: search.summary,
        security: [...BY_TOKEN, {}],
        parameters: [
          ...Object.entries(properties).map(([name, field]) => inQuery(name, field)),
          apiVersion(components),
        ],
        responses: {
          200: {
            description: "Result or failure",
            content: answerOf({ ...search, name: "search_playlist" }, components),
          },
          ...methodRefusals(components),
        },
      },
    },
    "/engine/playlist.m3u": {
      get: {
        operationId: "get_playlist_m3u",
        tags: ["Service"],
        summary: "The playlist, or the files of the torrent that is named, as an M3U list for players.",
        description:
          "The playlist is open on this machine; elsewhere it needs the key of get_playlist_url, or the access token.",
        security: [...BY_TOKEN, {}],
        parameters: [
          inQuery("owner", { type: "string", description: "Leaves out items of other owners" }),
          inQuery("category", { type: "string", description: "Items of this category alone" }),
          inQuery("output", {
            type: "string",
            enum: ["ts", "hls", "file"],
            description: "What its playback addresses lead to; without it file for VLC, Kodi and mpv, ts for others",
          }),
          inQuery("failover", {
            type: "integer",
            enum: [0, 1],
            description: "1: addresses name items, whose channels go on with another source",
          }),
          ...someOfStart(components, ["content_id", "infohash", "url", "magnet", "key"]),
        ],
        responses: {
          200: { description: "The list", content: body({ type: "string" }, "audio/x-mpegurl") },
          ...PLAYBACK_REFUSALS,
        },
      },
    },
    "/engine/xmltv.xml": { get: guide("get_xmltv", "application/xml", components) },
    "/engine/xmltv.xml.gz": { get: guide("get_xmltv_gz", "application/gzip", components) },
    "/.well-known/jwks.json": {
      get: {
        operationId: "get_public_keys",
        tags: ["Service"],
        summary: "The keys that verify engine_auth_token (RFC 7517).",
        security: BY_NOTHING,
        responses: {
          200: {
            description: "The keys",
            content: body({
              type: "object",
              properties: { keys: { type: "array", items: { type: "object", additionalProperties: true } } },
              required: ["keys"],
            }, "application/jwk-set+json"),
          },
          ...FORBIDDEN,
        },
      },
    },
    "/metrics": {
      get: operating("get_metrics", "Figures in the text format of Prometheus (0.0.4)."),
    },
    "/healthz": { get: operating("get_health", "Says ok while the process answers.") },
    "/readyz": {
      get: operating("get_readiness", "Whether the engine can do its work.", {
        503: { description: "It cannot; the text says why", content: body({ type: "string" }, "text/plain") },
      }),
    },
    "/openapi.json": {
      get: {
        operationId: "get_openapi",
        tags: ["Service"],
        summary: "This document.",
        security: BY_NOTHING,
        responses: {
          200: { description: "OpenAPI 3.0.3", content: body({ type: "object", additionalProperties: true }) },
          ...FORBIDDEN,
        },
      },
    },
  };
}

/** Responses as the document describes them: the two envelopes, and refusals. */
import * as z from "zod";
import type { Components, Json } from "./schema.ts";

/** The object under `error` of the method API (section 7). */
const ERROR = z.object({
  message: z.string().describe("What is wrong, in words for the user"),
  code: z.int().describe(
    "0: a message of the API document; 1 unknown method; 2 missing parameter; 3 invalid parameter; 4 access denied; 5 not " +
      "found; 6 timeout; 7 unsupported api_version; 8 conflict; 9 unavailable; 10 internal error",
  ),
});

/** A body of `type` with this schema. */
export const body = (schema: Json, type = "application/json"): Json => ({ [type]: { schema } });

/** The envelope of the method API: a result, with `error` null beside it, or an error alone. */
export function methodAnswer(components: Components, name: string, result: Json, notes: Json = {}): Json {
  return components.name(name, {
    type: "object",
    properties: { result, error: errorOf(components), ...notes["properties"] as Json },
    required: ["error"],
  });
}

function errorOf(components: Components): Json {
  return components.name("Error", components.orNull(components.schemaOf(ERROR, "output")));
}

/** The envelope of playback: `response` or `error` is null. */
export function playbackAnswer(components: Components, name: string, response: z.ZodType): Json {
  return components.name(name, {
    type: "object",
    properties: {
      response: components.orNull(components.schemaOf(response, "output")),
      error: { type: "string", nullable: true, description: "Why there is no response" },
    },
    required: ["response", "error"],
  });
}

/** A failed call. */
export function failure(components: Components): Json {
  return components.name("Failure", {
    type: "object",
    properties: { error: errorOf(components) },
    required: ["error"],
  });
}

/** A line of text that says why. */
const LINE: Json = { "text/plain": { schema: { type: "string" } } };

/** Failed responses of playback: a line of text each. */
export const PLAYBACK_REFUSALS: Json = Object.fromEntries(
  Object.entries({
    400: "A parameter is malformed, or no stream is named",
    403: "This address, page or key may not play",
    404: "There is nothing by that name, or nothing playable",
    415: "The container is damaged, or a codec cannot be carried",
    503: "Too much is going on, or a needed part is missing",
    504: "Nobody delivered the stream in time; the text says what was missing",
  }).map(([status, description]) => [status, { description, content: LINE }]),
);

/** The refusal of methods that nobody at the caller's address may use. */
export const FORBIDDEN: Json = { 403: { description: "This address or page may not call", content: LINE } };

/** Responses of the method API with a status of their own. */
export function methodRefusals(components: Components): Json {
  const content = body(failure(components));
  return {
    403: { description: "The caller's address is not allowed", content },
    413: { description: "The body or a parameter is over its limit", content },
    429: {
      description: "Too many calls at once",
      headers: { "Retry-After": { description: "When to try again, seconds", schema: { type: "integer" } } },
      content,
    },
  };
}

/** Parameters of operations. */
import type { Components, Json } from "./schema.ts";

/** A required parameter of the path. */
export function inPath(name: string, description: string, schema: Json = { type: "string" }): Json {
  return { name, in: "path", required: true, description, schema };
}

/**
 * A parameter of the query. `schema` may have `description` and `x-list`: lists of numbers are separated by commas;
 * lists of texts repeat the parameter, or are one JSON text if `x-list` is `json`.
 */
export function inQuery(name: string, schema: Json, required = false): Json {
  const { description, "x-list": list, ...rest } = schema;
  const parameter: Json = { name, in: "query", required, description };
  if (rest["type"] !== "array") return { ...parameter, schema: rest };
  if (list === "json") return { ...parameter, schema: JSON_LIST };
  const isText = (rest["items"] as Json)["type"] === "string";
  return { ...parameter, style: "form", explode: isText, schema: rest };
}

/** A list of texts as one JSON text. */
export const JSON_LIST: Json = { type: "string", example: '["news","hd"]' };

/** The parameter that all methods have. */
export function apiVersion(components: Components): Json {
  return components.parameter(
    "api_version",
    inQuery("api_version", {
      type: "integer",
      minimum: 1,
      maximum: 3,
      description: "Version of the method API; all of them are the same to this engine",
    }),
  );
}

/** What private operations require. */
export const BY_TOKEN: readonly Json[] = [{ token: [] }];
/** What public operations require. */
export const BY_NOTHING: readonly Json[] = [];

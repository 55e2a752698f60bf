/** The OpenAPI 3.1 description of the method API, made from the registry. */
import * as z from "zod";
import { VERSION } from "../../version.ts";
import type { Method } from "./method.ts";

type Json = Record<string, unknown>;

const PATHS = ["/server/api", "/service/api"];

/**
 * All methods share one path and are told apart by the parameter `method`: each is a schema of its parameters and one of
 * its result, and `x-methods` says who may call it.
 */
export function openApi(methods: readonly Method[], baseUrl: string): Json {
  const schemas: Json = { Failure: FAILURE };
  const table: Json = {};
  for (const method of methods) {
    const { $schema: _params, ...params } = z.toJSONSchema(method.params, { io: "input" }) as Json;
    const { $schema: _result, ...result } = z.toJSONSchema(method.result, {
      io: "output",
      unrepresentable: "any",
    }) as Json;
    schemas[`${method.name}.params`] = withMethod(method, params);
    schemas[`${method.name}.answer`] = result["format"] === "binary" ? result : {
      type: "object",
      properties: { result, error: { type: "null" } },
      required: ["result", "error"],
    };
    table[method.name] = {
      summary: method.summary,
      public: method.public,
      remote: method.remote,
      params: { $ref: ref(`${method.name}.params`) },
      answer: { $ref: ref(`${method.name}.answer`) },
    };
  }
  const paths: Json = {};
  for (const path of PATHS) paths[path] = { get: operation(methods, false), post: operation(methods, true) };
  return {
    openapi: "3.1.0",
    info: { title: "millrace method API", version: VERSION },
    servers: [{ url: baseUrl }],
    paths,
    components: { schemas },
    "x-methods": table,
  };
}

const FAILURE: Json = {
  type: "object",
  properties: {
    result: { type: "null" },
    error: {
      type: "object",
      properties: { message: { type: "string" }, code: { type: "integer" } },
      required: ["message", "code"],
    },
  },
  required: ["result", "error"],
};

const ref = (name: string) => `#/components/schemas/${name}`;

/** The parameters that every call has join the method's own. */
function withMethod(method: Method, params: Json): Json {
  const required = Array.isArray(params["required"]) ? params["required"] : [];
  return {
    ...params,
    properties: {
      method: { const: method.name },
      api_version: { type: "integer", minimum: 1, maximum: 3 },
      ...(method.public ? {} : { token: { type: "string" } }),
      ...params["properties"] as Json,
    },
    required: ["method", ...(method.public ? [] : ["token"]), ...required],
  };
}

function operation(methods: readonly Method[], withBody: boolean): Json {
  const anyParams = { oneOf: methods.map(({ name }) => ({ $ref: ref(`${name}.params`) })) };
  const answers = methods.map(({ name }) => ({ $ref: ref(`${name}.answer`) }));
  const content = (schema: Json) => ({ "application/json": { schema } });
  return {
    summary: "Calls the method named by the parameter method",
    ...(withBody
      ? {
        requestBody: {
          content: {
            "application/x-www-form-urlencoded": { schema: anyParams },
            "multipart/form-data": { schema: anyParams },
          },
        },
      }
      : { parameters: [{ name: "parameters", in: "query", explode: true, style: "form", schema: anyParams }] }),
    responses: {
      200: { description: "Result or failure", content: content({ anyOf: [...answers, { $ref: ref("Failure") }] }) },
      403: { description: "The caller's address is not allowed", content: content({ $ref: ref("Failure") }) },
      413: { description: "The body or a parameter is over its limit", content: content({ $ref: ref("Failure") }) },
      429: { description: "Too many calls at once", content: content({ $ref: ref("Failure") }) },
    },
  };
}

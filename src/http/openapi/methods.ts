/** The operations of the method API: one for each method, and those that take the method's name as a parameter. */
import type { MethodGroup } from "../api/registry.ts";
import { accessOf } from "../api/method-table.ts";
import { MAX_FIELD_CHARS } from "../api/input.ts";
import type { Method } from "../api/method.ts";
import { body, failure, methodAnswer, methodRefusals } from "./answers.ts";
import { apiVersion, BY_NOTHING, BY_TOKEN, inQuery, JSON_LIST } from "./parameters.ts";
import type { Components, Json } from "./schema.ts";

/** Paths of the method API; `/server/api/NAME` has one operation, `?method=NAME` on the first two has all. */
const [CANONICAL, ALIAS] = ["/server/api", "/service/api"];

/** The paths of all methods. */
export function methodPaths(groups: readonly MethodGroup[], components: Components): Json {
  const paths: Json = {};
  const names: string[] = [];
  for (const { name: tag, methods } of groups) {
    for (const method of methods) {
      names.push(method.name);
      paths[`${CANONICAL}/${method.name}`] = operationsOf(method, tag, components);
    }
  }
  paths[CANONICAL!] = byName(names, "", components);
  paths[ALIAS!] = byName(names, "_alias", components);
  return paths;
}

/** The response of `method`, 200 for failures too. */
export function answerOf(method: Method, components: Components): Json {
  const result = components.schemaOf(method.result, "output");
  if (result["format"] === "binary") return { ...body(result, "image/*"), ...body(failure(components)) };
  const notes = method.notes === undefined ? {} : components.schemaOf(method.notes, "output");
  return body(methodAnswer(components, `${method.name}_answer`, result, notes));
}

function operationsOf(method: Method, tag: string, components: Components): Json {
  const params = components.schemaOf(method.params, "input") as {
    properties: Record<string, Json>;
    required?: string[];
  };
  const fields = Object.entries(params.properties);
  const isRequired = (name: string) => params.required?.includes(name) ?? false;
  const common = {
    tags: [tag],
    summary: method.summary,
    description: `Access: ${accessOf(method)}.`,
    security: method.public ? BY_NOTHING : BY_TOKEN,
    responses: {
      200: { description: "Result or failure", content: answerOf(method, components) },
      ...methodRefusals(components),
    },
  };
  const isFile = ([, field]: [string, Json]) => field["format"] === "binary";
  const get = {
    operationId: method.name,
    ...common,
    parameters: [
      ...fields.filter((field) => !isFile(field)).map(([name, field]) => inQuery(name, field, isRequired(name))),
      apiVersion(components),
    ],
  };
  if (!fields.some(isFile)) return { get };
  const parts = fields.map(([name, { "x-list": list, ...field }]): [string, Json] => {
    return [name, list === "json" ? { description: field["description"], ...JSON_LIST } : field];
  });
  // Generators call bodies after their schema.
  const form = components.name(`${method.name}_form`, {
    type: "object",
    properties: Object.fromEntries(parts),
    ...(params.required && { required: params.required }),
  });
  const post = {
    operationId: `${method.name}_post`,
    ...common,
    parameters: [apiVersion(components)],
    requestBody: { required: true, content: body(form, "multipart/form-data") },
  };
  return { get, post };
}

/** The path that all methods share. Clients that were written before the other paths existed send it. */
function byName(names: readonly string[], suffix: string, components: Components): Json {
  const method: Json = { type: "string", enum: names, description: "Name of the method" };
  const common = {
    tags: ["Any method"],
    responses: {
      200: {
        description: "Result or failure, or the picture of get_channel_icon",
        content: body(anyAnswer(components)),
      },
      ...methodRefusals(components),
    },
  };
  const token = {
    type: "string",
    maxLength: MAX_FIELD_CHARS,
    description: "The access token; private methods need it",
  };
  return {
    get: {
      operationId: `call_by_query${suffix}`,
      ...common,
      summary: "Calls a method by name; its parameters stand in the query.",
      security: [...BY_TOKEN, {}],
      parameters: [inQuery("method", method, true), apiVersion(components)],
    },
    post: {
      operationId: `call_by_body${suffix}`,
      ...common,
      summary:
        "Calls a method by name; its parameters stand in a JSON object, a form or multipart parts, or in the query.",
      security: BY_NOTHING,
      requestBody: {
        required: true,
        content: body(components.name("Call", {
          type: "object",
          properties: { method, token, api_version: { type: "integer", minimum: 1, maximum: 3 } },
          required: ["method"],
          additionalProperties: true,
        })),
      },
    },
  };
}

function anyAnswer(components: Components): Json {
  const { error } = (components.schemas["Failure"] as { properties: Record<string, Json> }).properties;
  return components.name("AnyAnswer", {
    type: "object",
    properties: { result: { description: "As the method's own operation has it" }, error },
    required: ["error"],
  });
}

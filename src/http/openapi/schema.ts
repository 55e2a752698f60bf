/**
 * From zod to the schemas of OpenAPI 3.0.3, which more generators read than 3.1. It has its own ways to write null and
 * files.
 */
import * as z from "zod";

/** A part of the document. */
export type Json = Record<string, unknown>;

/** Limits that zod writes for an integer schema without limits. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** Schemas that the rest of the document refers to, gathered while the document is made. */
export class Components {
  /** By name. */
  readonly schemas: Json = {};
  /** By name. */
  readonly parameters: Json = {};

  /** The schema of `type`, as it is sent by the client (`input`) or the engine (`output`); its named parts become components. */
  schemaOf(type: z.ZodType, io: "input" | "output"): Json {
    const { definitions, ...schema } = z.toJSONSchema(type, {
      target: "openapi-3.0",
      io,
      unrepresentable: "any",
    }) as Json;
    const named = (definitions ?? {}) as Record<string, Json>;
    for (const [name, part] of Object.entries(named)) this.schemas[name] ??= tidy(part, named);
    return tidy(schema, named);
  }

  /** `schema` under `name`, as a reference. */
  name(name: string, schema: Json): Json {
    this.schemas[name] ??= schema;
    return { $ref: `#/components/schemas/${name}` };
  }

  /** `parameter` under `name`, as a reference. */
  parameter(name: string, parameter: Json): Json {
    this.parameters[name] ??= parameter;
    return { $ref: `#/components/parameters/${name}` };
  }

  /** `schema`, or null. References are resolved: beside one, `nullable` would mean nothing. */
  orNull(schema: Json): Json {
    const { $ref } = schema as { $ref?: string };
    return nullable($ref === undefined ? schema : this.schemas[$ref.split("/").pop()!] as Json);
  }
}

function nullable(schema: Json): Json {
  const words = schema["enum"] as readonly unknown[] | undefined;
  // OpenAPI 3.0.3 section 4.7.24.1: null has to be among the words, too.
  return { ...schema, nullable: true, ...(words === undefined ? {} : { enum: [...new Set([...words, null])] }) };
}

/** Converts what zod writes to the form of OpenAPI 3.0.3. */
function tidy(schema: Json, named: Readonly<Record<string, Json>>): Json {
  const [only] = (schema["allOf"] ?? []) as readonly Json[];
  if (schema["nullable"] === true && only?.["$ref"] !== undefined) {
    return nullable(tidy(named[String(only["$ref"]).split("/").pop()!]!, named));
  }
  // Beside a reference all other keys are ignored.
  if (only?.["$ref"] !== undefined) return tidy(only, named);
  const tidied: Json = {};
  for (const [key, value] of Object.entries(schema)) {
    const isFile = schema["format"] === "binary" && (key === "contentEncoding" || key === "maxLength");
    const isNoLimit = schema["type"] === "integer" && Math.abs(Number(value)) === NO_LIMIT;
    // A field that is added to a response one day must not break clients of today.
    const isClosed = key === "additionalProperties" && value === false;
    // Some generators take the words of an enumeration for texts, whatever its type is.
    const isTruth = key === "enum" && schema["type"] === "boolean";
    if (isFile || isNoLimit || isClosed || isTruth) continue;
    if (key === "$ref") tidied[key] = String(value).replace("#/definitions/", "#/components/schemas/");
    else if (key === "properties") {
      const fields = Object.entries(value as Record<string, Json>);
      tidied[key] = Object.fromEntries(fields.map(([name, field]) => [name, tidy(field, named)]));
    } else if (Array.isArray(value) && (key === "anyOf" || key === "oneOf" || key === "allOf")) {
      tidied[key] = value.map((part: Json) => tidy(part, named));
    } else if (key === "items") tidied[key] = tidy(value as Json, named);
    else tidied[key] = value;
  }
  // Without it generators of typed languages take 32 bits, too few for sizes and times.
  if (schema["type"] === "integer") tidied["format"] = "int64";
  return schema["nullable"] === true ? nullable(tidied) : tidied;
}

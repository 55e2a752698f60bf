/** From text to the typed values of a method's schema: one reading of booleans, integers and lists for all methods. */
import * as z from "zod";
import { API_CODES, ApiError } from "./codes.ts";
import { booleanOf, EXPECTED, faultText, integerOf, partsOf } from "../param-text.ts";
import { shortened } from "../errors.ts";
import type { ApiInput } from "./input.ts";
import type { Method } from "./method.ts";

/** The part of a JSON Schema (2020-12) that parameters use. */
interface FieldSchema {
  readonly type?: string;
  readonly format?: string;
  readonly items?: FieldSchema;
  /** How a list of texts is written: `repeated` (default) or one `json` array. */
  readonly "x-list"?: "repeated" | "json";
}

/** Reads the parameters of one method. Throws `ApiError` with code 2 or 3 that names the parameter. */
export type ParamReader = (input: ApiInput) => Record<string, unknown>;

/** A list of texts that is sent as one JSON array. */
export function jsonList(maxItems: number, maxChars: number) {
  return z.array(z.string().max(maxChars)).max(maxItems).meta({ "x-list": "json" });
}

/** The parameters of `method` and how each is written. */
function fieldsOf(method: Method): [string, FieldSchema][] {
  const schema = z.toJSONSchema(method.params, { io: "input" }) as { properties?: Record<string, FieldSchema> };
  return Object.entries(schema.properties ?? {});
}

/** The reader of `method`'s parameters. */
export function paramReader(method: Method): ParamReader {
  // Made at the first call: few of the forty methods are ever called, and no start of the engine waits for them.
  let fields: readonly [string, FieldSchema][] | null = null;
  return (input) => {
    const raw: Record<string, unknown> = {};
    for (const [name, field] of fields ??= fieldsOf(method)) {
      const value = readField(name, field, input);
      if (value !== undefined) raw[name] = value;
    }
    if (method.refusesUnknown === true) requireKnown(input, fields);
    const parsed = method.params.safeParse(raw);
    if (parsed.success) return parsed.data;
    const issue = parsed.error.issues[0]!;
    const name = String(issue.path[0]);
    if (!(name in raw)) {
      // It may be there under a misspelt name. Elsewhere unknown names are ignored, because clients send some.
      const [unknown] = unknownNames(input, fields);
      const hint = unknown === undefined ? "" : `; there is no parameter ${shortened(unknown)}`;
      throw new ApiError(API_CODES.missingParameter, `missing parameter: ${name}${hint}`);
    }
    throw invalid(name, faultText(issue));
  };
}

/** Parameters of every call. */
const COMMON: ReadonlySet<string> = new Set(["method", "token", "api_version"]);

/** The names in `input` that no parameter has. */
function unknownNames(input: ApiInput, fields: readonly [string, FieldSchema][]): string[] {
  return [...input.names()].filter((name) => !COMMON.has(name) && !fields.some(([known]) => known === name));
}

function requireKnown(input: ApiInput, fields: readonly [string, FieldSchema][]): void {
  const [unknown] = unknownNames(input, fields);
  if (unknown === undefined) return;
  const known = fields.map(([name]) => name).join(", ");
  throw invalid(shortened(unknown), `there is no such parameter; known are ${known}`);
}

function readField(name: string, field: FieldSchema, input: ApiInput): unknown {
  if (field.format === "binary") return input.file(name);
  const list = input.list(name);
  if (list !== undefined) return readListed(name, field, list);
  const texts = input.texts(name);
  const [first] = texts;
  if (first === undefined) return undefined;
  if (field.type === "array") return readList(name, field, texts);
  if (texts.some((text) => text.includes("\0"))) throw invalid(name, "a zero character has no place in it");
  if (field.type === "string") return first;
  return first.trim() === "" ? undefined : readScalar(name, field, first);
}

/** A list that came as one, so its elements may contain commas. */
function readListed(name: string, field: FieldSchema, list: readonly string[]): unknown {
  if (field.type !== "array") throw invalid(name, "one value is expected, and no list");
  const item = field.items ?? {};
  return item.type === "string" ? list : list.map((text) => readScalar(name, item, text));
}

function readScalar(name: string, field: FieldSchema, text: string): unknown {
  if (field.type !== "boolean" && field.type !== "integer") return text;
  const value = field.type === "boolean" ? booleanOf(text) : integerOf(text);
  if (value === null) throw invalid(name, EXPECTED[field.type]);
  return value;
}

function readList(name: string, field: FieldSchema, texts: readonly string[]): unknown {
  const item = field.items ?? {};
  if (field["x-list"] === "json") return texts[0]!.trim() === "" ? [] : parseJson(name, texts[0]!);
  if (item.type === "string") return texts;
  return partsOf(texts.join(",")).map((part) => readScalar(name, item, part));
}

function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(name, "a JSON array is expected");
  }
}

function invalid(name: string, why: string): ApiError {
  return new ApiError(API_CODES.invalidParameter, `invalid parameter: ${name}: ${why}`);
}

/** The raw parameters of a call: query, and with POST a form, a JSON object, multipart parts or a bare body. */
import type { Clock } from "../../ports.ts";
import type { BodyHold } from "../admission.ts";
import { shortened } from "../errors.ts";
import { readBody } from "../request-body.ts";
import { API_CODES, ApiError } from "./codes.ts";

/** Largest body, bytes: a transport file of 16 MiB and the fields around it. */
export const MAX_BODY_BYTES = 17 * 1024 * 1024;
/**
 * Largest urlencoded form or JSON body, bytes: they carry text; files come as parts. It is also the most that is read
 * from a stranger that has shown no token, except a file that the method accepts from everybody. The longest list of
 * ids is a tenth of it.
 */
export const MAX_FORM_BYTES = 1024 * 1024;
/** Longest text of one field, characters: a magnet link of the longest kind. */
export const MAX_FIELD_CHARS = 64 * 1024;
/** Longest name of a field, characters: our names are words. */
const MAX_NAME_CHARS = 1024;
/** Most fields of one call: lists are a few hundred entries long. */
export const MAX_FIELDS = 10_000;
/** The parameter that the body fills when it is not a form. */
const BODY_PARAMETER = "file";

/** The content of a call. */
export interface ApiInput {
  /** All values of a name, the query's before the form's. */
  texts(name: string): readonly string[];
  /** Elements of a list that came as a JSON array and must not be split. Undefined: use `texts`. */
  list(name: string): readonly string[] | undefined;
  file(name: string): File | undefined;
  /** All names that were sent. */
  names(): Iterable<string>;
}

/** A value as it was sent: a text, a list in JSON, a file. */
export type FieldValue = string | readonly string[] | File;

/** Parameters as they are gathered. */
export interface InputFields {
  /** Throws `ApiError` with status 413 over a limit. */
  add(name: string, value: FieldValue): void;
  readonly input: ApiInput;
}

/** The query's parameters, and room for more; `method` comes before any of that name. Throws as `add`. */
export function queryFields(request: Request, method?: string): InputFields {
  const texts = new Map<string, string[]>();
  const lists = new Map<string, readonly string[]>();
  const files = new Map<string, File>();
  let fields = 0;
  const requireShort = (text: string) => {
    if (text.length > MAX_FIELD_CHARS) throw tooLarge(`a parameter is longer than ${MAX_FIELD_CHARS} characters`);
  };
  const add = (name: string, value: FieldValue) => {
    if (++fields > MAX_FIELDS) throw tooLarge(`more than ${MAX_FIELDS} parameters`);
    if (name.length > MAX_NAME_CHARS) throw tooLarge(`a name is longer than ${MAX_NAME_CHARS} characters`);
    if (value instanceof File) {
      files.set(name, value);
    } else if (typeof value !== "string") {
      value.forEach(requireShort);
      lists.set(name, value);
    } else {
      requireShort(value);
      if (texts.has(name)) texts.get(name)!.push(value);
      else texts.set(name, [value]);
    }
  };
  if (method !== undefined) add("method", method);
  for (const [name, value] of new URL(request.url).searchParams) add(name, value);
  const input: ApiInput = {
    texts: (name) => texts.get(name) ?? [],
    list: (name) => texts.has(name) ? undefined : lists.get(name),
    file: (name) => files.get(name),
    names: () => new Set([...texts.keys(), ...lists.keys(), ...files.keys()]),
  };
  return { add, input };
}

/** How the body of a call is read. */
export interface BodyRules {
  readonly clock: Clock;
  /** Most bytes read of it. */
  readonly maxBytes: number;
  /** Where its memory is counted. */
  readonly hold: BodyHold;
}

/**
 * Adds the content of a POST's body. Throws `ApiError` with status 413 over a limit, code 3 for a malformed body, or as
 * `readBody`.
 */
export async function readInput(request: Request, fields: InputFields, rules: BodyRules): Promise<ApiInput> {
  if (request.method === "POST") {
    for (const [name, value] of await readFields(request, rules)) fields.add(name, value);
  }
  return fields.input;
}

async function readFields(request: Request, rules: BodyRules): Promise<Iterable<[string, FieldValue]>> {
  const header = request.headers.get("content-type") ?? "";
  const type = header.split(";")[0]!.trim().toLowerCase();
  const isForm = type === "application/x-www-form-urlencoded";
  const isJson = type === "application/json";
  const maxBytes = isForm || isJson ? Math.min(MAX_FORM_BYTES, rules.maxBytes) : rules.maxBytes;
  const refuse = () => tooLarge(`the body is larger than ${maxBytes} bytes`);
  const bytes = await readBody(request, rules.clock, maxBytes, rules.hold, refuse);
  if (bytes.length === 0) return [];
  if (isForm) return new URLSearchParams(new TextDecoder().decode(bytes));
  if (isJson) return jsonFields(new TextDecoder().decode(bytes));
  if (type === "multipart/form-data") {
    try {
      return await new Response(bytes, { headers: { "content-type": header } }).formData();
    } catch {
      throw new ApiError(API_CODES.invalidParameter, "invalid parameter: the multipart body is malformed");
    }
  }
  return [[BODY_PARAMETER, new File([bytes], "body")]];
}

function tooLarge(message: string): ApiError {
  return new ApiError(API_CODES.invalidParameter, message, 413);
}

/** The members of a JSON object, in the form of a query; null members count as absent. */
function jsonFields(text: string): [string, FieldValue][] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = null;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new ApiError(API_CODES.invalidParameter, "invalid parameter: the body is no JSON object");
  }
  const members = Object.entries(parsed).filter(([, value]) => value !== null);
  return members.map(([name, value]) => [name, jsonValue(name, value)]);
}

function jsonValue(name: string, value: unknown): FieldValue {
  return Array.isArray(value) ? value.map((one) => jsonText(name, one)) : jsonText(name, value);
}

function jsonText(name: string, value: unknown): string {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return String(value);
  throw new ApiError(
    API_CODES.invalidParameter,
    `invalid parameter: ${shortened(name)}: a text, a number, true or false, or a list of these is expected`,
  );
}

/** Whether answers are as `/openapi.json` describes them, by a JSON Schema validator that is not ours. */
import { Ajv, type ValidateFunction } from "ajv";
import { assert } from "@std/assert";
import { openApi } from "../../src/http/openapi/document.ts";

type Json = Record<string, unknown>;

interface Validators {
  readonly ajv: Ajv;
  /** Answers with status 200 in JSON, by path. */
  readonly answers: ReadonlyMap<string, Json>;
}

/** Made at the first answer. */
let validators: Validators | null = null;
const compiled = new Map<string, ValidateFunction>();

/**
 * Fails when `answer`, which came with status 200 to a GET of `path` as the document has it, is not what the document says, has
 * fields that it does not name, or has not exactly one of result and error.
 */
export function assertDescribed(path: string, answer: unknown): void {
  const { ajv, answers } = validators ??= makeValidators();
  const schema = answers.get(path);
  assert(schema !== undefined, `${path} is not in the document`);
  let validate = compiled.get(path);
  if (validate === undefined) compiled.set(path, validate = ajv.compile(schema));
  assert(validate(answer), `${path}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(answer).slice(0, 1000)}`);
  const { error, ...rest } = answer as Json;
  // A failed call of the method API has no key `result`: clients take the key itself for success.
  assert(rest["result"] !== null, `${path}: ${JSON.stringify(answer)}`);
  const value = rest["result"] ?? rest["response"] ?? null;
  // An event that did not come is no error.
  const isNothing = value === null && error === null && path.startsWith("/engine/event/");
  assert((value === null) !== (error === null) || isNothing, `${path}: ${JSON.stringify(answer)}`);
}

function makeValidators(): Validators {
  const document = openApi("http://127.0.0.1:6878");
  const { components, paths } = document as { components: { schemas: Json }; paths: Record<string, { get: Json }> };
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { int64: true, binary: true } });
  for (const [name, schema] of Object.entries(components.schemas)) {
    ajv.addSchema(closed(schema) as Json, `#/components/schemas/${name}`);
  }
  const answers = new Map<string, Json>();
  for (const [path, { get }] of Object.entries(paths)) {
    const { 200: ok } = get["responses"] as { 200: { content: Record<string, { schema: Json }> } };
    const json = ok.content["application/json"];
    if (json !== undefined) answers.set(path, closed(json.schema) as Json);
  }
  return { ajv, answers };
}

/** The same schema, which refuses fields that it does not name. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy: Json = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isOpen = copy["properties"] !== undefined && copy["additionalProperties"] === undefined;
  return isOpen ? { ...copy, additionalProperties: false } : copy;
}

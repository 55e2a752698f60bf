/** `/openapi.json` as the page of the API reads it. */

/** The part of a schema that a form needs. */
export interface OpenApiSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly example?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly required?: readonly string[];
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: OpenApiSchema;
}

interface Body {
  readonly content: Readonly<Record<string, { readonly schema: OpenApiSchema }>>;
}

interface DocumentOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Body;
}

/** The parts of the document that the page uses. */
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, OpenApiSchema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
}

/** One field of an operation's form. */
export interface Field {
  readonly name: string;
  /** `body`: the field is the body; `part`: of a multipart body or a JSON object. */
  readonly place: "path" | "query" | "header" | "part" | "body";
  readonly isRequired: boolean;
  readonly isFile: boolean;
  readonly description: string;
  /** Words to choose from; empty: any. */
  readonly words: readonly string[];
  readonly hint: string;
}

/** An operation as the page shows it. */
export interface Operation {
  readonly id: string;
  readonly verb: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** Whether the token is sent along. */
  readonly takesToken: boolean;
  readonly fields: readonly Field[];
  /** Type of the body; null without one. */
  readonly bodyType: string | null;
}

/** The operations of a tag, in the order of the document. */
export function operationsOf(document: ApiDocument, tag: string): Operation[] {
  return Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).filter(([, { tags }]) => tags.includes(tag)).map(([verb, operation]): Operation => {
      const [bodyType, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [null, null];
      return {
        id: operation.operationId,
        verb: verb.toUpperCase(),
        path,
        summary: operation.summary,
        description: operation.description ?? "",
        takesToken: operation.security.some((way) => "token" in way),
        fields: [
          ...(operation.parameters ?? []).map((one) => parameterField(document, one)),
          ...(body === null ? [] : bodyFields(document, body.schema)),
        ],
        bodyType,
      };
    })
  );
}

const nameOf = ($ref: string) => $ref.slice($ref.lastIndexOf("/") + 1);

function parameterField(document: ApiDocument, parameter: Parameter): Field {
  const found = parameter.$ref === undefined ? parameter : document.components.parameters[nameOf(parameter.$ref)]!;
  return field(found.name, found.in, found.schema, found.required ?? false, found.description);
}

function bodyFields(document: ApiDocument, schema: OpenApiSchema): Field[] {
  const found = schema.$ref === undefined ? schema : document.components.schemas[nameOf(schema.$ref)]!;
  if (found.format === "binary") return [field("body", "body", found, true, "The file")];
  return Object.entries(found.properties ?? {}).map(([name, part]) => {
    return field(name, "part", part, found.required?.includes(name) ?? false, part.description);
  });
}

function field(
  name: string,
  place: Field["place"],
  schema: OpenApiSchema,
  isRequired: boolean,
  description = "",
): Field {
  const words = schema.type === "boolean" ? ["true", "false"] : (schema.enum ?? []).map(String);
  const hint = String(schema.example ?? schema.default ?? (schema.type === "array" ? "1,2,3" : ""));
  return { name, place, isRequired, isFile: schema.format === "binary", description, words, hint };
}

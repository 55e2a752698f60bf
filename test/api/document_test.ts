/** `/openapi.json`: sections 4.4 and 2, written by hand, against what the engine serves over HTTP, and the needs of generators. */
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { assert, assertEquals } from "@std/assert";
import { METHODS } from "../../src/http/api/registry.ts";
import { TOKEN, withServed } from "./support.ts";

/** Method → parameters as the document lists them: `!` is required there, `file` an upload, `a,b` one of these words. */
const DOCUMENTED: Readonly<Record<string, string>> = {
  get_api_access_token: "",
  set_allow_remote_access: "value:boolean!",
  set_allow_intranet_access: "value:boolean!",
  get_status: "",
  get_network_connection_status: "",
  check_auth: "",
  sign_in: "email:string password:string idp_token:string",
  sign_out: "",
  get_available_players: "content_id:string",
  open_in_player: "player_id:string! content_id:string infohash:string url:string",
  get_media_files:
    "content_id:string infohash:string url:string magnet:string mode:brief,full expand_wrapper:boolean " +
    "dump_transport_file:boolean analyze_content:boolean create_wrappers:boolean",
  get_content_id: "playlist_item_id:integer infohash:string url:string",
  get_channel_icon: "id:integer common_name:string item_hash:string",
  analyze_content: "query:string! title:string",
  analyze_content_multi: "query:strings!",
  analyze_deferred_playlist_items: "playlist_item_id:integers! use_media_groups:boolean",
  parse_m3u_playlist: "url:string!",
  playlist_add_item: "title:string description:string content_id:string infohash:string file:file logo_file:file " +
    "use_media_groups:boolean auto_search:boolean is_live:integer hls_manifest_url:string dash_manifest_url:string " +
    "video_url:string category:string subcategory:string tags:strings poster:string",
  playlist_update_item:
    "id:integer! logo_file:file title:string poster:string auto_search:boolean is_favorite:boolean " +
    "use_media_groups:boolean tags:strings",
  playlist_delete_item: "id:integer! use_media_groups:boolean",
  playlist_delete_items: "owner:string ids:integers!",
  playlist_restore_item: "owner:string id:integer!",
  playlist_trash_get: "owner:string",
  playlist_trash_clear: "owner:string",
  playlist_get: "owner:string",
  playlist_clear: "owner:string",
  playlist_item_set_favorite: "id:integer! value:boolean! use_media_groups:boolean owner:string",
  playlist_item_set_enabled: "id:integer! value:boolean! use_media_groups:boolean owner:string",
  playlist_items_set_enabled: "ids:integers! value:boolean! use_media_groups:boolean owner:string",
  playlist_item_set_locked: "id:integer! value:boolean! use_media_groups:boolean owner:string",
  playlist_item_set_auto_search: "id:integer! value:boolean! owner:string!",
  playlist_import: "file:file",
  external_playlist_add: "type:content,broadcast! category:string! name:string! url:string! update_interval:integer! " +
    "update_now:boolean login:string password:string",
  external_playlist_delete: "id:integer!",
  external_playlist_update: "id:integer!",
  external_playlist_edit:
    "id:integer! category:string! name:string! update_interval:integer! login:string password:string",
  external_playlist_get: "id:integer",
  update_all_external_playlists: "",
};
/** Methods that need no token. */
const PUBLIC = [
  "get_api_access_token",
  "get_status",
  "get_network_connection_status",
  "get_available_players",
  "open_in_player",
  "get_media_files",
  "get_content_id",
  "get_channel_icon",
  "analyze_content",
  "analyze_content_multi",
  "analyze_deferred_playlist_items",
  "parse_m3u_playlist",
];

/** Where results have words of a closed list: path in the schema of the answer → the words of section 2, then ours. */
const ENUMERATIONS: readonly (readonly [string, string, readonly string[], readonly string[]])[] = [
  ["get_status", "version.platform", ["linux", "win32", "android"], ["darwin"]],
  ["get_available_players", "players.type", ["proxy", "aircast"], []],
  ["get_media_files", "type", ["live", "vod"], []],
  ["get_media_files", "transport_type", ["bt", "hls", "wrapper"], []],
  [
    "analyze_content",
    "content_type",
    ["transport_file", "hls", "hls_vode", "direct_content", "direct_stream", "playlist"],
    [],
  ],
  ["analyze_content", "transport_type", ["bt", "hls"], []],
  ["external_playlist_get", "playlist.type", ["content", "broadcast"], []],
  ["check_auth", "method", ["none"], ["millrace_auth"]],
];

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly description?: string;
  readonly required?: boolean;
  readonly explode?: boolean;
  readonly schema: Schema;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

interface Document {
  readonly openapi: string;
  readonly servers: unknown;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
}

const documentOf = async (url: string): Promise<Document> => await (await fetch(`${url}/openapi.json`)).json();

/** Parameters of an operation, those of the query and the path and those of a multipart body. */
function parametersOf(document: Document, { parameters = [], requestBody }: Operation): Parameter[] {
  const named = parameters.map((one) =>
    one.$ref === undefined ? one : document.components.parameters[one.$ref.split("/").pop()!]!
  );
  const form = requestBody?.content["multipart/form-data"]?.schema.$ref?.split("/").pop();
  const parts = form === undefined ? undefined : document.components.schemas[form];
  return [
    ...named,
    ...Object.entries(parts?.properties ?? {}).map(([name, schema]) => {
      const { description } = schema as { description?: string };
      return {
        name,
        in: "query" as const,
        schema,
        required: parts?.required?.includes(name) ?? false,
        ...(description && { description }),
      };
    }),
  ];
}

function kindOf(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.join(",");
  if (schema.format === "binary") return "file";
  return schema.type === "array" ? `${schema.items?.type}s` : String(schema.type);
}

test("all 38 methods of section 4.4 have an operation with every parameter and its type, and so have our own", async () => {
  assertEquals(Object.keys(DOCUMENTED).length, 38);
  await withServed(async ({ url }) => {
    const document = await documentOf(url);
    const methods = Object.keys(document.paths).filter((path) => path.startsWith("/server/api/"));
    assertEquals(methods.sort(), METHODS.map(({ name }) => `/server/api/${name}`).sort());
    for (const [method, text] of Object.entries(DOCUMENTED)) {
      const { get, post } = document.paths[`/server/api/${method}`]!;
      assertEquals(get?.operationId, method);
      assertEquals(get?.security, PUBLIC.includes(method) ? [] : [{ token: [] }], method);
      const required: string[] = [];
      for (const parameter of text.split(" ").filter((part) => part !== "")) {
        const [, name, kind, must] = /^(\w+):([\w,]+)(!?)$/.exec(parameter)!;
        const operation = kind === "file" ? post : get;
        const field = parametersOf(document, operation!).find((one) => one.name === name);
        assert(field !== undefined, `${method} has no ${name}`);
        // Tags are one text, a JSON array.
        assertEquals(kindOf(field.schema), name === "tags" ? "string" : kind, `${method}.${name}`);
        if (field.schema.type === "array") assertEquals(field.explode, kind === "strings", `${method}.${name}`);
        if (must === "!") required.push(name!);
      }
      for (const operation of [get, post]) {
        if (operation === undefined) continue;
        const needed = parametersOf(document, operation).filter((one) => one.required).map(({ name }) => name);
        assertEquals(needed.sort(), required.sort(), `${method}: what is required`);
      }
    }
  });
});

test("enumerated fields have the words of section 2", async () => {
  await withServed(async ({ url }) => {
    const { components: { schemas } } = await documentOf(url);
    for (const [method, path, words, ours] of ENUMERATIONS) {
      const named = (one: Schema): Schema => one.$ref === undefined ? one : schemas[one.$ref.split("/").pop()!]!;
      let schema: Schema = schemas[`${method}_answer`]!.properties!["result"]!;
      for (const step of path.split(".")) schema = named(named(schema.items ?? schema).properties?.[step] ?? {});
      assertEquals([...schema.enum ?? []].sort(), [...words, ...ours].sort(), `${method} ${path}`);
    }
  });
});

test("the document is valid OpenAPI 3.0.3 by a validator that is not ours", async () => {
  await withServed(async ({ url }) => {
    const document = await documentOf(url);
    assertEquals([document.openapi, document.servers], ["3.0.3", [{ url }]]);
    const { valid, errors } = await new Validator().validate(document as unknown as Record<string, unknown>);
    assert(valid, JSON.stringify(errors ?? []).slice(0, 2000));
  });
});

test("every operation has an id of its own and a summary, and each of its parameters is described", async () => {
  await withServed(async ({ url }) => {
    const document = await documentOf(url);
    const operations = Object.values(document.paths).flatMap((verbs) => Object.values(verbs));
    const ids = operations.map(({ operationId }) => operationId);
    assertEquals(ids.length, new Set(ids).size);
    for (const operation of operations) {
      assert(operation.summary.length > 0, operation.operationId);
      for (const parameter of parametersOf(document, operation)) {
        assert((parameter.description ?? "") !== "", `${operation.operationId}: ${parameter.name}`);
      }
    }
  });
});

test("the engine serves every path and verb of the document", async () => {
  await withServed(async ({ url }) => {
    const { paths } = await documentOf(url);
    for (const [path, verbs] of Object.entries(paths)) {
      for (const verb of Object.keys(verbs)) {
        const target = path.replace("{infohash}", "0".repeat(40)).replace(/\{\w+\}/g, "1");
        const answer = await fetch(url + target, { method: verb.toUpperCase(), redirect: "manual" });
        const text = await answer.text();
        assert(answer.status !== 405 && text !== "not found\n", `${verb} ${path}: ${answer.status} ${text}`);
      }
    }
  });
});

test("a call by a method's own path has the same effect as with the method parameter", async () => {
  await withServed(async ({ url }) => {
    const ask = async (path: string, init: RequestInit = {}) => await (await fetch(url + path, init)).json();
    for (const base of ["/server/api", "/service/api"]) {
      for (const name of ["playlist_get", "get_status"]) {
        const byPath = await ask(`${base}/${name}?token=${TOKEN}`);
        assertEquals([byPath.error, byPath], [null, await ask(`${base}?method=${name}&token=${TOKEN}`)]);
      }
      // The path says more than the query or the body.
      const json = {
        method: "POST",
        body: '{"method":"sign_out","query":["x"]}',
        headers: { "content-type": "application/json" },
      };
      const both = await ask(`${base}/analyze_content_multi?method=get_status`, json);
      assertEquals(both.result?.[0]?.error, { message: "unknown protocol", code: 0 });
      assertEquals((await ask(`${base}/nothing`)).error, { message: "unknown method: nothing", code: 1 });
      assertEquals((await ask(`${base}/playlist_get`)).error, { message: "access denied: token is missing", code: 4 });
      const put = await fetch(`${url}${base}/get_status`, { method: "PUT" });
      assertEquals([put.status, put.headers.get("allow")], [405, "GET, HEAD, POST"]);
      await put.body?.cancel();
      const head = await fetch(`${url}${base}/get_api_access_token`, { method: "HEAD" });
      assertEquals([head.status, await head.text()], [200, ""]);
    }
  });
});

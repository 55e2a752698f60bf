/** Section 4.4's parameters and section 2's enumerations by hand, against what the engine says of itself over HTTP. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { withServed } from "./support.ts";

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
/** Ours. */
const ADDITIONS = ["get_player_status", "control_player", "get_task", "cancel_task", "get_playlist_url", "search"];
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
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

function kindOf(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.join(",");
  if (schema.format === "binary") return "file";
  return schema.type === "array" ? `${schema.items?.type}s` : String(schema.type);
}

test("all 38 methods of section 4.4 are there with every parameter of its kind, and no more than ours besides", async () => {
  assertEquals(Object.keys(DOCUMENTED).length, 38);
  await withServed(async ({ url }) => {
    const { components: { schemas }, "x-methods": methods } = await (await fetch(`${url}/openapi.json`)).json();
    assertEquals(Object.keys(methods).sort(), [...Object.keys(DOCUMENTED), ...ADDITIONS].sort());
    for (const [method, text] of Object.entries(DOCUMENTED)) {
      const schema: Schema = schemas[`${method}.params`];
      const common = PUBLIC.includes(method) ? ["method"] : ["method", "token"];
      const required = [...common];
      for (const parameter of text.split(" ").filter((part) => part !== "")) {
        const [, name, kind, must] = /^(\w+):([\w,]+)(!?)$/.exec(parameter)!;
        const field = schema.properties?.[name!];
        assert(field !== undefined, `${method} has no ${name}`);
        assertEquals(kindOf(field), kind, `${method}.${name}`);
        if (must === "!") required.push(name!);
      }
      assertEquals([...schema.required ?? []].sort(), required.sort(), `${method}: what is required`);
    }
  });
});

test("enumerated fields have the words of section 2", async () => {
  await withServed(async ({ url }) => {
    const { components: { schemas } } = await (await fetch(`${url}/openapi.json`)).json();
    for (const [method, path, words, ours] of ENUMERATIONS) {
      let schema: Schema = schemas[`${method}.answer`].properties.result;
      for (const step of path.split(".")) schema = (schema.items ?? schema).properties?.[step] ?? {};
      assertEquals([...schema.enum ?? []].sort(), [...words, ...ours].sort(), `${method} ${path}`);
    }
  });
});

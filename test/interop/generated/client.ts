/**
 * A program over the types that openapi-typescript makes of `/openapi.json`, checked by TypeScript before it runs. It calls an
 * engine and writes what it got as one line of JSON; `client.py` does the same.
 */
import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

declare const process: { readonly argv: readonly string[] };

const [url = "", magnet = ""] = process.argv.slice(2);
let token = "";
const client = createClient<paths>({ baseUrl: url });
client.use({
  onRequest({ request }) {
    const target = new URL(request.url);
    if (token !== "") target.searchParams.set("token", token);
    return new Request(target, request);
  },
});

/** The value of an answer that is no failure. */
function valueOf<T>(value: T | null | undefined, error: unknown): T {
  if (value === null || value === undefined) throw new Error(JSON.stringify(error));
  return value;
}

/** Parts of a multipart body. */
function form(fields: Readonly<Record<string, string | undefined>>): FormData {
  const data = new FormData();
  for (const [name, text] of Object.entries(fields)) if (text !== undefined) data.append(name, new File([text], name));
  return data;
}

const version = (await client.GET("/webui/api/service", { params: { query: { method: "get_version" } } })).data;
const status = (await client.GET("/server/api/get_status")).data;
const withoutToken = (await client.GET("/server/api/playlist_get")).data;
token = valueOf((await client.GET("/server/api/get_api_access_token")).data?.result?.token, "no token");

const add = async (title: string, infohash: string) => {
  const query = { title, infohash, is_live: 0, use_media_groups: false, tags: '["a,b","c"]' };
  const { data } = await client.GET("/server/api/playlist_add_item", { params: { query } });
  return valueOf(data?.result, data?.error);
};
const ids = [await add("First", "1".repeat(40)), await add("Second", "2".repeat(40))];
const enabled = (await client.GET("/server/api/playlist_items_set_enabled", { params: { query: { ids, value: true } } })).data;
const list = (await client.GET("/server/api/playlist_get", { params: { query: { limit: 1 } } })).data;
const page = valueOf(list?.result, list?.error);
const found = (await client.GET("/search", { params: { query: { query: "secon", page_size: 5 } } })).data;
const analysed = (await client.GET("/server/api/analyze_content_multi", {
  params: { query: { query: ["no,thing", "neither"] } },
})).data;
const auth = (await client.GET("/server/api/check_auth")).data?.result;
const missing = (await client.GET("/server/api/playlist_delete_item", { params: { query: { id: 99 } } })).data;
const imported = (await client.POST("/server/api/playlist_import", {
  body: { file: "#EXTM3U\n#EXTINF:-1,Third\nhttp://127.0.0.1:1/third.m3u8\n" },
  bodySerializer: form,
})).data;
const task = valueOf(imported?.result, imported?.error).task_id;
const kind = (await client.GET("/server/api/get_task", { params: { query: { task_id: task } } })).data?.result?.kind;
const called = (await client.POST("/server/api", { body: { method: "check_auth", token } })).data;

const begun = (await client.GET("/engine/manifest.m3u8", {
  params: { query: { magnet, format: "json", use_api_events: true, next_file_indexes: [0] } },
})).data;
const { infohash, playback_session_id: session } = valueOf(begun?.response, begun?.error);
const path = { infohash, session };
const stat = (await client.GET("/engine/stat/{infohash}/{session}", { params: { path } })).data;
const event = (await client.GET("/engine/event/{infohash}/{session}", { params: { path, query: { after: 0 } } })).data;
const stopped = (await client.GET("/engine/cmd/{infohash}/{session}", { params: { path, query: { method: "stop" } } })).data;
const gone = (await client.GET("/engine/stat/{infohash}/{session}", { params: { path } })).data;

// The generated types refuse the same values as the engine.
// @ts-expect-error -- there is no such parameter
const noSuchParameter = () => client.GET("/server/api/playlist_get", { params: { query: { titel: "x" } } });
// @ts-expect-error -- a number is expected
const noNumber = () => client.GET("/server/api/get_task", { params: { query: { task_id: "x" } } });
// @ts-expect-error -- task_id is required
const nothingRequired = () => client.GET("/server/api/get_task");
// @ts-expect-error -- results may be null
const unchecked = () => status?.result.version;
void [noSuchParameter, noNumber, nothingRequired, unchecked];

console.log(JSON.stringify({
  same_version: version?.result?.version === status?.result?.version.version,
  without_token: withoutToken?.error?.code,
  ids,
  enabled: enabled?.result,
  total: page.total_items,
  titles: page.playlist.map(({ title }) => title),
  tags: page.playlist.map(({ tags }) => tags),
  found: found?.result?.results.map(({ name }) => name),
  analysed: analysed?.result?.length,
  auth: [auth?.method, auth?.package_color, auth?.login],
  missing: missing?.error?.code,
  kind,
  called: called?.error,
  is_live: stat?.response?.is_live,
  has_event: (event?.response?.id ?? 0) > 0,
  stopped: stopped?.response,
  gone: gone?.error,
}));

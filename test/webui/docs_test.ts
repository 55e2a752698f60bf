/** What the API's page sends for a filled form, and what it shows of a response. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { openApi } from "../../src/http/openapi/document.ts";
import { callOf, tell } from "../../src/webui/docs/call.ts";
import { type ApiDocument, type Operation, operationsOf } from "../../src/webui/docs/document.ts";

const DOCUMENT = openApi("http://127.0.0.1:6878") as unknown as ApiDocument;

function operation(id: string): Operation {
  const all = DOCUMENT.tags.flatMap(({ name }) => operationsOf(DOCUMENT, name));
  return all.find((one) => one.id === id)!;
}

function values(fields: Readonly<Record<string, string | File>>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  return data;
}

test("callOf() puts path, query and token in their places, and leaves empty fields out", () => {
  const stat = callOf(operation("session_stat"), values({ "path.infohash": "a/b", "path.session": "c" }), "/tv", "t");
  assertEquals(stat.url, "/tv/engine/stat/a%2Fb/c");
  const list = operation("playlist_get");
  const fields = { "query.query": "a&b", "query.limit": "", "query.owner": "" };
  assertEquals(callOf(list, values(fields), "", "t").url, "/server/api/playlist_get?token=t&query=a%26b");
  assertEquals(callOf(list, values({}), "", "").url, "/server/api/playlist_get");
  const range = callOf(operation("read_ts"), values({ "header.Range": "bytes=0-9" }), "", "t");
  assertEquals([range.init.headers, range.init.body], [{ Range: "bytes=0-9" }, null]);
});

test("callOf() sends files as parts or as the body, and fields of a JSON body as an object", async () => {
  const file = new File(["abc"], "a.torrent");
  const parts = callOf(operation("get_media_files_post"), values({ "part.file": file, "part.mode": "brief" }), "", "t");
  const sent = parts.init.body as FormData;
  assertEquals([...sent.keys()].sort(), ["file", "mode"]);
  assertEquals(await (sent.get("file") as File).text(), "abc");
  const whole = callOf(operation("start_ts_post"), values({ "body.body": file }), "", "");
  assertEquals(await new Response(whole.init.body!).text(), "abc");
  const json = callOf(operation("call_by_body"), values({ "part.method": "get_status", "part.token": "" }), "", "");
  assertEquals([json.init.body, json.init.headers], ['{"method":"get_status"}', {
    "content-type": "application/json",
  }]);
});

test("tell() formats JSON, cuts endless responses, and does not read streams", async () => {
  const answer = (body: BodyInit, type: string) => new Response(body, { headers: { "content-type": type } });
  const failed = await tell(answer('{"error":{"code":5}}', "application/json"));
  assertEquals([failed.isFailure, failed.text.includes('\n  "error": {\n    "code": 5')], [true, true]);
  assertEquals((await tell(answer('{"result":1,"error":null}', "application/json"))).isFailure, false);
  assertEquals((await tell(answer("#EXTM3U\n", "audio/x-mpegurl"))).text, "#EXTM3U\n");
  let pulls = 0;
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        pulls++;
        controller.enqueue(new Uint8Array(65_536).fill(97));
      },
    }, { highWaterMark: 0 });
  const cut = await tell(answer(endless(), "text/plain"));
  assert(cut.text.endsWith("a…") && cut.text.length < 400_000, String(cut.text.length));
  pulls = 0;
  assertEquals([(await tell(answer(endless(), "video/mp2t"))).text, pulls], ["", 0]);
});

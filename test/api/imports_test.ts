/** `playlist_import` and its tasks, over HTTP. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { until } from "../support/until.ts";
import { LIST, useListsApi } from "./lists-support.ts";
import { TOKEN } from "./support.ts";

const { source, directory, post, call, ended, titles } = useListsApi();

function multipart(list: BodyInit | Uint8Array, fields: Record<string, string> = {}): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("other", new File(["not this"], "other.m3u"));
  form.append("file", new File([list as Uint8Array<ArrayBuffer>], "50% Télé.m3u"));
  return form;
}

test("playlist_import takes a part, a body, a form with the token inside, gzip and a URL; get_task reports the result", async () => {
  source.behaviour.text = LIST;
  const token = { token: "" };
  const ways: [string, () => ReturnType<typeof post>][] = [
    ["part", () => post("playlist_import", {}, { body: multipart(new TextEncoder().encode(LIST)) })],
    ["body", () => post("playlist_import", {}, { body: LIST, headers: { "content-type": "audio/x-mpegurl" } })],
    [
      "form",
      () => post("playlist_import", token, { body: multipart(new TextEncoder().encode(LIST), { token: TOKEN }) }),
    ],
    ["gzip", () => post("playlist_import", {}, { body: multipart(gzipSync(LIST)) })],
    ["joined gzip", () =>
      post("playlist_import", {}, {
        body: multipart(Buffer.concat([gzipSync(LIST.slice(0, 30)), gzipSync(LIST.slice(30))])),
      })],
    ["owner", () => post("playlist_import", {}, { body: multipart(gzipSync(LIST), { owner: "" }) })],
    ["url", () => post("playlist_import", { url: `${source.url}/l.m3u` })],
  ];
  for (const [way, send] of ways) {
    const { result, error } = await send();
    assertEquals(error, null, way);
    const status = await ended(result.task_id);
    assertEquals(status, {
      task_id: result.task_id,
      kind: "playlist_import",
      state: "done",
      done: 2,
      total: 2,
      skipped: 0,
      errors: [{ line: 5, message: "not an address that can be played" }],
      errors_total: 1,
      error: null,
      error_code: null,
    }, way);
    assertEquals(await titles(), ["Alpha", "Beta HD"], way);
    await call("playlist_clear", { owner: "" });
  }
  assertEquals(await readdir(join(directory.path, "imports")), [], "nothing is left aside");
});

test("playlist_import assigns the items to the owner", async () => {
  const { result } = await post("playlist_import", { owner: "ann" }, { body: LIST });
  await ended(result.task_id);
  assertEquals([await titles({ owner: "bob" }), (await titles({ owner: "ann" })).length], [[], 2]);
  await call("playlist_clear", { owner: "ann" });
});

test("playlist_import refuses input that it cannot use", async () => {
  const failed = async (
    body: BodyInit | null,
    params: Record<string, string> = {},
    headers: Record<string, string> = {},
  ) => {
    const { error, status } = await post("playlist_import", params, { body, headers });
    return [status, error?.code ?? 0];
  };
  const broken = { "content-type": "multipart/form-data; boundary=x" };
  assertEquals(await failed(null), [200, 2]);
  assertEquals(await failed("--x\r\nnonsense", {}, broken), [200, 3]);
  assertEquals(
    await failed("--x\r\ncontent-disposition: form-data; name=file; filename*=utf-8''%zz\r\n\r\n", {}, broken),
    [
      200,
      3,
    ],
  );
  assertEquals(await failed(LIST, { token: "f".repeat(64) }), [200, 4]);
  assertEquals(await failed(null, { url: "ftp://h/x" }), [200, 3]);
  const { error } = await post("get_task", { task_id: "1" });
  assertEquals(error?.code, 5);
  for (const text of ["<html>", "#EXTM3U\n#EXT-X-TARGETDURATION:3\n"]) {
    const { result } = await post("playlist_import", {}, { body: text });
    const status = await ended(result.task_id);
    assertEquals([status.state, status.error_code], ["failed", "invalid_argument"]);
    assertMatch(status.error, /invalid playlist/);
  }
  source.behaviour.status = 404;
  const { result } = await post("playlist_import", { url: `${source.url}/l.m3u` });
  assertMatch((await ended(result.task_id)).error, /404/);
  source.behaviour.status = null;
  assertEquals(await readdir(join(directory.path, "imports")), []);
  assertEquals(await titles(), []);
});

test("playlist_import takes lists that are larger than other bodies, and none beyond its limit", async () => {
  const entry = `#EXTINF:-1 tvg-id="x" x-filler="${"y".repeat(8000)}",Same\nhttp://h/same\n`;
  const repeated = (bytes: number) => "#EXTM3U\n" + entry.repeat(Math.ceil(bytes / entry.length));
  const { result } = await post("playlist_import", {}, { body: repeated(20 * 2 ** 20) });
  const status = await ended(result.task_id);
  assertEquals([status.state, status.done - status.skipped], ["done", 1]);
  const { error } = await post("playlist_import", {}, { body: repeated(64 * 2 ** 20 + 1) });
  assertMatch(error!.message, /larger than/);
  assertEquals(await readdir(join(directory.path, "imports")), []);
  await call("playlist_clear", { owner: "" });
});

test("cancel_task stops an import and keeps the items already added", async () => {
  const list = Array.from({ length: 60_000 }, (_, i) => `http://h/${i}\n`).join("");
  const { result } = await post("playlist_import", {}, { body: list });
  const id = String(result.task_id);
  await until("some entries", async () => (await call("get_task", { task_id: id })).done > 0);
  assertEquals(await call("cancel_task", { task_id: id }), "ok");
  const status = await ended(result.task_id);
  assertEquals([status.state, status.total], ["cancelled", 60_000]);
  const { total_items } = await call("playlist_get", { limit: "0" });
  assert(total_items > 0 && total_items < 60_000 && total_items >= status.done, String(total_items));
  assertEquals(await call("cancel_task", { task_id: id }), "ok");
  await call("playlist_clear", { owner: "" });
});

test("cancel_task of an import that waits for its turn leaves nothing aside", async () => {
  // Two long ones take the places of running tasks.
  const long = Array.from({ length: 60_000 }, (_, i) => `http://h/${i}\n`).join("");
  const ids = [];
  for (let i = 0; i < 2; i++) ids.push((await post("playlist_import", {}, { body: long })).result.task_id);
  const { result } = await post("playlist_import", {}, { body: LIST });
  assertEquals((await call("get_task", { task_id: String(result.task_id) })).state, "queued");
  assertEquals((await readdir(join(directory.path, "imports"))).length, 3);
  await call("cancel_task", { task_id: String(result.task_id) });
  await until("its file to be gone", async () => (await readdir(join(directory.path, "imports"))).length === 2);
  for (const id of ids) await call("cancel_task", { task_id: String(id) });
  for (const id of ids) assertEquals((await ended(id)).state, "cancelled");
  await call("playlist_clear", { owner: "" });
});

/** The methods of external playlists, over HTTP. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { until } from "../support/until.ts";
import { type Any, LIST, useListsApi } from "./lists-support.ts";
import { TOKEN, withEngine } from "./support.ts";

const { source, post, call, ended, titles } = useListsApi();

test("every parameter of the external playlist methods has its effect", async () => {
  Object.assign(source.behaviour, { text: LIST, credentials: "me:secret" });
  const base = { type: "broadcast", category: "TV", name: "mine", url: `${source.url}/l.m3u`, update_interval: "120" };
  const count = () => source.requests.length;
  const first = count();
  const id = await call("external_playlist_add", { ...base, update_now: "0", login: "me", password: "secret" });
  const now = Math.floor(Date.now() / 1000);
  const [shown] = (await call("external_playlist_get", { id: String(id) })).playlist;
  const { updated_at, next_update, ...rest } = shown;
  assertEquals(rest, {
    id,
    type: "broadcast",
    category: "TV",
    name: "mine",
    url: base.url,
    login: "me",
    password: "",
    user_agent: "",
    max_connections: 0,
    update_interval: 120,
    last_update: 0,
    last_error: "",
    last_error_code: "",
  });
  assert(Math.abs(updated_at - now) <= 5 && next_update === updated_at + 120);
  assertEquals(count(), first);
  assertEquals(await call("external_playlist_update", { id: String(id) }), "ok");
  const { playlist } = await call("playlist_get");
  assertEquals(playlist.map((item: Any) => [item.title, item.category, item.subcategory, item.is_live]), [
    ["Alpha", "TV", "G", 1],
    ["Beta HD", "TV", "", 1],
  ]);
  assert(playlist.every((item: Any) => item.external_playlist_id === id));
  const edit = { id: String(id), category: "", name: "yours", update_interval: "0" };
  await call("external_playlist_edit", { ...edit, login: "me", password: "wrong" });
  const [edited] = (await call("external_playlist_get")).playlist;
  assertEquals([edited.name, edited.category, edited.update_interval, edited.next_update], ["yours", "", 0, 0]);
  assert(edited.last_update >= now);
  assertMatch((await post("external_playlist_update", { id: String(id) })).error!.message, /401/);
  assertMatch((await call("external_playlist_get")).playlist[0].last_error, /401: check login and password/);
  await call("external_playlist_edit", { ...edit, login: "me", password: "secret" });
  const task = (await call("update_all_external_playlists")).task_id;
  const status = await ended(task);
  assertEquals([status.kind, status.state, status.done, status.errors.length], [
    "update_all_external_playlists",
    "done",
    1,
    1,
  ]);
  const second = await call("external_playlist_add", {
    ...base,
    type: "content",
    name: "now",
    login: "me",
    password: "secret",
  });
  await until(
    "the first fetch",
    async () => (await call("external_playlist_get", { id: String(second) })).playlist[0].last_update > 0,
  );
  assertEquals((await titles()).length, 4);
  for (const one of [id, second]) await call("external_playlist_delete", { id: String(one) });
  assertEquals(await titles(), []);
  assertEquals((await call("external_playlist_get")).playlist, []);
});

test("external_playlist_edit moves a list and keeps its items; a new server gets no password of the old one", async () => {
  Object.assign(source.behaviour, { text: LIST, credentials: null });
  const base = { type: "content", category: "", name: "mine", update_interval: "0" };
  const add = { ...base, url: `${source.url}/old.m3u`, login: "me", password: "secret", user_agent: "VLC/3.0.21" };
  const id = String(await call("external_playlist_add", { ...add, update_now: "0" }));
  const last = () => source.requests[source.requests.length - 1]!;
  await call("external_playlist_update", { id });
  assertEquals([last().path, last().headers["user-agent"]], ["/old.m3u", "VLC/3.0.21"]);
  const { playlist: [alpha] } = await call("playlist_get");
  await call("playlist_item_set_favorite", { id: String(alpha.id), value: "1" });
  const edit = { id, category: "", name: "mine", update_interval: "0" };
  await call("external_playlist_edit", { ...edit, url: `${source.url}/new.m3u`, user_agent: "" });
  await call("external_playlist_update", { id });
  assertEquals([last().path, last().headers.authorization], ["/new.m3u", `Basic ${btoa("me:secret")}`]);
  assertMatch(last().headers["user-agent"]!, /^millrace/);
  const moved = (await call("playlist_get")).playlist[0];
  assertEquals([moved.id, moved.is_favorite], [alpha.id, true]);
  const elsewhere = source.url.replace("127.0.0.1", "localhost");
  await call("external_playlist_edit", { ...edit, url: `${elsewhere}/new.m3u` });
  await call("external_playlist_update", { id });
  assertEquals([last().headers.host?.startsWith("localhost"), last().headers.authorization], [true, undefined]);
  assertEquals((await call("external_playlist_get", { id })).playlist[0].login, "");
  const refused = async (params: Record<string, string>) =>
    (await post("external_playlist_edit", { ...edit, ...params })).error?.message ?? "";
  assertMatch(
    await refused({ adress: "http://h/" }),
    /adress: there is no such parameter; known are id, category, name/,
  );
  assertMatch(await refused({ url: "ftp://h/" }), /invalid url/);
  assertMatch(await refused({ user_agent: "é" }), /user_agent/);
  await call("external_playlist_delete", { id });
});

test("external_playlist_add and _edit keep how many connections a provider allows", async () => {
  Object.assign(source.behaviour, { text: LIST, credentials: null });
  const base = { category: "", name: "mine", update_interval: "0" };
  const add = { ...base, type: "broadcast", url: `${source.url}/few.m3u`, update_now: "0", max_connections: "2" };
  const id = String(await call("external_playlist_add", add));
  const shown = async () => (await call("external_playlist_get", { id })).playlist[0].max_connections;
  assertEquals(await shown(), 2);
  await call("external_playlist_edit", { ...base, id });
  assertEquals(await shown(), 2);
  await call("external_playlist_edit", { ...base, id, max_connections: "0" });
  assertEquals(await shown(), 0);
  assertMatch(
    (await post("external_playlist_edit", { ...base, id, max_connections: "-1" })).error!.message,
    /max_conn/,
  );
  await call("external_playlist_delete", { id });
});

test("callers elsewhere cannot make the engine fetch private addresses", async () => {
  await withEngine(async ({ call }) => {
    source.behaviour.text = LIST;
    const asked = source.requests.length;
    const url = `${source.url}/l.m3u`;
    const from = { from: "intranet" } as const;
    const { result } = await call("playlist_import", { token: TOKEN, url }, from);
    let status: Any = null;
    await until("the end of the task", async () => {
      status = (await call("get_task", { token: TOKEN, task_id: String(result.task_id) }, from)).result;
      return status.state === "failed";
    });
    assertMatch(status.error, /private network/);
    const list = { type: "content", category: "", name: "n", url, update_interval: "0", update_now: "0", token: TOKEN };
    const { result: theirs } = await call("external_playlist_add", list, from);
    // It counts who named the address, not who asks for the update.
    const { error } = await call("external_playlist_update", { token: TOKEN, id: String(theirs) });
    assertMatch(error!.message, /private network/);
    assertMatch((await call("parse_m3u_playlist", { url }, from)).error!.message, /private network/);
    assertEquals(source.requests.length, asked);
    Object.assign(source.behaviour, { credentials: null });
    const { result: ours } = await call("external_playlist_add", list);
    assertEquals((await call("external_playlist_update", { token: TOKEN, id: String(ours) }, from)).result, "ok");
  });
});

test("external playlist methods name the parameter at fault", async () => {
  const good = { type: "content", category: "", name: "n", url: "http://h/", update_interval: "0", update_now: "0" };
  const table: [string, Record<string, string>, number, RegExp][] = [
    ["external_playlist_add", { ...good, type: "other" }, 3, /type/],
    ["external_playlist_add", { ...good, url: "ftp://h/" }, 3, /url/],
    ["external_playlist_add", { ...good, update_interval: "59" }, 3, /update_interval/],
    ["external_playlist_add", { ...good, update_interval: "-1" }, 3, /update_interval/],
    ["external_playlist_edit", { id: "77", category: "", name: "", update_interval: "0" }, 5, /77/],
    ["external_playlist_get", { id: "77" }, 5, /77/],
    ["external_playlist_update", { id: "77" }, 5, /77/],
    ["external_playlist_delete", { id: "77" }, 5, /77/],
    ["external_playlist_delete", {}, 2, /id/],
  ];
  for (const [method, params, code, message] of table) {
    const { error } = await post(method, params);
    assertEquals(error?.code, code, method);
    assertMatch(error!.message, message);
  }
  for (const name of ["type", "category", "name", "url", "update_interval"]) {
    const { [name]: _, ...rest } = good as Record<string, string>;
    assertEquals((await post("external_playlist_add", rest)).error, { message: `missing parameter: ${name}`, code: 2 });
  }
});

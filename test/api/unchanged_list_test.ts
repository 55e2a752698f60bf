/** External playlists whose servers send no validators, how failures are reported, and consistent names for kinds of addresses; over HTTP. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { type Any, LIST, useListsApi } from "./lists-support.ts";

const { source, post, call, ended, titles } = useListsApi();

const add = (name: string, more: Record<string, string> = {}): Promise<number> =>
  call("external_playlist_add", {
    type: "content",
    category: "",
    name,
    url: `${source.url}/l.m3u`,
    update_interval: "0",
    update_now: "0",
    ...more,
  });

/** Updates all lists; how many of their bad lines were read. */
async function badLines(): Promise<number> {
  return (await ended((await call("update_all_external_playlists")).task_id)).errors_total;
}

test("external_playlist_get tells why the last fetch failed, until one succeeds", async () => {
  const id = String(await add("failing"));
  const told = async () => {
    const { last_error, last_error_code } = (await call("external_playlist_get", { id })).playlist[0];
    return [last_error, last_error_code];
  };
  const cases: [Partial<typeof source.behaviour>, RegExp, string][] = [
    [{ status: 503 }, /^the server answered 503$/, "connection_failed"],
    [{ text: "<!doctype html>" }, /^invalid playlist: it is a web page/, "invalid_argument"],
    [{ text: "#EXTM3U\n" }, /^the list has no entries/, "invalid_argument"],
  ];
  for (const [behaviour, message, code] of cases) {
    Object.assign(source.behaviour, { text: LIST, status: null }, behaviour);
    const { error } = await post("external_playlist_update", { id });
    assertMatch(error!.message, message);
    assertEquals(await told(), [error!.message, code]);
  }
  Object.assign(source.behaviour, { text: LIST, status: null });
  await call("external_playlist_update", { id });
  assertEquals(await told(), ["", ""]);
  await call("external_playlist_delete", { id });
});

test("an unchanged list without validators is not read again; a changed, edited, cleared or unlocked one is", async () => {
  for (const gzip of [false, true]) {
    Object.assign(source.behaviour, { text: LIST, etag: null, lastModified: null, gzip });
    const id = String(await add("plain"));
    const last = async () => (await call("external_playlist_get", { id })).playlist[0].last_update;
    assertEquals(await badLines(), 1);
    const before = (await call("playlist_get")).playlist;
    assertEquals(before.map((item: Any) => item.title), ["Alpha", "Beta HD"]);
    const asked = source.requests.length;
    assertEquals(await badLines(), 0, "the same bytes");
    assertEquals(source.requests.length, asked + 1);
    assert(await last() > 0);
    assertEquals((await call("playlist_get")).playlist, before);

    // As long as the old one, shorter, longer.
    for (const text of [LIST.replace("Alpha", "Aleph"), LIST.replace("Alpha", "A"), `${LIST}http://h/c\n`]) {
      source.behaviour.text = text;
      assertEquals(await badLines(), 1);
      assertEquals(
        await titles(),
        text.includes("/c") ? ["Alpha", "Beta HD", "c"] : [
          /Aleph|A$/m.exec(text)![0],
          "Beta HD",
        ],
      );
      assertEquals(await badLines(), 0);
    }

    await call("external_playlist_edit", { id, category: "Mine", name: "plain", update_interval: "0" });
    assertEquals(await badLines(), 1, "edited");
    assertEquals(await badLines(), 0);
    await call("playlist_clear");
    assertEquals(await titles(), []);
    assertEquals(await badLines(), 1, "cleared");
    assertEquals(await titles(), ["Alpha", "Beta HD", "c"]);

    // Changes that a list made to a locked item take effect once it is unlocked, although the list has not changed since.
    const [{ id: locked }] = (await call("playlist_get")).playlist;
    await call("playlist_item_set_locked", { id: String(locked), value: "1" });
    source.behaviour.text = LIST.replace("http://h/a", "http://h/a2");
    await badLines();
    const url = async () => (await call("playlist_get")).playlist[0].url;
    assertEquals(await url(), "http://h/a");
    await call("playlist_item_set_locked", { id: String(locked), value: "0" });
    assertEquals(await badLines(), 1, "unlocked");
    assertEquals(await url(), "http://h/a2");
    await call("external_playlist_delete", { id });
  }
});

test("a refresh that breaks off in the middle of the list it had before changes nothing", async () => {
  Object.assign(source.behaviour, { text: LIST, etag: null, lastModified: null, gzip: false });
  const id = String(await add("broken"));
  await badLines();
  source.behaviour.raw = (_request, response) => {
    response.writeHead(200, { "content-length": String(LIST.length) });
    response.write(LIST.slice(0, 40), () => response.destroy());
  };
  assert((await post("external_playlist_update", { id })).error !== null);
  source.behaviour.raw = null;
  assertEquals(await titles(), ["Alpha", "Beta HD"]);
  assertEquals(await badLines(), 0, "still the same");
  await call("external_playlist_delete", { id });
});

test("transport_type of an address is the same whether it was added, imported or analysed", async () => {
  const addresses: [string, string, string][] = [
    ["video_url", "http://h/film.mp4", "direct"],
    ["video_url", "http://h/live/1", "direct"],
    ["video_url", "http://h/live.m3u8", "hls"],
    ["hls_manifest_url", "http://h/other.m3u8", "hls"],
    ["dash_manifest_url", "http://h/film.mpd", "dash"],
    ["video_url", "http://h/other.mpd", "dash"],
    ["video_url", "http://h/film.torrent", "bt"],
    ["video_url", `http://box:1/engine/getstream?infohash=${"ab".repeat(20)}`, "bt"],
  ];
  const facts = async () =>
    (await call("playlist_get")).playlist.map((item: Any) => [
      item.url,
      item.infohash,
      item.transport_type,
      item.is_live,
      item.content_type,
      item.hash,
    ]);
  for (const [name, url] of addresses) await call("playlist_add_item", { [name]: url });
  const added = await facts();
  assertEquals(added.map((item: Any) => item[2]), addresses.map(([, , type]) => type));
  await call("playlist_clear");
  source.behaviour.text = `#EXTM3U\n${addresses.map(([, url]) => `#EXTINF:-1,x\n${url}\n`).join("")}`;
  const { task_id } = await call("playlist_import", { url: `${source.url}/l.m3u` });
  assertEquals((await ended(task_id)).state, "done");
  assertEquals(await facts(), added);
  // An address that says nothing is what its parameter says.
  const { result } = await post("playlist_add_item", { hls_manifest_url: "http://h/live/2" });
  const last = (await call("playlist_get")).playlist.at(-1);
  assertEquals([last.id, last.transport_type], [result, "hls"]);
});

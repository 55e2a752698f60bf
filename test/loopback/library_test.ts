/** Items of the library, played from real engines. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { TOKEN } from "../api/support.ts";
import { seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";

const EPISODES = [1, 2, 3].map((n) => ({ path: `Show E${n}.mkv`, bytes: new Uint8Array(9000).fill(n) }));

// deno-lint-ignore no-explicit-any -- the tests look into it
type Any = any;

/** Calls a private method; fails with its error. */
async function call(served: ServedEngine, method: string, params: Record<string, string> = {}, body?: BodyInit) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  const response = await fetch(`${served.url}/server/api?${query}`, body === undefined ? {} : { method: "POST", body });
  const { result, error } = await response.json() as { result: Any; error: { message: string } | null };
  if (error !== null) throw new Error(`${method}: ${error.message}`);
  return result;
}

/** Imports a list, and returns the items of the library. */
async function imported(served: ServedEngine, list: string): Promise<Any[]> {
  const { task_id } = await call(served, "playlist_import", {}, new TextEncoder().encode(list));
  await until("the list is imported", async () => (await call(served, "get_task", { task_id })).state === "done");
  return (await call(served, "playlist_get")).playlist;
}

test("a start by the infohash of an item finds the peers that the item's magnet names", async () => {
  const seeder = await seedFiles(EPISODES, { name: "The Show" });
  const served = await serveEngine({ accessToken: TOKEN });
  try {
    const [item] = await imported(served, `#EXTM3U\n#EXTINF:-1,The Show\n${seeder.magnet}\n`);
    assertEquals(item.url, seeder.magnet);
    const played = await fetch(`${served.url}/engine/getfile?infohash=${item.infohash}&_idx=1`);
    assertEquals(new Uint8Array(await played.arrayBuffer()), EPISODES[1]!.bytes);
  } finally {
    await served.close();
    await seeder.close();
  }
});

test("an episode that is added keeps its file and its trackers, wherever it is played", async () => {
  const trackers = [["http://127.0.0.1:9/announce?passkey=1"]];
  const seeder = await seedFiles(EPISODES, { name: "The Show", trackers });
  const served = await serveEngine({ accessToken: TOKEN });
  const played = async (address: string) => new Uint8Array(await (await fetch(address)).arrayBuffer());
  try {
    const { infohashHex } = seeder.metainfo;
    const add = { title: "Episode 2", infohash: infohashHex, magnet: seeder.magnet, file_index: "1" };
    const id = await call(served, "playlist_add_item", add);
    const [item] = (await call(served, "playlist_get")).playlist;
    assertEquals([item.infohash, item.url, item.file_index], [infohashHex, seeder.magnet, 1]);
    const list = await (await fetch(`${served.url}/engine/playlist.m3u`)).text();
    const query = `magnet=${encodeURIComponent(seeder.magnet)}&_idx=1`;
    assertEquals(list.trim().split("\n").pop(), `${served.url}/engine/getstream?${query}`);
    assertEquals(await played(`${served.url}/engine/getfile?item=${id}`), EPISODES[1]!.bytes);
    assertEquals(await played(`${served.url}/engine/getfile?item=${id}&_idx=2`), EPISODES[2]!.bytes);
    // An item that comes without a link gets one with the trackers of the transport file.
    await call(served, "playlist_add_item", { title: "From a file" }, transportForm(seeder.transportFile));
    await call(served, "playlist_add_item", { title: "Episode 3", infohash: infohashHex, file_index: "2" });
    const [, file, third] = (await call(served, "playlist_get")).playlist;
    const link = `magnet:?xt=urn:btih:${infohashHex}&dn=The%20Show&tr=${encodeURIComponent(trackers[0]![0]!)}`;
    assertEquals([third.url, third.file_index, file.file_index], [link, 2, null]);
    assertEquals([file.url, file.is_multi_tfile], [link, true]);
  } finally {
    await served.close();
    await seeder.close();
  }
});

function transportForm(bytes: Uint8Array): FormData {
  const form = new FormData();
  form.append("file", new File([bytes as Uint8Array<ArrayBuffer>], "show.torrent"));
  return form;
}

test("a season's own list imports one item per episode, each with its file, and once only", async () => {
  const seeder = await seedFiles(EPISODES, { name: "The Show" });
  const served = await serveEngine({ accessToken: TOKEN });
  try {
    const query = new URLSearchParams({ magnet: seeder.magnet });
    const list = await (await fetch(`${served.url}/engine/playlist.m3u?${query}`)).text();
    const items = await imported(served, list);
    assertEquals(items.map(({ title, url, file_index }) => [title, url, file_index]), [
      ["Show E1", seeder.magnet, 0],
      ["Show E2", seeder.magnet, 1],
      ["Show E3", seeder.magnet, 2],
    ]);
    assertEquals((await imported(served, list)).length, 3);
    const again = await (await fetch(`${served.url}/engine/playlist.m3u`)).text();
    assertEquals((await imported(served, again)).length, 3);
    const played = await fetch(`${served.url}/engine/getfile?item=${items[2].id}`);
    assertEquals(new Uint8Array(await played.arrayBuffer()), EPISODES[2]!.bytes);
  } finally {
    await served.close();
    await seeder.close();
  }
});

test("playlist_add_item refuses a magnet that names another torrent than the infohash", async () => {
  const served = await serveEngine({ accessToken: TOKEN });
  try {
    const magnet = `magnet:?xt=urn:btih:${"1".repeat(40)}`;
    const add = (infohash: string) => call(served, "playlist_add_item", { title: "x", infohash, magnet });
    await assertRejects(() => add("2".repeat(40)), Error, "another torrent");
    assertEquals(await add("1".repeat(40)), 1);
  } finally {
    await served.close();
  }
});

/** A large playlist that is cleared while others read it, over HTTP. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { useListsApi } from "./lists-support.ts";
import { TOKEN } from "./support.ts";

const { served, source, call, ended, titles } = useListsApi();

/** With the others more than sockets and streams hold on the way: the answer is not made before it is read. */
const ENTRIES = 13_000;
/** So many that writing them again instead takes longer. */
const OTHERS = 7_000;

const listOf = (count: number, name: string) =>
  `#EXTM3U\n${Array.from({ length: count }, (_, i) => `#EXTINF:-1,${name} ${i}\nhttp://h/${name}/${i}\n`).join("")}`;

async function imported(text: string, params: Record<string, string> = {}): Promise<void> {
  source.behaviour.text = text;
  const { task_id } = await call("playlist_import", { url: `${source.url}/l.m3u`, ...params });
  assertEquals((await ended(task_id)).state, "done");
}

test("playlist_get returns one consistent playlist and other calls are answered while an owner's items are deleted", async () => {
  await imported(listOf(OTHERS, "Ann"), { owner: "ann" });
  await imported(listOf(ENTRIES, "Zed"), { owner: "zed" });
  const all = ENTRIES + OTHERS;

  const response = await fetch(`${served.url}/server/api?method=playlist_get&token=${TOKEN}`);
  const reader = response.body!.getReader();
  const first = await reader.read();
  const clearing = call("playlist_clear", { owner: "zed" });
  // Every answer must have come before the deletion ended, or the deletion kept everybody waiting.
  let before = 0;
  for (;;) {
    const { total_items } = await call("playlist_get", { limit: "1" });
    await call("get_status");
    if (total_items === OTHERS) break;
    // All or nothing: no half of it is ever seen.
    assertEquals(total_items, all);
    before++;
  }
  await clearing;
  assert(before > 0, `${before} answers while it was deleted`);
  assertEquals((await call("playlist_get", { query: "Zed", limit: "1" })).total_items, 0);

  const decoder = new TextDecoder();
  let text = decoder.decode(first.value, { stream: true });
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += decoder.decode(part.value, { stream: true });
  }
  const { result } = JSON.parse(text);
  assertEquals([result.total_items, result.playlist.length], [all, all]);
  assertEquals(result.playlist.at(-1).title, `Zed ${ENTRIES - 1}`);
});

test("playlist_clear of a large playlist keeps the trash and locked items as they were", async () => {
  const { playlist } = await call("playlist_get", { limit: "3" });
  const [locked, trashed] = playlist.map(({ id }: { id: number }) => String(id));
  await call("playlist_item_set_locked", { id: locked, value: "1" });
  await call("playlist_delete_item", { id: trashed });
  const before = (await call("playlist_get", { limit: "1" })).playlist;
  await call("playlist_clear");
  const { total_items, playlist: kept } = await call("playlist_get", { query: "Ann" });
  assertEquals([total_items, kept], [1, before]);
  assertEquals((await call("playlist_trash_get")).data.map(({ id }: { id: number }) => String(id)), [trashed]);
  // Ids are not used again.
  const id = await call("playlist_add_item", { title: "Later", video_url: "http://h/later" });
  assert(id > ENTRIES + OTHERS, String(id));
  await call("playlist_item_set_locked", { id: locked, value: "0" });
  await call("playlist_clear");
  assertEquals((await call("playlist_get", { query: "Ann" })).total_items, 0);
});

test("deleting an external playlist while others read leaves nothing of it, and all of the rest", async () => {
  const count = 5000;
  source.behaviour.text = listOf(count, "Channel");
  await call("playlist_add_item", { title: "Mine", video_url: "http://h/mine" });
  const list = { type: "content", category: "", name: "n", url: `${source.url}/l.m3u`, update_interval: "0" };
  const id = String(await call("external_playlist_add", { ...list, update_now: "0" }));
  await call("external_playlist_update", { id });
  const totals = new Set<number>();
  let isOver = false;
  const deleting = call("external_playlist_delete", { id }).then(() => isOver = true);
  while (!isOver) totals.add((await call("playlist_get", { limit: "1" })).total_items);
  await deleting;
  totals.delete(count + 1);
  totals.delete(1);
  assertEquals([...totals], [], "seen in between");
  assertEquals(await titles(), ["Mine"]);
  assertEquals((await call("external_playlist_get")).playlist, []);
});

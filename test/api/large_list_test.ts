/** A large playlist that is cleared while others read it, over HTTP. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { useListsApi } from "./lists-support.ts";
import { TOKEN } from "./support.ts";

const { served, source, call, ended, titles } = useListsApi();

/** More than sockets and streams hold on the way: the answer is not made before it is read. */
const ENTRIES = 20_000;

test("playlist_get gives the playlist of one moment, and others get answers, while all of it is deleted", async () => {
  const entries = Array.from(
    { length: ENTRIES },
    (_, i) => `#EXTINF:-1 group-title="G${i % 7}",Channel ${i}\nhttp://h/${i}\n`,
  );
  source.behaviour.text = `#EXTM3U\n${entries.join("")}`;
  const { task_id } = await call("playlist_import", { url: `${source.url}/l.m3u` });
  assertEquals((await ended(task_id)).done, ENTRIES);

  const response = await fetch(`${served.url}/server/api?method=playlist_get&token=${TOKEN}`);
  const reader = response.body!.getReader();
  const first = await reader.read();
  const clearing = call("playlist_clear");
  // Each answer is one that came before the end, else the deletion kept everybody waiting.
  let before = 0;
  for (;;) {
    const { total_items } = await call("playlist_get", { limit: "1" });
    await call("get_status");
    if (total_items === 0) break;
    // All or nothing: no half of it is ever seen.
    assertEquals(total_items, ENTRIES);
    before++;
  }
  await clearing;
  assert(before > 0, `${before} answers while it was deleted`);
  assertEquals(await titles(), []);

  const decoder = new TextDecoder();
  let text = decoder.decode(first.value, { stream: true });
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += decoder.decode(part.value, { stream: true });
  }
  const { result } = JSON.parse(text);
  assertEquals([result.total_items, result.playlist.length], [ENTRIES, ENTRIES]);
  assertEquals(result.playlist.at(-1).title, `Channel ${ENTRIES - 1}`);
});

test("deleting an external playlist while others read leaves nothing of it, and all of the rest", async () => {
  const count = 5000;
  source.behaviour.text = `#EXTM3U\n${
    Array.from({ length: count }, (_, i) => `#EXTINF:-1,Channel ${i}\nhttp://h/${i}\n`).join("")
  }`;
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

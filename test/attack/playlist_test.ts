/** Large playlists: no work on them keeps others from reading. */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { assertHarmless, MAX_GAP_MS, type Target, withTarget } from "./support/target.ts";

const ITEMS = 10_000;

async function call(target: Target, method: string, params: Record<string, string> = {}, body?: string) {
  const query = new URLSearchParams({ method, token: target.token(), ...params });
  const answer = await fetch(`${target.url}/server/api?${query}`, {
    ...(body === undefined ? {} : { method: "POST", body, headers: { "content-type": "audio/x-mpegurl" } }),
  });
  const { result, error } = await answer.json();
  assertEquals(error, null, method);
  return result;
}

async function importItems(target: Target): Promise<void> {
  let text = "#EXTM3U\n";
  for (let i = 0; i < ITEMS; i++) {
    text += `#EXTINF:-1 tvg-id="c${i}" group-title="G${i % 40}",Channel ${i}\nhttp://h/${i}\n`;
  }
  const { task_id } = await call(target, "playlist_import", {}, text);
  for (let looks = 0; looks < 1200; looks++) {
    const { state } = await call(target, "get_task", { task_id: String(task_id) });
    if (state === "done") return;
    assert(state === "queued" || state === "running", state);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the import did not end");
}

/** Runs `work` while another client reads the playlist; returns the longest time that one answer took, ms. */
async function longestRead(target: Target, work: Promise<unknown>): Promise<number> {
  let isOver = false;
  const over = work.finally(() => isOver = true);
  let longestMs = 0;
  for (let asked = 0; !isOver || asked === 0; asked++) {
    for (const [method, params] of [["get_status", {}], ["playlist_get", { limit: "10", offset: "5" }]] as const) {
      const beginMs = performance.now();
      await call(target, method, params);
      longestMs = Math.max(longestMs, performance.now() - beginMs);
    }
  }
  await over;
  return longestMs;
}

test("importing and clearing a large playlist keep nobody from reading it, and each read sees one consistent state", async () => {
  await withTarget(async (target) => {
    await call(target, "playlist_get");
    await assertHarmless(target, async () => {
      await importItems(target);
      const query = new URLSearchParams({ method: "playlist_get", token: target.token() });
      const whole = await fetch(`${target.url}/server/api?${query}`);
      assertLess(await longestRead(target, call(target, "playlist_clear")), MAX_GAP_MS, "while it is cleared, ms");
      const { total_items, playlist } = (await whole.json()).result;
      assertEquals([total_items, playlist.length], [ITEMS, ITEMS]);
      assertEquals((await call(target, "playlist_get")).total_items, 0);
    });
  });
});

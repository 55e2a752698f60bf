/** Items of the library, played from real engines. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
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

/** `playlist_check` on real swarms: a torrent, a broadcast, addresses, and content that nobody shares. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { onAir } from "../support/live.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";
import { assertDescribed } from "../support/described.ts";

const TOKEN = "d".repeat(64);

test("playlist_check finds out which items are alive without downloading a piece, and playlist_get_checks returns it", async () => {
  const film = await seedFiles([{ path: "film.mp4", bytes: clip("mp4-30fps.mp4") }]);
  const air = await onAir({ viewer: { accessToken: TOKEN } });
  const web = await serveWeb((request, response) => {
    if (request.url !== "/live.m3u8") response.statusCode = 404;
    response.end("#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n0.ts\n");
  });
  try {
    const { viewer } = air;
    // deno-lint-ignore no-explicit-any -- the test looks into it
    const call = async (method: string, params: Record<string, string>): Promise<any> => {
      const query = new URLSearchParams({ token: TOKEN, ...params });
      const answer = await (await fetch(`${viewer.url}/server/api/${method}?${query}`)).json();
      assertDescribed(`/server/api/${method}`, answer);
      assertEquals(answer.error, null);
      return answer.result;
    };
    const dead = "0".repeat(39) + "1";
    const list = `#EXTM3U
#EXTINF:-1,Film
${film.magnet}
#EXTINF:-1,Channel
${air.magnet}
#EXTINF:-1,Web
${web.base}/live.m3u8
#EXTINF:-1,Gone
${web.base}/gone.m3u8
#EXTINF:-1,Multicast
udp://239.0.0.1:1234
`;
    const { result } = await (await fetch(`${viewer.url}/server/api?method=playlist_import&token=${TOKEN}`, {
      method: "POST",
      body: list,
    })).json();
    const ended = async (id: number) => {
      let task = await call("get_task", { task_id: String(id) });
      await until("the task ends", async () => {
        task = await call("get_task", { task_id: String(id) });
        return task.state !== "queued" && task.state !== "running";
      }, 60_000);
      return task;
    };
    await ended(result.task_id);
    const lost = await call("playlist_add_item", { title: "Nobody", infohash: dead });
    const all = (await call("playlist_get", {})).playlist as { id: number; title: string }[];
    const ids = all.filter(({ id }) => id !== lost).map(({ id }) => id).join();
    const task = await ended((await call("playlist_check", { ids })).task_id);
    assertEquals([task.state, task.done, task.skipped], ["done", 5, 2]);
    const { checks } = await call("playlist_get_checks", { ids });
    const found = Object.fromEntries(
      checks.map(({ id, state, peers }: { id: number; state: string; peers: number | null }) => [
        all.find((item) => item.id === id)!.title,
        [state, peers],
      ]),
    );
    assertEquals(found, {
      Film: ["alive", 1],
      Channel: ["alive", 1],
      Web: ["alive", null],
      Gone: ["silent", null],
      Multicast: ["unknown", null],
    });
    // No piece was fetched of the film, and the broadcast was left at once.
    for (const swarm of viewer.engine.swarms.list()) assertEquals(swarm.status().downloadedBytes, 0);
    assertEquals(viewer.engine.broadcasts.list().length, 0);
    assert(checks.every(({ checked_at }: { checked_at: number }) => checked_at > 1_700_000_000));
    // Nobody shares this item, so the sweep can be stopped before its deadline.
    const { task_id } = await call("playlist_check", { ids: String(lost) });
    assertEquals(await call("cancel_task", { task_id: String(task_id) }), "ok");
    assertEquals((await ended(task_id)).state, "cancelled");
    assertEquals((await call("playlist_get_checks", { ids: String(lost) })).checks, []);
  } finally {
    await air.close();
    await web.close();
    await film.close();
  }
});

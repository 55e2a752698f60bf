/** Playback addresses in lists that players elsewhere open. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { until } from "../support/until.ts";
import { ADDRESSES, TOKEN, withEngine } from "./support.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";

/** Calls `body` with the address of a server that has nothing, and the paths it was asked for. */
async function withServer(body: (url: string, asked: string[]) => Promise<void>): Promise<void> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  try {
    await body(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked);
  } finally {
    server.close();
  }
}

test("/engine/playlist.m3u signs playback addresses for players elsewhere, each valid only for its stream", () =>
  withServer((server, asked) =>
    withEngine(async ({ engine, call }) => {
      engine.access.setAllowed("internet", true);
      const get = async (path: string, from: keyof typeof ADDRESSES) => {
        const request = new Request(new URL(path, "http://127.0.0.1:6878"));
        const response = await engine.fetch(request, { remote: { host: ADDRESSES[from], port: 1 } });
        return { status: response.status, text: await response.text() };
      };
      const own = `${server}/own.torrent`;
      const list = `#EXTM3U\n#EXTINF:-1,Own\n${own}\n#EXTINF:-1,Film\nhttp://example.com/film.mp4\n`;
      const { result } = await call("playlist_import", { token: TOKEN }, { init: { method: "POST", body: list } });
      const task = { task_id: String(result.task_id), token: TOKEN };
      await until("the list to be imported", async () => (await call("get_task", task)).result.state === "done");
      await call("playlist_add_item", { title: "Id", content_id: ID, token: TOKEN });

      const addresses = (text: string) => text.split("\n").filter((line) => line.startsWith("http"));
      const plain = addresses((await get("/engine/playlist.m3u", "loopback")).text);
      const base = "http://127.0.0.1:6878/engine/getstream";
      const expected = [
        `${base}?url=${encodeURIComponent(own)}`,
        "http://example.com/film.mp4",
        `${base}?content_id=${ID}`,
      ];
      assertEquals(plain, expected);
      for (const from of ["intranet", "internet"] as const) {
        const [signed, film, id] = addresses((await get(`/engine/playlist.m3u?token=${TOKEN}`, from)).text);
        assertEquals(film, plain[1]);
        const key = /&key=([0-9a-f]{32})$/.exec(signed!)![1]!;
        const idKey = /&key=([0-9a-f]{32})$/.exec(id!)![1]!;
        assertEquals([signed, id], [`${plain[0]}&key=${key}`, `${plain[2]}&key=${idKey}`]);
        assert(key !== idKey);

        // The user's list, not remote callers, decides what is fetched in the private network.
        assertMatch((await get(plain[0]!, from)).text, /private network/);
        assertEquals(asked, []);
        assert(!/private network/.test((await get(signed!, from)).text));
        assertEquals(asked.splice(0), ["/own.torrent"]);
        for (const wrong of [signed!.slice(0, -1), `${plain[0]}&key=${idKey}`, signed!.replace("own", "other")]) {
          const { status, text } = await get(wrong, from);
          assertEquals([status, text], [
            403,
            "the key of this address is not valid any more: open the playlist again\n",
          ]);
        }
        assertEquals(asked, []);
      }
    })
  ));

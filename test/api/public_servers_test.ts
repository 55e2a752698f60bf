/** Servers of the Internet that the user names, and what they lead to: never into the user's own network. */
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { createTransportFile } from "../../src/metainfo/create.ts";
import type { Ports } from "../../src/ports.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";
import { type CalledEngine, TOKEN, withEngine } from "./support.ts";

/** Where the public server is, as far as the engine can see. */
const PUBLIC = { host: "pub.example", address: "93.184.216.34" };

/** Ports on which the public server is on loopback in truth. */
function onInternet(ports: Ports): Ports {
  const { network, httpClient } = ports;
  return {
    ...ports,
    network: {
      ...network,
      resolve: (host) => Promise.resolve([host === PUBLIC.host ? PUBLIC.address : host]),
    },
    httpClient: {
      open: (request) =>
        httpClient.open({ ...request, address: request.address === PUBLIC.address ? "127.0.0.1" : request.address }),
    },
  };
}

interface Rig extends CalledEngine {
  /** Base of the public server, and of the private one. */
  readonly far: string;
  readonly near: string;
  /** Paths asked of the private server since the last call. */
  readonly asked: () => string[];
  /** Playback as the user starts it; returns the answer. */
  readonly play: (query: Record<string, string>) => Promise<string>;
  /** Calls with the token; waits for a task that it starts. */
  readonly done: (method: string, params: Record<string, string>) => Promise<void>;
}

/** Two servers with the same pages, and an engine to which only the first is in the Internet. */
async function withServers(body: (rig: Rig) => Promise<void>) {
  let near = "";
  const handle: Parameters<typeof serveWeb>[0] = (request, response) => {
    const path = new URL(request.url!, "http://x").pathname;
    const location = near + path.slice("/redirect".length);
    if (path.startsWith("/redirect/")) return void response.writeHead(302, { location }).end();
    if (path === "/announce") return void response.end("d8:intervali1800e5:peers0:e");
    if (path === "/list.m3u") {
      return void response.end(
        `#EXTM3U url-tvg="${near}/guide"\n` +
          `#EXTINF:-1 tvg-logo="${near}/logo",Film\n${near}/item.torrent\n` +
          `#EXTINF:-1,Magnet\nmagnet:?xt=urn:btih:${"a".repeat(40)}&tr=${encodeURIComponent(near + "/announce")}\n` +
          `#EXTINF:-1,Stream\n${near}/stream.m3u8\n`,
      );
    }
    if (path === "/master.m3u8") {
      return void response.end(`#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${near}/variant.m3u8\n`);
    }
    if (path === "/servers.torrent") {
      return void torrent(near, request.headers.host!).then((bytes) => response.end(bytes));
    }
    response.end("#EXTM3U\n");
  };
  const inside = await serveWeb(handle);
  const outside = await serveWeb(handle);
  near = inside.base;
  let seen = 0;
  const asked = () => inside.asked.slice(seen, seen = inside.asked.length).map(({ url }) => url!.split("?")[0]!);
  try {
    await withEngine(
      async (called) => {
        const { engine, call } = called;
        await body({
          ...called,
          far: `http://${PUBLIC.host}:${outside.port}`,
          near,
          asked,
          async play(query) {
            const url = `http://127.0.0.1:6878/engine/getstream?${new URLSearchParams(query)}`;
            return await (await engine.fetch(new Request(url))).text();
          },
          async done(method, params) {
            const { result, error } = await call(method, { ...params, token: TOKEN });
            assertEquals(error, null, method);
            if (result.task_id === undefined) return;
            await until(`${method} ends`, async () => {
              const task = await call("get_task", { task_id: `${result.task_id}`, token: TOKEN });
              return !["running", "queued"].includes(task.result.state);
            });
          },
        });
      },
      { startTimeoutMs: 500 },
      onInternet,
    );
  } finally {
    await inside.close();
    await outside.close();
  }
}

/** A torrent with a tracker and a web seed in the private network, for which nobody has data. */
async function torrent(near: string, name: string): Promise<Uint8Array> {
  const { bytes } = await createTransportFile({
    name: `${name}.ts`,
    pieceLengthBytes: 131_072,
    pieceHashes: new Uint8Array(20),
    sizeBytes: 100_000,
    trackers: [[`${near}/announce`]],
    webSeeds: [`${near}/seed`],
  });
  return bytes;
}

/** Every way of the library: the items of a list, their logos, their checks and their analysis. Returns their number. */
async function useItems({ call, play, done }: Rig): Promise<number> {
  const playlist: { id: number; url: string }[] = (await call("playlist_get", { token: TOKEN })).result.playlist;
  for (const { id, url } of playlist) {
    await call("analyze_deferred_playlist_items", { playlist_item_id: `${id}`, token: TOKEN });
    await call("get_channel_icon", { id: `${id}` }).catch(() => {});
    await play({ item: `${id}` });
    await play(url.startsWith("magnet:") ? { magnet: url } : { url });
  }
  // A check of the magnet would wait for peers.
  const ids = playlist.filter(({ url }) => url.startsWith("http")).map(({ id }) => id);
  await done("playlist_check", { ids: ids.join(",") });
  await done("playlist_clear", { owner: "" });
  return playlist.length;
}

/** Waits until the private server was asked for all `paths`. */
async function askedAll({ asked }: Rig, paths: readonly string[]) {
  const seen = new Set<string>();
  await until(`requests for ${paths.join(", ")}`, () => {
    for (const path of asked()) seen.add(path);
    return paths.every((path) => seen.has(path));
  });
}

test("a public server leads the user's engine to no private address, by redirects, playlists or torrents", async () => {
  await withServers(async (rig) => {
    const { far, call, play, asked } = rig;
    for (const base of [far, `${far}/redirect`]) {
      for (const path of ["/master.m3u8", "/servers.torrent", "/list.m3u"]) {
        await call("analyze_content", { query: base + path });
        await call("get_media_files", { url: base + path });
        await call("parse_m3u_playlist", { url: base + path });
        await play({ url: base + path });
      }
    }
    assertEquals(asked(), []);
    assertMatch(await play({ url: `${far}/redirect/servers.torrent` }), /came from the Internet may not lead there/);
    // Nor what was kept of it, by its infohash.
    const { infohash } = (await call("get_media_files", { url: `${far}/servers.torrent` })).result as {
      infohash: string;
    };
    await play({ infohash });
    await play({ magnet: `magnet:?xt=urn:btih:${infohash}` });
    assertEquals([asked(), infohash.length], [[], 40]);
    // A server of the user's own network may lead anywhere.
    await call("analyze_content", { query: `${rig.near}/redirect/master.m3u8` });
    assertEquals(asked(), ["/redirect/master.m3u8", "/master.m3u8", "/variant.m3u8"]);
    await play({ url: `${rig.near}/servers.torrent` });
    await askedAll(rig, ["/announce", "/seed"]);
  });
});

test("the items of a public server's list lead to no private address, whoever plays, checks or shows them", async () => {
  await withServers(async (rig) => {
    const { far, near, done, asked, call } = rig;
    const lists = (base: string) => [
      () => done("playlist_import", { url: `${base}/list.m3u` }),
      () =>
        done("external_playlist_add", {
          type: "content",
          category: "tv",
          name: "list",
          url: `${base}/list.m3u`,
          update_interval: "0",
          update_now: "0",
        }).then(() => done("update_all_external_playlists", {})),
    ];
    for (const add of lists(far)) {
      await add();
      assertEquals(await useItems(rig), 3);
      assertEquals(asked(), []);
    }
    for (const { id } of (await call("external_playlist_get", { token: TOKEN })).result.playlist) {
      await call("external_playlist_delete", { id: `${id}`, token: TOKEN });
    }
    for (const add of lists(near)) {
      await add();
      assertEquals(await useItems(rig), 3);
      await askedAll(rig, ["/item.torrent", "/stream.m3u8", "/announce"]);
    }
  });
});

test("an address of a public list is the user's own when the user has it, too", async () => {
  await withServers(async ({ far, near, done, asked, call, play }) => {
    await done("playlist_import", { url: `${far}/list.m3u` });
    const url = `${near}/item.torrent`;
    await play({ url });
    assertEquals(asked(), []);
    await call("playlist_add_item", { title: "mine", video_url: url, token: TOKEN });
    asked();
    await play({ url });
    assertEquals(asked(), ["/item.torrent"]);
  });
});

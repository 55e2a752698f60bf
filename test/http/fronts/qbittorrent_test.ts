/** The front of a qBittorrent, asked as Sonarr and Radarr ask: requests and what is read are those of their sources. */
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { until } from "../../support/until.ts";
import { TOKEN } from "../../api/support.ts";
import { ACCOUNT, type Ask, SEASON, seededSeason, withAccount, withFront } from "./support.ts";

const season = seededSeason();
const infohash = () => season().metainfo.infohashHex;

// deno-lint-ignore no-explicit-any -- what clients find
type Json = any;
type From = NonNullable<NonNullable<Parameters<Ask>[1]>["from"]>;

/** A POST of a form; its status and text. */
async function post(ask: Ask, path: string, fields: Record<string, string>, more: Parameters<Ask>[1] = {}) {
  const response = await ask(`/api/v2/${path}`, { method: "POST", body: new URLSearchParams(fields), ...more });
  return { status: response.status, text: await response.text(), cookie: response.headers.get("set-cookie") ?? "" };
}

async function get(ask: Ask, path: string): Promise<Json> {
  const response = await ask(`/api/v2/${path}`);
  assertEquals(response.status, 200, path);
  return await response.json();
}

const textOf = async (ask: Ask, path: string, from: From = "loopback") => {
  const response = await ask(`/api/v2/${path}`, { from });
  return [response.status, await response.text()];
};

/** Runs `body` with an engine that keeps what it downloads. */
const withDisk = (
  body: (ask: Ask, call: Parameters<Parameters<typeof withFront>[1]>[1], directory: string) => Promise<void>,
) => {
  let cacheDir = "";
  return withAccount("qbittorrent", (ask, call) => body(ask, call, cacheDir), (directory) => {
    cacheDir = `${directory}/pieces`;
    return { cache: "disk", cacheDir, cacheLimitBytes: 0 };
  });
};

test("Sonarr sets the client up, adds a magnet, waits until it is whole, finds its files and removes it", () =>
  withDisk(async (ask, call, directory) => {
    assertEquals(await textOf(ask, "app/webapiVersion"), [200, "2.11.4"]);
    assertMatch(String((await textOf(ask, "app/version"))[1]), /^v5\.\d+\.\d+$/);
    const preferences = await get(ask, "app/preferences");
    const { save_path, dht, queueing_enabled, max_ratio_enabled, max_ratio, max_ratio_act } = preferences;
    assertEquals([save_path, dht, queueing_enabled], [directory, false, false]);
    // Whole torrents stop, and are not removed.
    assertEquals([max_ratio_enabled, max_ratio, max_ratio_act], [true, 0, 0]);
    assertEquals(await get(ask, "torrents/categories"), {});
    assertEquals((await post(ask, "torrents/createCategory", { category: "tv-sonarr" })).status, 200);
    assertEquals((await post(ask, "torrents/createCategory", { category: "tv-sonarr" })).status, 409);
    assertEquals(await get(ask, "torrents/categories"), { "tv-sonarr": { name: "tv-sonarr", savePath: "" } });
    assertEquals(await get(ask, "torrents/info?category=tv-sonarr"), []);

    const hash = infohash();
    assertEquals((await textOf(ask, `torrents/properties?hash=${hash}`))[0], 404);
    const add = { urls: season().magnet, category: "tv-sonarr", stopped: "False", contentLayout: "Original" };
    assertEquals((await post(ask, "torrents/add", add)).text, "Ok.");
    const { hash: known, save_path: folder } = await get(ask, `torrents/properties?hash=${hash}`);
    assertEquals([known, folder], [hash, `${directory}/${hash}`]);
    assertEquals((await post(ask, "torrents/topPrio", { hashes: hash })).status, 409);
    assertEquals((await post(ask, "torrents/setForceStart", { hashes: hash, value: "true" })).status, 200);
    assertEquals((await post(ask, "torrents/addTags", { hashes: hash, tags: "a, b" })).status, 200);

    let found: Json;
    await until("it is whole", async () => {
      [found] = await get(ask, "torrents/info?category=tv-sonarr");
      assert(["metaDL", "queuedDL", "downloading", "stalledDL", "stoppedUP"].includes(found.state), found.state);
      return found.state === "stoppedUP";
    });
    const { progress, size, category, tags, ratio, ratio_limit, seeding_time_limit, amount_left, name } = found;
    assertEquals([progress, amount_left, size, name], [1, 0, season().metainfo.totalBytes, "Season"]);
    assertEquals([category, tags, ratio, ratio_limit, seeding_time_limit], ["tv-sonarr", "a, b", 0, -2, -2]);
    assertEquals([found.save_path, found.content_path], [folder, `${folder}/Season`]);
    const files = await get(ask, `torrents/files?hash=${hash}`);
    for (const { path, bytes } of SEASON) {
      const { name, size, progress } = files.find((file: Json) => file.name === `Season/${path}`);
      assertEquals([size, progress], [bytes.length, 1]);
      assertEquals(new Uint8Array(readFileSync(`${folder}/${name}`)), bytes);
    }
    // The library has it, too, once.
    const items = async () => (await call("playlist_get", { token: TOKEN })).result.playlist as Json[];
    assertEquals((await items()).map(({ infohash, category }) => [infohash, category]), [[hash, "tv-sonarr"]]);

    assertEquals((await post(ask, "torrents/setCategory", { hashes: hash, category: "done" })).status, 200);
    assertEquals((await get(ask, "torrents/info?category=done")).length, 1);
    assertEquals((await post(ask, "torrents/delete", { hashes: hash, deleteFiles: "true" })).status, 200);
    assertEquals([await get(ask, "torrents/info"), await items()], [[], []]);
    await until("its files are gone", () => {
      try {
        readFileSync(`${folder}/Season/${SEASON[0]!.path}`);
        return false;
      } catch {
        return true;
      }
    });
  }));

test("a transport file that is added stopped waits, shares up to its limit, and stops when a client says so", () =>
  withDisk(async (ask) => {
    const hash = infohash();
    const form = new FormData();
    form.set("torrents", new File([season().transportFile.slice()], "x.torrent"));
    for (const [name, value] of Object.entries({ category: "films", stopped: "True", ratioLimit: "1.5" })) {
      form.set(name, value);
    }
    const added = await ask("/api/v2/torrents/add", { method: "POST", body: form });
    assertEquals([added.status, await added.text()], [200, "Ok."]);
    const info = async () => (await get(ask, `torrents/info?hashes=${hash}`))[0];
    const { state, size, ratio_limit } = await info();
    assertEquals([state, size, ratio_limit], ["stoppedDL", season().metainfo.totalBytes, 1.5]);
    // Nobody told it of the seeder: it knows the file alone.
    assertEquals((await post(ask, "torrents/start", { hashes: hash })).status, 200);
    await until("it looks for peers", async () => ["stalledDL", "metaDL"].includes((await info()).state));
    assertEquals((await post(ask, "torrents/stop", { hashes: "all" })).status, 200);
    await until("it has stopped", async () => (await info()).state === "stoppedDL");
    const limits = { hashes: hash, ratioLimit: "-2", seedingTimeLimit: "60", inactiveSeedingTimeLimit: "-2" };
    assertEquals((await post(ask, "torrents/setShareLimits", limits)).status, 200);
    const after = await info();
    assertEquals([after.ratio_limit, after.seeding_time_limit], [-2, 60]);
    const { torrents, full_update } = await get(ask, "sync/maindata");
    assertEquals([full_update, Object.keys(torrents)], [true, [hash]]);
  }));

test("an engine that keeps nothing whole says of each torrent that it is stopped", () =>
  withFront("qbittorrent", async (ask, call) => {
    await call("playlist_add_item", { token: TOKEN, title: "Known", infohash: infohash() });
    assertEquals((await post(ask, "torrents/add", { urls: season().magnet })).text, "Ok.");
    const [{ state, progress, save_path, content_path }] = await get(ask, "torrents/info");
    assertEquals([state, progress, save_path, content_path], ["stoppedDL", 0, "", ""]);
    // The library had it before: it stays there.
    await post(ask, "torrents/delete", { hashes: infohash(), deleteFiles: "false" });
    const { playlist } = (await call("playlist_get", { token: TOKEN })).result;
    assertEquals(playlist.map(({ title }: Json) => title), ["Known"]);
  }));

test("--front qbittorrent lets strangers in with a cookie that an account gets, and nobody with a wrong password", () =>
  withAccount("qbittorrent", async (ask, call) => {
    await call("set_allow_remote_access", { token: TOKEN, value: "1" });
    const from = "internet";
    assertEquals((await textOf(ask, "app/webapiVersion", from))[0], 403);
    const login = (username: string, password: string, from: From) =>
      post(ask, "auth/login", { username, password }, { from });
    const right = await login(ACCOUNT.user, ACCOUNT.password, from);
    assertEquals(right.text, "Ok.");
    const [, cookie] = /^(SID=[0-9a-f]{32}); HttpOnly; SameSite=Strict; Path=\/$/.exec(right.cookie) ?? [];
    const asked = async (cookie: string) => {
      const response = await ask("/api/v2/torrents/info", { from, headers: { cookie } });
      await response.body?.cancel();
      return response.status;
    };
    assertEquals(await asked(cookie!), 200);
    assertEquals(await asked(`SID=${"0".repeat(32)}`), 403);
    const wrong = await login(ACCOUNT.user, "wrong", "intranet");
    assertEquals([wrong.text, wrong.cookie], ["Fails.", ""]);
    // Clients without a name are at home here.
    assertEquals((await login("", "", "intranet")).text, "Ok.");
    assertEquals((await login("", "", from)).text, "Fails.");
    await post(ask, "auth/logout", {}, { from, headers: { cookie: cookie! } });
    assertEquals(await asked(cookie!), 403);
  }));

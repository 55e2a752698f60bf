/** Fronts of the real program, at ports of their own: ffmpeg plays what clients are given. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { quietFlags, type Running, start, withDirectory } from "../platform/support.ts";
import { type SeededFiles, seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { until } from "../support/until.ts";
import { importBundled, importModule, requireModule } from "./support/modules.ts";

let season: SeededFiles;

before(async () => {
  season = await seedFiles([
    { path: "Episode 10.ts", bytes: clip("ts-188.ts") },
    { path: "Episode 2.mkv", bytes: clip("mkv-cues.mkv") },
    { path: "Episode 2.srt", bytes: new TextEncoder().encode("1\n00:00:00,000 --> 00:00:01,000\nHello\n") },
  ], { name: "Season" });
});
after(() => season?.close());

/** Addresses of the fronts, and calls of the program's API. */
interface Served {
  readonly urls: Readonly<Record<string, string>>;
  readonly directory: string;
  call(method: string, params: Record<string, string>): Promise<unknown>;
}

/** Runs `body` with the program and its fronts. */
async function withFronts(
  names: readonly string[],
  body: (served: Served) => Promise<void>,
  prepare: (directory: string) => Promise<void> = () => Promise.resolve(),
  flags: (directory: string) => readonly string[] = () => [],
): Promise<void> {
  await withDirectory(async (directory) => {
    const fronts = [...names.flatMap((name) => ["--front", `${name}=0`]), ...flags(directory)];
    await prepare(directory);
    const program: Running = start(["serve", ...quietFlags(directory), ...fronts, "--log-format", "json"]);
    try {
      const { http } = JSON.parse(await program.firstLine);
      const token = readFileSync(path.join(directory, "state", "access-token"), "utf8").trim();
      const lines = program.stderr().split("\n").filter((line) => line.includes('"a front listens"'));
      const urls = Object.fromEntries(lines.map((line) => JSON.parse(line)).map(({ front, url }) => [front, url]));
      await body({
        urls,
        directory,
        call: async (method, params) => {
          const query = new URLSearchParams({ method, token, ...params });
          return (await (await fetch(`${http}/server/api?${query}`)).json()).result;
        },
      });
    } finally {
      program.kill("SIGTERM");
      await program.ended;
    }
  });
}

/** What ffmpeg says while it decodes `url`. */
async function complaints(url: string): Promise<string> {
  const { code, stderr } = await run("ffmpeg", ["-v", "error", "-nostdin", "-i", url, "-f", "null", "-"]);
  return code === 0 ? stderr : `${code} ${stderr}`;
}

test("ffmpeg plays the files of a torrent by the addresses that --front torrserver lists", () =>
  withFronts(["torrserver"], async ({ urls: { torrserver: url } }) => {
    assertMatch(await (await fetch(`${url}/echo`)).text(), /^MatriX\.\d+$/);
    const ask = async (body: unknown) =>
      await (await fetch(`${url}/torrents`, { method: "POST", body: JSON.stringify(body) })).json();
    const { hash } = await ask({ action: "add", link: season.magnet });
    await until("the files are known", async () => (await ask({ action: "get", hash })).file_stats?.length === 3);
    const list = await (await fetch(`${url}/stream?link=${hash}&m3u`)).text();
    const addresses = list.split("\n").filter((line) => line.startsWith("http"));
    assertEquals(addresses.map((one) => new URL(one).pathname), ["/stream/Episode%202.mkv", "/stream/Episode%2010.ts"]);
    for (const address of [...addresses, `${url}/play/${hash}/1`]) assertEquals(await complaints(address), "", address);
  }));

test("rclone and cadaver list the library and read its files by --front webdav", () =>
  withFronts(["webdav"], async ({ urls: { webdav: url }, directory, call }) => {
    const item = { title: "Season & #1", category: "Séries", magnet: season.magnet, is_live: "0" };
    const folder = `Séries/Season & #1 [${await call("playlist_add_item", item)}]`;
    const films = season.metainfo.files.map(({ path, sizeBytes }) => `${folder}/${path};${sizeBytes}`);
    const rclone = async (...args: string[]) => {
      const { code, stdout, text, stderr } = await run("rclone", args, {
        env: { RCLONE_CONFIG: path.join(directory, "rclone.conf"), RCLONE_WEBDAV_URL: url! },
      });
      assertEquals(code, 0, stderr);
      return { stdout, text };
    };
    const listed = await rclone("lsf", "-R", "--files-only", "--format", "ps", ":webdav:Séries");
    assertEquals(listed.text.trimEnd().split("\n").map((line) => `Séries/${line}`).sort(), [...films].sort());
    const film = clip("ts-188.ts");
    const part = await rclone("cat", "--offset", "188", "--count", "1000", `:webdav:${folder}/Episode 10.ts`);
    assertEquals(part.stdout, film.slice(188, 1188));

    const target = path.join(directory, "copy.ts");
    const script = [`cd "${folder}"`, "ls", `get "Episode 10.ts" ${target}`, "put /etc/hostname", "quit", ""].join(
      "\n",
    );
    writeFileSync(path.join(directory, "script"), script);
    // It has a home of its own, so that nobody's settings count.
    const cadaver = await run("sh", ["-c", 'cadaver "$0" < "$1"', `${url}/`, path.join(directory, "script")], {
      env: { HOME: directory },
    });
    assertMatch(cadaver.text, /Episode 2\.mkv +\d+/);
    assertMatch(cadaver.text, /Uploading [^]*405/);
    assertEquals(new Uint8Array(readFileSync(target)), film);
  }));

/** What its answers are to the test. */
type Answers = Readonly<Record<string, (options?: object) => Promise<Readonly<Record<string, never>>>>>;

test("a client library of Xtream codes signs in to --front xtream and reads the library, and ffmpeg plays a film", async () => {
  const login = { username: "me@example.org", password: "a password" };
  await withFronts(["xtream"], async ({ urls: { xtream: url }, call }) => {
    const magnet = season.magnet;
    const film = await call("playlist_add_item", {
      title: "Film",
      category: "Films",
      magnet,
      is_live: "0",
      file_index: "0",
    });
    await call("playlist_add_item", { title: "News", category: "Live", infohash: "1".repeat(40), is_live: "1" });
    const { Xtream } = await importModule("@iptv/xtream-api", "dist/index.js");
    const client: Answers = new (Xtream as new (options: object) => Answers)({ url, ...login });
    const ask = async (name: string, options?: object) => JSON.parse(JSON.stringify(await client[name]!(options)));
    assertEquals([(await ask("getProfile")).auth, (await ask("getServerInfo")).port], [1, new URL(url!).port]);
    const [category] = await ask("getMovieCategories");
    const films = await ask("getMovies", { categoryId: category.category_id });
    assertEquals(films.map(({ name, stream_id }: Record<string, unknown>) => [name, stream_id]), [["Film", film]]);
    assertEquals((await ask("getMovie", { movieId: film })).movie_data.name, "Film");
    const show = await ask("getShow", { showId: film });
    assertEquals(show.episodes["1"].length, 1);
    const [channel] = await ask("getChannels");
    assertEquals([channel.name, (await ask("getShortEPG", { channelId: channel.stream_id })).epg_listings], [
      "News",
      [],
    ]);
    const names = `${encodeURIComponent(login.username)}/${encodeURIComponent(login.password)}`;
    assertEquals(await complaints(`${url}/movie/${names}/${film}.ts`), "");
  }, async (directory) => {
    const { child, ended } = start(["user", "add", login.username, "--state-dir", path.join(directory, "state")]);
    child.stdin!.end(`${login.password}\n${login.password}\n`);
    assertEquals((await ended).code, 0);
  });
});

test("ffprobe reads the files that --strm-dir names, and ffmpeg plays what --front stremio-server says", () =>
  withFronts(
    ["stremio-server"],
    async ({ urls: { "stremio-server": url }, directory, call }) => {
      const item = { category: "Films", magnet: season.magnet, is_live: "0" };
      await call("playlist_add_item", { ...item, title: "Film: one", file_index: "0" });
      const file = path.join(directory, "media", "Films", "Film_ one.strm");
      await until("the file is there", () => existsSync(file));
      const address = readFileSync(file, "utf8").trim();
      const probed = await run("ffprobe", [
        "-v",
        "error",
        "-show_entries",
        "stream=codec_name",
        "-of",
        "csv=p=0",
        address,
      ]);
      assertEquals([...new Set(probed.text.trim().split(/\s+/))], ["h264", "aac"], probed.stderr);

      const { infohashHex } = season.metainfo;
      const mediaURL = `${url}/${infohashHex}/1`;
      assertEquals(await complaints(mediaURL), "");
      const query = new URLSearchParams({ mediaURL, audioCodecs: "aac" });
      assertEquals(await complaints(`${url}/hlsv2/any/master.m3u8?${query}`), "");
    },
    undefined,
    (directory) => ["--strm-dir", path.join(directory, "media")],
  ));

test("Stremio's linter finds nothing wrong with the manifest of --front stremio", () =>
  withFronts(["stremio"], async ({ urls: { stremio: url }, call }) => {
    await call("playlist_add_item", { title: "Film", category: "Films", magnet: season.magnet, is_live: "0" });
    const manifest = await (await fetch(`${url}/manifest.json`)).json();
    const { lintManifest } = requireModule("stremio-addon-linter") as {
      lintManifest(manifest: unknown): { readonly errors: unknown[]; readonly warnings: unknown[] };
    };
    const { errors, warnings } = lintManifest(manifest);
    assertEquals([errors, warnings], [[], []]);
  }));

/** A client of qBittorrent's Web API. */
type Client = Readonly<Record<string, (...values: unknown[]) => Promise<unknown>>>;

test("a client library of qBittorrent adds a torrent to --front qbittorrent, finds its files and removes it", () =>
  withFronts(
    ["qbittorrent"],
    async ({ urls: { qbittorrent: baseUrl }, directory }) => {
      const { QBittorrent } = await importBundled("@ctrl/qbittorrent", "dist/src/index.js");
      const client = new (QBittorrent as new (options: object) => Client)({ baseUrl, username: "", password: "" });
      // deno-lint-ignore no-explicit-any -- what the client makes of the answers
      const ask = async (name: string, ...values: unknown[]): Promise<any> => await client[name]!(...values);
      assertMatch(await ask("getAppVersion"), /^v5\./);
      await ask("createCategory", "films");
      assertEquals(await ask("addMagnet", season.magnet, { category: "films", tags: "new" }), true);
      const hash = season.metainfo.infohashHex;
      await until("it is whole", async () => (await ask("getTorrent", hash)).isCompleted);
      const { torrents: [torrent], labels } = await ask("getAllData");
      const { name, label, progress, totalSize, savePath, state } = torrent;
      assertEquals([name, label, progress, totalSize], ["Season", "films", 1, season.metainfo.totalBytes]);
      // Its word for all that are whole.
      assertEquals([savePath, state, labels[0].name], [path.join(directory, "cache", hash), "seeding", "films"]);
      const files = await ask("torrentFiles", hash);
      for (const { name, size } of files) assertEquals(readFileSync(path.join(savePath, name)).length, size);
      assertEquals((await ask("torrentProperties", hash)).save_path, savePath);
      await ask("setTorrentCategory", hash, "seen");
      assertEquals(Object.keys(await ask("getCategories")), ["films", "seen"]);
      for (const name of ["stopTorrent", "startTorrent"]) assertEquals(await ask(name, hash), true, name);
      await ask("removeTorrent", hash, true);
      assertEquals(await ask("listTorrents"), []);
      assertEquals(await ask("addTorrent", season.transportFile, { stopped: true }), true);
      assertEquals((await ask("listTorrents"))[0].state, "stoppedDL");
    },
    undefined,
    () => ["--cache", "disk", "--cache-limit", "0"],
  ));

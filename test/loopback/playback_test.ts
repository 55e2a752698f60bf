/** One engine seeds, another plays over HTTP: the whole chain on one machine, using only this project. */
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals, assertStringIncludes } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";

let seeder: SeededFiles;
let served: ServedEngine;

before(async () => {
  const load = async (name: string) => ({
    path: name,
    bytes: new Uint8Array(await readFile(new URL(`../fixtures/${name}`, import.meta.url))),
  });
  seeder = await seedFiles([await load("mp4-end.mp4"), await load("mkv-two-audio.mkv"), await load("ts-188.ts")], {
    name: "pack",
  });
  served = await serveEngine({ pathAliases: ["tv"], startTimeoutMs: 15_000 });
});
after(async () => {
  await served?.close();
  await seeder?.close();
});

const DEFAULT_FILE = 1; // the largest
const query = (more: Record<string, string> = {}) => new URLSearchParams({ magnet: seeder.magnet, ...more });

interface Started {
  playback_url: string;
  stat_url: string;
  command_url: string;
  event_url?: string;
  infohash: string;
  playback_session_id: string;
  is_live: number;
  is_encrypted: number;
  client_session_id: number;
}

async function startJson(path: string, more: Record<string, string> = {}): Promise<Started> {
  const answer = await (await fetch(`${served.url}${path}?${query({ format: "json", ...more })}`)).json();
  assertEquals(answer.error, null);
  return answer.response;
}

const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer());

test("getstream redirects to MPEG TS with exact length, ranges and ETag", async () => {
  const first = await fetch(`${served.url}/engine/getstream?${query({ pid: "redirect" })}`, { redirect: "manual" });
  assertEquals(first.status, 302);
  assertEquals(first.headers.get("access-control-allow-origin"), null);
  const location = first.headers.get("location")!;
  assertMatch(location, new RegExp(`^${served.url}/engine/r/${seeder.metainfo.infohashHex}/[0-9a-f]{32}$`));
  await first.body?.cancel();
  const whole = await fetch(location);
  assertEquals([whole.status, whole.headers.get("content-type"), whole.headers.get("accept-ranges")], [
    200,
    "video/mp2t",
    "bytes",
  ]);
  const body = await bytesOf(whole);
  assertEquals(body.length, Number(whole.headers.get("content-length")));
  assertEquals(body.length % 188, 0);
  for (let at = 0; at < body.length; at += 188) assertEquals(body[at], 0x47);
  for (const [from, to] of [[0, 0], [1000, 5000], [body.length - 10, body.length - 1]] as const) {
    const part = await fetch(location, { headers: { range: `bytes=${from}-${to}` } });
    assertEquals([part.status, part.headers.get("content-range")], [206, `bytes ${from}-${to}/${body.length}`]);
    assertEquals(await bytesOf(part), body.slice(from, to + 1));
  }
  const suffix = await fetch(location, { headers: { range: "bytes=-100" } });
  assertEquals(await bytesOf(suffix), body.slice(-100));
  const beyond = await fetch(location, { headers: { range: `bytes=${body.length}-` } });
  assertEquals([beyond.status, beyond.headers.get("content-range")], [416, `bytes */${body.length}`]);
  await beyond.body?.cancel();
  const tag = whole.headers.get("etag")!;
  assertMatch(tag, /^"[^"]+"$/);
  const same = await fetch(location, { headers: { "if-none-match": tag } });
  assertEquals(same.status, 304);
  const changed = await fetch(location, { headers: { "if-range": '"other"', range: "bytes=0-9" } });
  assertEquals((await bytesOf(changed)).length, body.length);
  const head = await fetch(location, { method: "HEAD" });
  assertEquals([head.status, head.headers.get("content-length")], [200, String(body.length)]);
});

test("manifest.m3u8 lists every segment, and the segments are the whole", async () => {
  for (const file of [0, 1, 2]) {
    const started = await startJson("/engine/manifest.m3u8", { pid: `hls${file}`, _idx: String(file) });
    assertMatch(started.playback_url, /\/engine\/m\/[0-9a-f]{40}\/[0-9a-f]{32}\.m3u8$/);
    const response = await fetch(started.playback_url);
    assertEquals(response.headers.get("content-type"), "application/vnd.apple.mpegurl");
    const lines = (await response.text()).trim().split("\n");
    assertEquals(lines[0], "#EXTM3U");
    for (const line of ["#EXT-X-VERSION:3", "#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-MEDIA-SEQUENCE:0"]) {
      assert(lines.includes(line), line);
    }
    assertEquals(lines.at(-1), "#EXT-X-ENDLIST");
    const urls = lines.filter((line) => !line.startsWith("#"));
    assert(urls.length >= 1);
    for (const [n, url] of urls.entries()) {
      assertEquals(
        url,
        `${served.url}/engine/c/${seeder.metainfo.infohashHex}/${n}.ts${file === DEFAULT_FILE ? "" : `?_idx=${file}`}`,
      );
      const segment = await bytesOf(await fetch(url));
      assertEquals([segment.length % 188, segment[0], ((segment[1]! & 0x1f) << 8) | segment[2]!], [0, 0x47, 0]);
    }
  }
});

test("format=json answers every documented field and the URLs work (section 2.2)", async () => {
  const started = await startJson("/engine/getstream", { pid: "json", client_session_id: "42" });
  assertEquals(Object.keys(started).sort(), [
    "client_session_id",
    "command_url",
    "infohash",
    "is_encrypted",
    "is_live",
    "playback_session_id",
    "playback_url",
    "stat_url",
  ]);
  assertEquals([started.infohash, started.is_live, started.is_encrypted, started.client_session_id], [
    seeder.metainfo.infohashHex,
    0,
    0,
    42,
  ]);
  const stat = (await (await fetch(started.stat_url)).json()).response;
  assertEquals([stat.infohash, stat.playback_session_id, stat.selected_file_index], [
    started.infohash,
    started.playback_session_id,
    DEFAULT_FILE,
  ]);
  assertEquals(await (await fetch(`${started.command_url}?method=nonsense`)).json(), {
    response: null,
    error: "unknown method: nonsense",
  });
  assertEquals(await (await fetch(`${started.command_url}?method=set_player_activity_timeout&timeout=90`)).json(), {
    response: "ok",
    error: null,
  });
  assertEquals(await (await fetch(`${started.command_url}?method=stop`)).json(), { response: "ok", error: null });
  const gone = { response: null, error: "unknown playback session id" };
  assertEquals(await (await fetch(`${started.command_url}?method=stop`)).json(), gone);
  assertEquals(await (await fetch(started.stat_url)).json(), gone);
  const playback = await fetch(started.playback_url);
  assertEquals([playback.status, (await playback.text()).trim()], [404, "unknown playback session id"]);
});

test("a path alias serves the same and keeps its prefix", async () => {
  const started = await startJson("/tv/manifest.m3u8", { pid: "alias" });
  for (const url of [started.playback_url, started.stat_url, started.command_url]) {
    assertStringIncludes(url, `${served.url}/tv/`);
  }
  const playlist = await (await fetch(started.playback_url)).text();
  assertStringIncludes(playlist, `${served.url}/tv/c/`);
  assert(["prebuf", "dl"].includes((await (await fetch(started.stat_url)).json()).response.status));
});

test("one swarm serves TS, HLS and file sessions at once; stopping one disturbs no other", async () => {
  const [ts, hls, file] = await Promise.all([
    startJson("/engine/getstream", { pid: "a" }),
    startJson("/engine/manifest.m3u8", { pid: "b" }),
    startJson("/engine/getfile", { pid: "c" }),
  ]);
  assertEquals(new Set([ts, hls, file].map((session) => session.playback_session_id)).size, 3);
  assertEquals(served.engine.swarms.list().length, 1);
  const reading = await fetch(file.playback_url);
  const original = new Uint8Array(await readFile(new URL("../fixtures/mkv-two-audio.mkv", import.meta.url)));
  await (await fetch(`${ts.command_url}?method=stop`)).body?.cancel();
  assertEquals(await bytesOf(reading), original);
  assertEquals(reading.headers.get("content-type"), "video/x-matroska");
  assertEquals((await fetch(hls.playback_url)).status, 200);
  const again = await startJson("/engine/getstream", { pid: "a" });
  assertNotEquals(again.playback_session_id, ts.playback_session_id);
});

test("the transport file may be POSTed as the body", async () => {
  const response = await fetch(`${served.url}/engine/getstream?format=json&pid=post`, {
    method: "POST",
    body: seeder.transportFile as Uint8Array<ArrayBuffer>,
  });
  assertEquals((await response.json()).response.infohash, seeder.metainfo.infohashHex);
});

test("a transport file on the disk plays by file://, for programs on this machine alone", async () => {
  const { path, remove } = await temporaryDirectory();
  try {
    await writeFile(`${path}/My film.torrent`, seeder.transportFile);
    // As launchers send it: the path as it is.
    const url = `file://${path}/My film.torrent`;
    const start = `${served.url}/tv/getstream?${new URLSearchParams({ format: "json", pid: "disk", url })}`;
    assertEquals((await (await fetch(start)).json()).response.infohash, seeder.metainfo.infohashHex);
    const files = `${served.url}/server/api?${new URLSearchParams({ method: "get_media_files", url })}`;
    assertEquals((await (await fetch(files)).json()).result.name, "pack");
    const named = `${served.url}/hls/manifest.m3u8?${new URLSearchParams({ format: "json", manifest_url: url })}`;
    assertMatch(
      (await (await fetch(named)).json()).response.playback_url,
      /\/engine\/m\/[0-9a-f]{40}\/[0-9a-f]{32}\.m3u8$/,
    );
    assertEquals((await fetch(named, { headers: { origin: "https://page.example" } })).status, 403);
    const headers = { origin: served.url };
    assertMatch((await (await fetch(start, { headers })).json()).error, /^file:\/\/ addresses are for programs/);
    assertEquals((await (await fetch(files, { headers })).json()).error.code, 4);
  } finally {
    await remove();
  }
});

test("a stream played before starts from its infohash or its content id only", async () => {
  const { contentId } = await import("../../src/metainfo/content-id.ts");
  for (
    const selector of [{ infohash: seeder.metainfo.infohashHex }, { content_id: await contentId(seeder.metainfo) }, {
      id: await contentId(seeder.metainfo),
    }]
  ) {
    const answer =
      await (await fetch(`${served.url}/engine/getstream?${new URLSearchParams({ format: "json", ...selector })}`))
        .json();
    assertEquals(answer.response?.infohash, seeder.metainfo.infohashHex, JSON.stringify([selector, answer.error]));
  }
});

test("failures are reported as documented", async () => {
  const ask = async (text: string) => {
    const redirect = await fetch(`${served.url}/engine/getstream?${text}`, { redirect: "manual" });
    const json = await fetch(`${served.url}/engine/getstream?format=json&${text}`);
    const answer = await json.json();
    assertEquals([json.status, answer.response], [200, null]);
    assertEquals((await redirect.text()).trim(), answer.error);
    return [redirect.status, answer.error];
  };
  assertEquals(await ask(""), [400, "missing stream selector"]);
  assertEquals((await ask("infohash=xyz"))[0], 400);
  assertEquals((await ask(`content_id=nonsense&infohash=${"a".repeat(40)}`))[0], 400);
  assertEquals((await ask("magnet=magnet:?dn=x"))[0], 400);
  assertEquals((await ask("url=ftp://x/y"))[0], 400);
  assertEquals((await ask(`${query({ _idx: "9" })}`))[0], 404);
  assertEquals((await ask(`${query({ _idx: "x" })}`))[0], 400);
});

test("a dead stream fails at its deadline with the reason and frees everything", async () => {
  const impatient = await serveEngine({ startTimeoutMs: 300 });
  try {
    const response = await fetch(`${impatient.url}/engine/getstream?infohash=${"b".repeat(40)}`, {
      redirect: "manual",
    });
    assertEquals([response.status, (await response.text()).trim()], [504, "start timeout: no_peers"]);
  } finally {
    await impatient.close();
  }
});

test("HEAD on a start says what GET would, and leaves no session", async () => {
  const infohash = seeder.metainfo.infohashHex;
  const starts = ["getstream", "manifest.m3u8", "getfile"].map((name) => `${name}?${query({ pid: "head" })}`);
  for (const path of [...starts, `${starts[0]}&format=json`, `${starts[0]}&_idx=99`, "getstream", "getstream?_idx=x"]) {
    const ask = async (method: string) => {
      const answer = await fetch(`${served.url}/engine/${path}`, { method, redirect: "manual" });
      const location = answer.headers.get("location");
      const id = /[0-9a-f]{32}(?=$|[./])/.exec(location?.split(infohash)[1] ?? "")?.[0] ?? "";
      const control = `${infohash}/${id || "none"}`;
      const { error } = await (await fetch(`${served.url}/engine/stat/${control}`)).json();
      await (await fetch(`${served.url}/engine/cmd/${control}?method=stop`)).body?.cancel();
      const facts = [answer.status, answer.headers.get("content-type"), location?.replace(id, "ID")];
      return { facts, text: await answer.text(), isRunning: error === null };
    };
    const head = await ask("HEAD");
    const get = await ask("GET");
    assertEquals([head.facts, head.text, head.isRunning], [get.facts, "", false], path);
    assertEquals(get.isRunning, get.facts[0] === 302, path);
  }
  // A client that follows the redirect of a HEAD finds the stream.
  const followed = await fetch(`${served.url}/engine/${starts[0]}`, { method: "HEAD" });
  assertEquals([followed.status, followed.headers.get("accept-ranges")], [200, "bytes"]);
});

test("events are delivered by long poll", async () => {
  const started = await startJson("/engine/getstream", {
    pid: "events",
    use_stop_notifications: "1",
    use_api_events: "1",
  });
  const names: string[] = [];
  const next = async () => (await (await fetch(started.event_url!)).json()).response;
  for (let event = await next(); event !== null && event.name !== "playing"; event = await next()) {
    names.push(event.name);
  }
  const waiting = next();
  await (await fetch(`${started.command_url}?method=stop`)).body?.cancel();
  assertEquals(await waiting, { name: "download_stopped", params: { reason: "stop command" } });
  assert(names.every((name) => name === "prebuffering"), names.join());
});

test("a foreign Host and unknown paths are refused", async () => {
  const { request } = await import("node:http");
  const status = await new Promise((resolve, reject) => {
    request(`${served.url}/engine/getstream`, { headers: { host: "evil.example.com" } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on("error", reject).end();
  });
  assertEquals(status, 421);
  assertEquals((await fetch(`${served.url}/nothing`)).status, 404);
});

test("/webui/api/service answers get_version and get_status, also as JSONP with a checked callback", async () => {
  const service = `${served.url}/webui/api/service`;
  const { result, error } = await (await fetch(`${service}?method=get_version`)).json();
  assertEquals(error, null);
  assertEquals([typeof result.version, typeof result.code, result.platform], ["string", "number", "linux"]);
  const status = await (await fetch(`${service}?method=get_status&format=json`)).json();
  assertEquals(status, { result: { playlist_loaded: true, version: result }, error: null });
  assertMatch(
    await (await fetch(`${service}?method=get_version&format=jsonp&callback=a.b`)).text(),
    /^\/\*\*\/a\.b\(\{.*\}\);$/,
  );
  assertEquals((await (await fetch(`${service}?method=get_version&format=jsonp&callback=a(b)`)).json()).error.code, 3);
  assertEquals(await (await fetch(`${service}?method=x`)).json(), { error: { message: "unknown method: x", code: 1 } });
  assertEquals((await (await fetch(service)).json()).error.code, 2);
});

/** The server beside Stremio, asked as its core and its player ask: requests and what is read are those of their sources. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { encodeBencode } from "../../../src/bytes/bencode.ts";
import { toHex } from "../../../src/bytes/hex.ts";
import { guessedFile, namedFile } from "../../../src/http/fronts/stremio-server/named.ts";
import { openSubtitlesHash } from "../../../src/http/fronts/stremio-server/texts.ts";
import { compact, startHttpTracker } from "../../discovery/support/http-tracker.ts";
import { type Ask, AT, SEASON, seededSeason, withFront } from "./support.ts";

const season = seededSeason();

// deno-lint-ignore no-explicit-any -- what the app finds
type Json = any;

async function json(ask: Ask, path: string, body?: unknown): Promise<Json> {
  const headers = { "content-type": "application/json" };
  const init = body === undefined ? {} : { method: "POST", headers, body: JSON.stringify(body) };
  const response = await ask(path, init);
  assertEquals([response.status, response.headers.get("content-type")], [200, "application/json"], path);
  return await response.json();
}

/** Asserts that the app's core can decode `value`: kinds of fields, `uint` for whole numbers that are not negative. */
function assertDecodes(value: Json, shape: Json, path = "") {
  if (shape === "uint") assert(Number.isInteger(value) && value >= 0, path);
  else if (shape === "url") assert(URL.canParse(value), path);
  else if (typeof shape === "string") assertEquals(typeof value, shape, path);
  else if (Array.isArray(shape)) {
    assert(Array.isArray(value), path);
    value.forEach((one: Json, i: number) => assertDecodes(one, shape[0], `${path}[${i}]`));
  } else for (const name of Object.keys(shape)) assertDecodes(value[name], shape[name], `${path}.${name}`);
}

const SETTINGS = {
  ...{ appPath: "string", cacheRoot: "string", serverVersion: "string", remoteHttps: "string" },
  ...{ proxyStreamsEnabled: "boolean", btMaxConnections: "uint", btHandshakeTimeout: "uint", btRequestTimeout: "uint" },
  ...{ btDownloadSpeedSoftLimit: "number", btDownloadSpeedHardLimit: "number", btMinPeersForStable: "uint" },
};
const OPTIONS = {
  ...{ connections: "uint", dht: "boolean", growler: { flood: "uint", pulse: "uint" }, handshakeTimeout: "uint" },
  ...{ path: "string", peerSearch: { max: "uint", min: "uint", sources: ["string"] }, timeout: "uint" },
  ...{ swarmCap: { maxSpeed: "number", minPeers: "uint" }, tracker: "boolean", virtual: "boolean" },
};
const STATISTICS = {
  ...{ name: "string", infoHash: "string", sources: [{ url: "url" }], opts: OPTIONS },
  files: [{ name: "string", path: "string", length: "uint", offset: "uint" }],
  ...{ downloadSpeed: "number", uploadSpeed: "number", downloaded: "uint", uploaded: "uint", unchoked: "uint" },
  ...{ peers: "uint", queued: "uint", unique: "uint", connectionTries: "uint", peerSearchRunning: "boolean" },
  ...{ streamLen: "uint", streamName: "string", streamProgress: "number", swarmConnections: "uint" },
  ...{ swarmPaused: "boolean", swarmSize: "uint" },
};

/** Runs `body` with the front and a tracker that names the seeder. */
async function withTracker(
  body: (ask: Ask, tracker: string) => Promise<void>,
  options: Parameters<typeof withFront>[2] = {},
): Promise<void> {
  const tracker = await startHttpTracker((_announce, response) => {
    response.end(encodeBencode({ interval: 60, peers: compact(season().peer) }));
  });
  try {
    await withFront("stremio-server", (ask) => body(ask, `${tracker.origin}/announce`), options);
  } finally {
    await tracker.close();
  }
}

test("the app's core finds the server online, saves settings, and adds a transport file", () =>
  withFront("stremio-server", async (ask) => {
    const { baseUrl, values } = await json(ask, "/settings");
    assertEquals(baseUrl, `http://${AT}`);
    assertDecodes(values, SETTINGS);
    assertEquals(values.transcodeProfile, null);
    assert(values.cacheSize === null || values.cacheSize > 0);
    const { appPath: _, cacheRoot: _root, serverVersion: _version, ...changed } = values;
    assertEquals(await json(ask, "/settings", { ...changed, cacheSize: 0 }), { success: true });
    assertEquals(await json(ask, "/casting"), []);
    assertDecodes(await json(ask, "/network-info"), { availableInterfaces: ["string"] });
    assertDecodes(await json(ask, "/device-info"), { availableHardwareAccelerations: ["string"] });
    assertEquals(await json(ask, "/heartbeat"), { success: true });
    assertEquals(await json(ask, "/stats.json"), {});
    assertEquals(await json(ask, `/${"1".repeat(40)}/0/stats.json`), null);
    const { infohashHex } = season().metainfo;
    const made = await json(ask, "/create", { blob: toHex(season().transportFile) });
    assertEquals([made.infoHash, made.guessedFileIdx, made.files.length], [infohashHex, 0, 3]);
    assertDecodes(await json(ask, `/${infohashHex}/1/stats.json`), STATISTICS);
  }));

test("the player guesses an episode, probes it, plays it and its HLS, and asks for its hash and subtitles", () =>
  withTracker(async (ask, tracker) => {
    const { infohashHex: hash } = season().metainfo;
    const source = `tracker:${tracker}`;
    const { guessedFileIdx, name } = await json(ask, `/${hash}/create`, {
      torrent: { infoHash: hash },
      peerSearch: { sources: [`dht:${hash}`, source], min: 40, max: 200 },
      guessFileIdx: { season: 1, episode: 1 },
    });
    assertEquals([guessedFileIdx, name], [1, "Season"]);
    const path = `/${hash}/${guessedFileIdx}?${new URLSearchParams([["tr", `dht:${hash}`], ["tr", source]])}`;
    const mediaURL = `http://127.0.0.1:11470${path}`;
    const about = (more: string, field = "mediaURL") => `${more}?${new URLSearchParams({ [field]: mediaURL })}`;

    const probe = await json(ask, about("/hlsv2/probe"));
    assertEquals(probe.format, { name: "mpegts" });
    const streams = probe.streams.map((one: Json) => [one.track, one.codec, one.channels]);
    assertEquals(streams, [["video", "h264", undefined], ["audio", "aac", 2]]);
    const master = await ask(`${about("/hlsv2/id/master.m3u8")}&videoCodecs=h264&audioCodecs=aac&maxAudioChannels=2`);
    assertEquals(master.status, 302);
    const { pathname, search } = new URL(master.headers.get("location")!);
    const list = await ask(`${pathname}${search}`);
    assertEquals([list.status, list.headers.get("content-type")], [200, "application/vnd.apple.mpegurl"]);
    assertMatch(await list.text(), /^#EXT-X-STREAM-INF/m);
    assertEquals(await json(ask, "/hlsv2/id/destroy"), {});

    const head = await ask(path, { method: "HEAD" });
    assertEquals([head.status, head.headers.get("content-type")], [200, "video/mp2t"]);
    const range = await ask(path, { headers: { range: "bytes=188-375" } });
    assertEquals([range.status, new Uint8Array(await range.arrayBuffer())], [206, SEASON[1]!.bytes.slice(188, 376)]);
    const statistics = await json(ask, `/${hash}/${guessedFileIdx}/stats.json`);
    assertDecodes(statistics, STATISTICS);
    assertEquals([statistics.streamName, statistics.streamProgress], ["S01E01.ts", 1]);
    assertEquals((await json(ask, `/${hash}/stats.json`)).guessedFileIdx, 0);
    assertEquals(Object.keys(await json(ask, "/stats.json")), [hash]);
    // What others play is not told.
    assertEquals(await (await ask("/stats.json", { from: "intranet" })).json(), {});

    const { bytes } = SEASON[1]!;
    const expected = openSubtitlesHash(bytes.length, [bytes.slice(0, 65_536), bytes.slice(-65_536)]);
    const hashed = await json(ask, about("/opensubHash", "videoUrl"));
    assertEquals(hashed, { error: null, result: { hash: expected, size: bytes.length } });
    const text = await ask(`/subtitles.vtt?${new URLSearchParams({ from: `http://${AT}/${hash}/2`, offset: "500" })}`);
    assertEquals(text.headers.get("content-type"), "text/vtt; charset=utf-8");
    assertMatch(await text.text(), /^WEBVTT\n[^]*\n00:00:01\.500 --> 00:00:02\.500\nHello\n/);
    const tracks = await json(ask, `/tracks/${encodeURIComponent(mediaURL)}`);
    assertEquals(tracks.map((one: Json) => [one.type, one.lang]), [["audio", "und"]]);
    assertEquals(await json(ask, "/subtitleSignature?videoUrl=x"), { error: null, result: { signature: null } });

    assertEquals(await json(ask, `/${hash}/remove`), {});
    assertEquals(await json(ask, "/stats.json"), {});
  }));

test("the player in a page reads the list and the segments that a master playlist leads to", () =>
  withTracker(async (ask, tracker) => {
    const { infohashHex: hash } = season().metainfo;
    // A page may name no tracker of the private network: a program of the user has the torrent already.
    await ask(`/${hash}/0?tr=${encodeURIComponent(tracker)}`, { method: "HEAD" });
    await (await ask(`/${hash}/0?tr=${encodeURIComponent(tracker)}`)).arrayBuffer();
    const read = async (address: string) => {
      const { pathname, search } = new URL(address, `http://${AT}`);
      const response = await ask(`${pathname}${search}`, { headers: { origin: "https://web.stremio.com" } });
      const origin = response.headers.get("access-control-allow-origin");
      assert(response.status < 400 && origin === "*", `${response.status} ${pathname} ${origin}`);
      return response;
    };
    const query = new URLSearchParams({ mediaURL: `http://127.0.0.1:11470/${hash}/0`, audioCodecs: "aac" });
    const master = await read(`/hlsv2/id/master.m3u8?${query}`);
    const addressesIn = async (response: Response) =>
      (await response.text()).split("\n").filter((line) => line.startsWith("http"));
    const [list] = await addressesIn(await read(master.headers.get("location")!));
    const segments = await addressesIn(await read(list!));
    assert(segments.length > 0);
    assert((await (await read(segments[0]!)).arrayBuffer()).byteLength > 0);
  }, { frontPages: ["stremio-server"] }));

test("a file is also named by -1, by its name and by a pattern, sent for download, and led to under its name", () =>
  withTracker(async (ask, tracker) => {
    const { infohashHex } = season().metainfo;
    const hash = infohashHex.toUpperCase();
    const query = `tr=${encodeURIComponent(tracker)}`;
    const typeOf = async (path: string) => {
      const response = await ask(`/${hash}/${path}`, { method: "HEAD" });
      return [response.status, response.headers.get("content-type")];
    };
    for (const path of [`-1?${query}`, `S01E01.ts?${query}`, `0/any/name?${query}`]) {
      assertEquals(await typeOf(path), [200, "video/mp2t"], path);
    }
    const led = await ask(`/${hash}/-1?external=1&f=${encodeURIComponent("/s01e01\\.ts/i")}&${query}`);
    assertEquals([led.status, led.headers.get("location")], [307, `http://${AT}/${infohashHex}/1/S01E01.ts`]);
    const saved = await ask(`/${hash}/2?download=1&${query}`);
    assertEquals(saved.headers.get("content-disposition"), "attachment; filename*=UTF-8''S01E01.srt");
    for (const path of [`/${hash}/9`, `/${hash}/none.mkv`, "/zz/0", "/proxy/d=x/y", "/local-addon/manifest.json"]) {
      assertEquals((await ask(`${path}?${query}`)).status, 404, path);
    }
  }));

test("files of other servers are neither probed nor hashed, and only subtitles are converted", () =>
  withFront("stremio-server", async (ask) => {
    const other = encodeURIComponent(`http://media.example/${"1".repeat(40)}/0`);
    for (const path of [`/hlsv2/probe?mediaURL=${other}`, `/hlsv2/x/master.m3u8?mediaURL=${other}`]) {
      assertEquals((await ask(path)).status, 415, path);
    }
    assertEquals((await json(ask, `/opensubHash?videoUrl=${other}`)).result, null);
    assertEquals(await json(ask, `/tracks/${other}`), []);
    // Callers elsewhere may not have private addresses fetched.
    const intranet = { from: "intranet" } as const;
    assertEquals((await ask("/subtitles.vtt?from=http%3A%2F%2F192.168.7.9%2Fx.srt", intranet)).status, 403);
    assertEquals((await ask("/subtitles.vtt?from=x")).status, 400);
    assertEquals((await ask("/settings", { from: "internet" })).status, 403);
  }));

test("pages use the server where the user names their origin, or lets in all", async () => {
  const page = { headers: { origin: "https://web.stremio.com" } };
  const asked = { ...page.headers, "access-control-request-headers": "content-type" };
  const allowed = async (ask: Ask) => {
    const preflight = await ask(`/${"1".repeat(40)}/create`, { method: "OPTIONS", headers: asked });
    assertMatch(preflight.headers.get("access-control-allow-methods") ?? "", /POST/);
    return (await ask("/settings", page)).headers.get("access-control-allow-origin");
  };
  await withFront("stremio-server", async (ask) => assertEquals((await ask("/settings", page)).status, 403));
  await withFront("stremio-server", async (ask) => assertEquals(await allowed(ask), "https://web.stremio.com"), {
    allowOrigins: ["https://web.stremio.com"],
  });
  await withFront("stremio-server", async (ask) => assertEquals(await allowed(ask), "*"), {
    frontPages: ["stremio-server"],
  });
});

test("guessedFile() finds an episode by its name or its place, and else the largest film", () => {
  const files = ["Show.2x03.mkv", "Show.S02E04.mkv", "Extra.mkv", "note.txt"].map((name, index) => {
    return { index, name, path: name, sizeBytes: 10 + index, offset: 0, padding: false };
  });
  const metainfo = { files } as unknown as Parameters<typeof guessedFile>[0];
  const guess = (season?: number, episode?: number) => guessedFile(metainfo, { season, episode }).name;
  assertEquals([guess(2, 3), guess(2, 4), guess(1, 1)], ["Show.2x03.mkv", "Show.S02E04.mkv", "Extra.mkv"]);
  assertEquals([guess(), guess(9, 9)], ["Extra.mkv", "Extra.mkv"]);
});

test("namedFile() keeps trackers and plain patterns alone", () => {
  const query = new URLSearchParams([
    ...["dht:x", "tracker:udp://a:1", "udp://a:2", "file:///etc"].map((source) => ["tr", source]),
    ...["/Big\\.Film/i", "/(a+)+$/", "plain"].map((pattern) => ["f", pattern]),
  ]);
  const named = namedFile("A".repeat(40), "-1", query);
  assertEquals(named.patterns, ["big.film", "plain"]);
  const magnet = `magnet:?xt=urn:btih:${"a".repeat(40)}&tr=udp%3A%2F%2Fa%3A1&tr=udp%3A%2F%2Fa%3A2`;
  assertEquals(named.selector, { kind: "magnet", magnet });
});

test("openSubtitlesHash() adds the size and the numbers of both ends", () => {
  const part = new Uint8Array(65_536);
  assertEquals(openSubtitlesHash(131_072, [part, part]), "0000000000020000");
  const ones = part.slice().fill(255);
  assertEquals(openSubtitlesHash(16_384, [ones, ones]), "0000000000000000");
});

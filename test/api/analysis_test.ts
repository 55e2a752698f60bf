import type { ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { assertEquals, assertMatch } from "@std/assert";
import { readFile } from "node:fs/promises";
import { createLiveTransportFile } from "../../src/metainfo/live.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { latin1, serviceStream, serviceTable } from "../support/services.ts";
import { until } from "../support/until.ts";
import { serveWeb, type TestWeb } from "../support/web.ts";
import { withEngine } from "./support.ts";

let served: ServedEngine;
let web: TestWeb;
let liveFile: Awaited<ReturnType<typeof createLiveTransportFile>>;
/** Streams without an end that are still being sent. */
let sending = 0;

const fixture = (name: string) => readFile(new URL(`../fixtures/${name}`, import.meta.url));

/** Sends `chunk` again and again until the far end leaves. */
function sendForEver(response: ServerResponse, chunk: Uint8Array): void {
  let over = false;
  sending++;
  response.on("close", () => {
    over = true;
    sending--;
  });
  const send = () => {
    while (!over) if (!response.write(chunk)) return void response.once("drain", send);
  };
  send();
}

const MEDIA = (tail: string) => `#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n0.ts\n${tail}`;
const MASTER = (variant: string, more = "") =>
  `#EXTM3U\r\n${more}#EXT-X-STREAM-INF:BANDWIDTH=1\r\n${variant}\r\n#EXT-X-STREAM-INF:BANDWIDTH=2\r\nhigh.m3u8\r\n`;
const LIST = '#EXTM3U url-tvg="http://g/"\n#PLAYLIST:Küche & Kino\n' +
  '#EXTINF:-1 group-title="News;Sport",Ä\nhttp://a/1\n#EXTINF:-1 group-title="Sport",B\nhttp://a/2\n' +
  "#EXTINF:-1,C\n#EXTGRP:Kids\nhttp://a/3\n";
const utf16 = (text: string) => {
  const bytes = new Uint8Array(2 + 2 * text.length);
  bytes.set([0xff, 0xfe]);
  for (let i = 0; i < text.length; i++) bytes.set([text.charCodeAt(i) & 255, text.charCodeAt(i) >> 8], 2 + 2 * i);
  return bytes;
};

before(async () => {
  served = await serveEngine({ analysisTimeoutMs: 200 });
  liveFile = await createLiveTransportFile({ name: "Channel", publicKey: new Uint8Array(32), bytesPerS: 100_000 });
  const [mp4, mkv, ts] = await Promise.all(["mp4-front.mp4", "mkv-cues.mkv", "ts-188.ts"].map(fixture));
  const longVod = MEDIA("#EXTINF:6,\nx.ts\n".repeat(50_000) + "#EXT-X-ENDLIST\n");
  // An MKV as live muxers write it: the size of its Segment is unknown.
  const openMkv = Uint8Array.of(0x1a, 0x45, 0xdf, 0xa3, 0x81, 0, 0x18, 0x53, 0x80, 0x67, 1, ...Array(7).fill(255));
  const files: Record<string, string | Uint8Array> = {
    "/tv/news/index.m3u8": MEDIA(""),
    "/vod/Some%20film.m3u8": MEDIA("#EXT-X-ENDLIST\n"),
    "/vod/typed.m3u8": MEDIA("").replace("#EXT-X-T", "#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-T"),
    "/vod/long.m3u8": longVod,
    "/master/vod": MASTER("/vod/Some%20film.m3u8"),
    "/master/live": MASTER("../tv/news/index.m3u8"),
    "/master/second": MASTER("/gone.m3u8").replace("high.m3u8", "/vod/typed.m3u8"),
    "/master/dead": MASTER("/gone.m3u8"),
    "/master/loop": MASTER("/master/loop"),
    "/master/named": MASTER("/vod/typed.m3u8", '#EXT-X-SESSION-DATA:DATA-ID="com.example.title",VALUE="A name"\r\n'),
    "/list.m3u": LIST,
    "/packed.m3u.gz": gzipSync(LIST),
    "/wide": utf16(LIST),
    "/latin": Uint8Array.from(LIST, (c) => c.charCodeAt(0)),
    "/plain.m3u": "http://a/1\nhttp://a/2\n",
    "/no-header": "#EXTINF:-1,A\nhttp://a/1\n",
    "/live.acelive": liveFile.bytes,
    "/short.ts": ts!.subarray(0, 188 * 8),
    "/page": "<html><body>#EXTM3U</body></html>",
    "/text": "hello",
    "/empty": "",
    "/empty.m3u": "#EXTM3U\n",
    "/packed.bin": gzipSync("hello"),
    "/damaged.m3u.gz": Uint8Array.of(0x1f, 0x8b, 8, 0, 1, 2, 3),
    "/dash.mpd": '<?xml version="1.0"?><MPD/>',
    "/torn.torrent": "d8:announce3:abce",
  };
  web = await serveWeb((request, response) => {
    const path = request.url!;
    const file = files[path];
    if (file !== undefined) response.end(file);
    else if (path === "/film.mp4") response.setHeader("content-length", mp4!.length).end(mp4);
    else if (path === "/players-only.m3u8") {
      if (request.headers["user-agent"] !== "Player/1 x") response.writeHead(403).end();
      else response.end(MASTER("/players-only-media.m3u8"));
    } else if (path === "/players-only-media.m3u8") {
      response.writeHead(request.headers.referer === "http://page/" ? 200 : 403).end(MEDIA("#EXT-X-ENDLIST\n"));
    } else if (path === "/chunked.mp4") response.write(mp4, () => response.end());
    else if (path === "/chunked.mkv") response.write(mkv!.subarray(0, 5000));
    else if (path === "/live.mkv") {
      response.write(openMkv);
      sendForEver(response, new Uint8Array(10_000));
    } else if (path === "/dvb") sendForEver(response, serviceStream(serviceTable([latin1("Das Erste")])));
    else if (path === "/channel") sendForEver(response, ts!.subarray(0, 188 * 100));
    else if (path === "/huge") {
      response.setHeader("content-length", "9223372036854775807");
      sendForEver(response, ts!.subarray(0, 188 * 100));
    } else if (path === "/radio") {
      response.setHeader("content-type", "audio/mpeg");
      response.setHeader("icy-name", "Radio Stra\xc3\x9fe");
      response.setHeader("icy-genre", "Jazz, Soul;Jazz");
      sendForEver(response, new Uint8Array(1000).fill(0x55));
    } else if (path === "/named") {
      response.setHeader("content-disposition", "attachment; filename=\"x.mkv\"; filename*=UTF-8''Gr%C3%BCn.mkv");
      response.end(mkv);
    } else if (path === "/moved") response.writeHead(302, { location: "/vod/Some%20film.m3u8" }).end();
    else response.writeHead(path === "/fault" ? 500 : 404).end();
  });
});
after(async () => {
  await served?.close();
  await web?.close();
});

/** One call over HTTP. */
async function analyze(query: string, more: Record<string, string> = {}) {
  const params = new URLSearchParams({ method: "analyze_content", query, ...more });
  return await (await fetch(`${served.url}/server/api?${params}`)).json();
}

const NONE = { transport_type: "hls", content_id: null, infohash: null, categories: [] };

test("analyze_content distinguishes HLS of a film from live HLS by its end, also through a master playlist", async () => {
  const table: [string, string, -1 | 0 | 1, string][] = [
    ["/tv/news/index.m3u8", "hls", 1, "news"],
    ["/vod/Some%20film.m3u8", "hls_vode", 0, "Some film"],
    ["/vod/typed.m3u8", "hls_vode", 0, "typed"],
    ["/vod/long.m3u8", "hls_vode", 0, "long"],
    ["/master/vod", "hls_vode", 0, "vod"],
    ["/master/second", "hls_vode", 0, "second"],
    ["/master/named", "hls_vode", 0, "A name"],
    ["/moved", "hls_vode", 0, "Some film"],
    ["/master/live", "hls", 1, new URL(web.base).host],
    ["/master/dead", "hls", -1, "dead"],
    ["/master/loop", "hls", -1, "loop"],
  ];
  for (const [path, content_type, is_live, title] of table) {
    const item_url = web.base + path;
    assertEquals(
      await analyze(item_url),
      { result: { ...NONE, content_type, item_url, is_live, title }, error: null },
      path,
    );
  }
});

test("analyze_content sends what an address in a list has players send", async () => {
  const query = `${web.base}/players-only.m3u8|User-Agent=Player%2F1 x&Referer=http://page/`;
  const { result } = await analyze(query);
  assertEquals([result.content_type, result.item_url, result.title], ["hls_vode", query, "players-only"]);
  assertEquals((await analyze(query.split("|")[0]!)).error.code, 9);
});

test("analyze_content distinguishes files from endless streams by length and first bytes, and closes both", async () => {
  const table: [string, string, string][] = [
    ["/film.mp4", "direct_content", "film"],
    ["/chunked.mp4", "direct_content", "chunked"],
    ["/chunked.mkv", "direct_content", "chunked"],
    ["/short.ts", "direct_content", "short"],
    ["/named", "direct_content", "Grün"],
    ["/channel", "direct_stream", "channel"],
    ["/dvb", "direct_stream", "Das Erste"],
    ["/huge", "direct_stream", "huge"],
    ["/live.mkv", "direct_stream", new URL(web.base).host],
    ["/radio", "direct_stream", "Radio Straße"],
  ];
  for (const [path, content_type, title] of table) {
    const item_url = web.base + path;
    const is_live = content_type === "direct_stream" ? 1 : 0;
    const categories = path === "/radio" ? ["Jazz", "Soul"] : [];
    assertEquals(
      await analyze(item_url),
      { result: { ...NONE, content_type, item_url, is_live, title, categories }, error: null },
      path,
    );
  }
  await until("the streams to be let go", () => sending === 0);
});

test("analyze_content reads lists, packed or not and in any encoding: their name and groups", async () => {
  const categories = ["News", "Sport", "Kids"];
  const table: [string, string, string[]][] = [
    ["/list.m3u", "Küche & Kino", categories],
    ["/packed.m3u.gz", "Küche & Kino", categories],
    ["/wide", "Küche & Kino", categories],
    ["/latin", "Küche & Kino", categories],
    ["/plain.m3u", "plain", []],
    ["/no-header", "no-header", []],
  ];
  for (const [path, title, categories] of table) {
    const item_url = web.base + path;
    assertEquals(
      await analyze(item_url),
      { result: { ...NONE, content_type: "playlist", item_url, is_live: -1, title, categories }, error: null },
      path,
    );
  }
});

test("analyze_content knows the transport file of a broadcast", async () => {
  const { result } = await analyze(`${web.base}/live.acelive`);
  assertMatch(result.content_id, /^[0-9a-f]{40}$/);
  assertEquals(result, {
    content_type: "transport_file",
    transport_type: "bt",
    content_id: result.content_id,
    infohash: liveFile.metainfo.infohashHex,
    item_url: `${web.base}/live.acelive`,
    title: "Channel",
    is_live: 1,
    categories: [],
  });
});

test("analyze_content returns `unknown protocol` for other text, and the reason when an address fails", async () => {
  const unknown = [
    "/page",
    "/text",
    "/empty",
    "/empty.m3u",
    "/packed.bin",
    "/damaged.m3u.gz",
    "/dash.mpd",
    "/torn.torrent",
  ];
  for (const path of unknown) {
    assertEquals(await analyze(web.base + path), {
      error: { message: "unknown protocol", code: 0 },
    }, path);
  }
  assertEquals((await analyze(`${web.base}/gone`)).error.code, 5);
  assertEquals((await analyze(`${web.base}/fault`)).error.code, 9);
  assertEquals((await analyze("http://127.0.0.1:1/")).error.code, 9);
});

test("analyze_content answers the caller's title instead of the one it found", async () => {
  const { result } = await analyze(`${web.base}/list.m3u`, { title: "Mine" });
  assertEquals([result.title, result.content_type], ["Mine", "playlist"]);
});

test("analyze_content: callers elsewhere reach no private addresses", async () => {
  await withEngine(async ({ call }) => {
    const { error } = await call("analyze_content", { query: `${web.base}/list.m3u` }, { from: "intranet" });
    assertEquals(error?.code, 4);
  });
});

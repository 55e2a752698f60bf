/** What viewers of a broadcast get over HTTP, from an engine that receives it over TCP from another. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { assertDescribed } from "../support/described.ts";
import { serveEngine, temporaryDirectory } from "../support/engine.ts";
import { type OnAir, onAir } from "../support/live.ts";
import { checkTs } from "../support/ts-check.ts";
import { until } from "../support/until.ts";
import { ask, bytesOf, command, type Started, startSession, statOf } from "./support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

let nodes: DhtNode[] = [];
let bootstrap: string[];
let air: OnAir;
let web: Server;
let directory: { path: string; remove(): Promise<void> };

before(async () => {
  const ports = await loadPorts({ log: { level: "error" } });
  const first = await DhtNode.open(ports, { host: "127.0.0.1", bootstrap: [], statePath: null });
  bootstrap = [`127.0.0.1:${first.port}`];
  nodes = [first, await DhtNode.open(ports, { host: "127.0.0.1", bootstrap, statePath: null })];
  const dht = { dht: true, dhtBootstrap: bootstrap };
  directory = await temporaryDirectory();
  air = await onAir({ sender: dht, viewer: dht, directory: directory.path });
  web = createServer((_, response) => response.end(air.broadcast.transportFile));
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  web?.closeAllConnections();
  web?.close();
  await air?.close();
  await Promise.all(nodes.map((node) => node.close()));
  await directory?.remove();
});

const watch = (path: string, more: Record<string, string> = {}) =>
  startSession(air.viewer, path, { magnet: air.magnet, ...more });

/** Reads an endless body for `ms`, then on to `leastBytes`. */
async function record(url: string, ms: number, leastBytes = 0): Promise<{ response: Response; ts: Uint8Array }> {
  const stop = new AbortController();
  const response = await fetch(url, { signal: stop.signal });
  const parts: Uint8Array[] = [];
  const reader = response.body!.getReader();
  let isOver = false;
  let bytesRead = 0;
  const leave = () => {
    if (isOver && bytesRead >= leastBytes) void reader.cancel();
  };
  const timer = setTimeout(() => {
    isOver = true;
    leave();
  }, ms);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    bytesRead += value.length;
    leave();
  }
  clearTimeout(timer);
  stop.abort();
  const bytes = concatBytes(parts);
  return { response, ts: bytes.subarray(0, bytes.length - bytes.length % 188) };
}

const problems = (ts: Uint8Array, isSegment: boolean) =>
  checkTs(ts, { isSegment }).problems.filter((problem) => !/PCR gap|is short/.test(problem));
const playlistOf = async (started: Started) => await (await fetch(started.playback_url)).text();
const urlsOf = (playlist: string) => playlist.split("\n").filter((line) => line.startsWith("http"));

test("all four selectors start a broadcast, 40 characters alone too", async () => {
  const { contentId, metainfo } = air.broadcast;
  const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/channel.torrent`;
  for (const selector of [{ content_id: contentId }, { infohash: metainfo.infohashHex }, { url }]) {
    // Each by an engine that knows nothing yet.
    const fresh = await serveEngine({ dht: true, dhtBootstrap: bootstrap, startTimeoutMs: 20_000 });
    try {
      const started = await startSession(fresh, "getstream", selector);
      assertEquals([started.infohash, started.is_live], [metainfo.infohashHex, 1], JSON.stringify(selector));
      const { ts } = await record(started.playback_url, 4000);
      assertLess(10_000, ts.length);
    } finally {
      await fresh.close();
    }
  }
  assertEquals((await watch("getstream")).is_live, 1);
});

test("getstream has no length, begins with PAT and PMT and decodes in order, beside HLS", async () => {
  const started = await watch("getstream");
  const hls = await watch("manifest.m3u8");
  const [{ response, ts }, again] = await Promise.all([
    record(started.playback_url, 5000),
    record(started.playback_url, 3000),
    playlistOf(hls),
  ]);
  assertEquals([response.headers.get("content-length"), response.headers.get("accept-ranges")], [null, "none"]);
  assertEquals(response.headers.get("content-type"), "video/mp2t");
  for (const bytes of [ts, again.ts]) {
    assertEquals(problems(bytes, false), []);
    const report = checkTs(bytes, { isSegment: false });
    assertEquals([((bytes[1]! & 31) << 8) | bytes[2]!, report.streams[0]!.units[0]!.randomAccess], [0, true]);
  }
  assertLess(80_000, ts.length);
  const head = await fetch(started.playback_url, { method: "HEAD" });
  assertEquals([head.status, (await head.arrayBuffer()).byteLength], [200, 0]);
  assertEquals((await statOf(started)).peers, 1);
  assertEquals((await statOf(started)).error_message, null);
});

test("HEAD on a start of a broadcast says where it leads, and leaves no session", async () => {
  const id = /[0-9a-f]{32}(?=$|\.m3u8$)/;
  for (const path of ["getstream", "manifest.m3u8"]) {
    const { playback_url, infohash } = await watch(path);
    const query = new URLSearchParams({ infohash, pid: `head of ${path}` });
    const head = await fetch(`${air.viewer.url}/engine/${path}?${query}`, { method: "HEAD", redirect: "manual" });
    const location = head.headers.get("location")!;
    assertEquals([head.status, location.replace(id, "ID")], [302, playback_url.replace(id, "ID")]);
    const stat = await (await fetch(`${air.viewer.url}/engine/stat/${infohash}/${id.exec(location)![0]}`)).json();
    assertEquals(stat, { response: null, error: "unknown playback session id" });
  }
});

test("manifest.m3u8 slides with absolute segment URLs that stand alone", async () => {
  const started = await watch("manifest.m3u8");
  const before = await playlistOf(started);
  assertMatch(before, /^#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\d+\n/);
  const urls = urlsOf(before);
  for (const url of urls) {
    assertMatch(url, new RegExp(`^${air.viewer.url}/engine/c/${started.infohash}/\\d+\\.ts$`));
    assertEquals(problems(await bytesOf(url), true), []);
  }
  await until("a new segment", async () => urlsOf(await playlistOf(started)).length > urls.length);
  const later = urlsOf(await playlistOf(started));
  assertEquals(later.slice(0, urls.length), urls);
  const missing = await fetch(`${air.viewer.url}/engine/c/${started.infohash}/1.ts`);
  assertEquals(missing.status, 404);
  await missing.body?.cancel();
});

test("liveseek moves a session inside its window, and livepos says where it is", async () => {
  const started = await watch("getstream", { pid: "shift" });
  const livepos = async () => (await statOf(started)).livepos as Record<string, string>;
  await until(
    "some seconds to go back",
    async () => Number((await livepos()).last) - Number((await livepos()).first_ts) > 8,
  );
  const { first_ts } = await livepos();
  assertEquals((await livepos()).is_live, "1");
  assertEquals(await command(started, `method=liveseek&pos=${first_ts}`), { response: "ok", error: null });
  const [{ ts }, edge] = await Promise.all([
    record(started.playback_url, 500, 100_000),
    record((await watch("getstream", { pid: "edge" })).playback_url, 0, 20_000),
  ]);
  assertEquals(problems(ts, false), []);
  const beginning = (bytes: Uint8Array) => checkTs(bytes, { isSegment: false }).streams[0]!.units[0]!.pts;
  assertLess(5 * 90_000, beginning(edge.ts) - beginning(ts), "what comes is some seconds old");
  assertEquals((await livepos()).is_live, "0");
  assertEquals(await command(started, "method=liveseek&pos=-1"), { response: "ok", error: null });
  assertEquals((await livepos()).is_live, "1");
  for (const bad of ["", "&pos=x", "&pos=-2", "&pos=99999999999"]) {
    assertMatch(String((await command(started, `method=liveseek${bad}`)).error), /^invalid pos/);
  }
});

test("start_from begins a broadcast at a time inside its window, at its beginning or at the edge", async () => {
  const livepos = async (started: Started) => (await statOf(started)).livepos as Record<string, string>;
  const first = await watch("getstream", { pid: "first" });
  await until("some seconds to go back", async () => {
    const { last, first_ts } = await livepos(first);
    return Number(last) - Number(first_ts) > 8;
  });
  const { first_ts } = await livepos(first);
  const inside = String(Number(first_ts) + 2);
  for (const [start_from, isLive] of [[inside, "0"], ["1:00", "0"], ["99999999999", "1"]] as const) {
    for (const path of ["getstream", "manifest.m3u8"]) {
      const started = await watch(path, { pid: `from ${start_from}`, start_from });
      const { is_live, pos, first_ts: oldest, last } = await livepos(started);
      // Any of the newest segments is the edge for players of HLS; they are told where to begin.
      if (path === "getstream") assertEquals(is_live, isLive, start_from);
      else assertEquals((await playlistOf(started)).includes("#EXT-X-START:"), isLive === "0", start_from);
      const wanted = start_from === inside ? Number(inside) : isLive === "1" ? Number(last) : Number(oldest);
      assert(Math.abs(Number(pos) - wanted) <= 4, `${path} ${start_from}: ${pos}, not ${wanted}`);
      assertEquals(started.playback_url.includes("?"), false);
    }
  }
});

test("analyze_content and get_media_files know a broadcast", async () => {
  const api = async (query: Record<string, string>) =>
    (await (await fetch(`${air.viewer.url}/server/api?${new URLSearchParams(query)}`)).json()).result;
  const { contentId, metainfo } = air.broadcast;
  const analysis = await api({ method: "analyze_content", query: contentId });
  assertEquals([analysis.content_type, analysis.is_live, analysis.infohash, analysis.title], [
    "transport_file",
    1,
    metainfo.infohashHex,
    "channel",
  ]);
  const media = await api({ method: "get_media_files", infohash: metainfo.infohashHex });
  assertEquals([media.type, media.transport_type, media.name, media.files.length], ["live", "bt", "channel", 1]);
});

test("a broadcaster's restart is a discontinuity in both outputs, and no more", async () => {
  const started = await watch("getstream", { pid: "restart" });
  const hls = await watch("manifest.m3u8", { pid: "restart" });
  const [{ ts }] = await Promise.all([record(started.playback_url, 9000), air.restart(1000)]);
  // What was cut short is incomplete; counters and times are right.
  assertEquals(problems(ts, false).filter((one) => !/runs back/.test(one)), []);
  await until(
    "a discontinuity in the playlist",
    async () => (await playlistOf(hls)).includes("#EXT-X-DISCONTINUITY\n"),
  );
  for (const url of urlsOf(await playlistOf(hls))) {
    assertEquals(problems(await bytesOf(url), true), []);
  }
});

test("the source's end ends the playlist and the MPEG TS cleanly, and is told", async () => {
  const own = await onAir();
  try {
    const query = { magnet: own.magnet, use_api_events: "1" };
    const started = await startSession(own.viewer, "getstream", query);
    const hls = await startSession(own.viewer, "manifest.m3u8", query);
    const whole = bytesOf(started.playback_url);
    await until("a segment", async () => urlsOf(await playlistOf(hls)).length > 0);
    own.input.end();
    const ts = await whole;
    assertEquals(problems(ts, false), []);
    assertMatch(await playlistOf(hls), /\n#EXT-X-ENDLIST\n$/);
    for (const { event_url, stat_url } of [started, hls]) {
      let last = { name: "", params: {}, id: 0 };
      while (last.name !== "download_stopped") {
        const answer = await (await fetch(`${event_url}?after=${last.id}`)).json();
        assertDescribed("/engine/event/{infohash}/{session}", answer);
        const { response } = answer;
        assert(response !== null, `nothing after ${last.name}`);
        last = response;
      }
      assertEquals(last.params, { reason: "the broadcast has ended" });
      const { response } = await (await fetch(stat_url)).json();
      assertEquals([response.error_message, response.livepos.is_live], ["the broadcast has ended", "0"]);
    }
  } finally {
    await own.close();
  }
});

test("a broadcast that nobody sends fails in time and says why", async () => {
  const served = await serveEngine({ startTimeoutMs: 1500 });
  try {
    const { response, error } = await ask(served, "getstream", { magnet: air.broadcast.magnet });
    assertEquals([response, error], [null, "start timeout: no_peers"]);
    const body = air.broadcast.transportFile as Uint8Array<ArrayBuffer>;
    const posted = await fetch(`${served.url}/engine/getstream`, { method: "POST", body });
    assertEquals([posted.status, await posted.text()], [504, "start timeout: no_peers\n"]);
  } finally {
    await served.close();
  }
});

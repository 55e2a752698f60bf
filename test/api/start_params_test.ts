/** Parameters of a start that choose where playback begins, what is played, and from which sources; over HTTP. */
import { Buffer } from "node:buffer";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertGreater, assertLess, assertMatch, assertNotEquals } from "@std/assert";
import { choosePieceLength, createTransportFile, hashPieces } from "../../src/metainfo/create.ts";
import { ask, assertSameBytes, bytesOf, type Started, startSession, statOf } from "../loopback/support.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { checkTs } from "../support/ts-check.ts";
import { until } from "../support/until.ts";
import { serveWeb, type TestWeb } from "../support/web.ts";

/** One file for each kind of layout: tables, runs of known size, a TS file as it is, one with unpacked packets, fragments. */
const CLIPS = ["mp4-end.mp4", "mkv-cues.mkv", "ts-188.ts", "ts-192.m2ts", "mp4-fragmented-sidx.mp4"];

let seeder: SeededFiles;
let served: ServedEngine;
before(async () => {
  seeder = await seedFiles(CLIPS.map((name) => ({ path: name, bytes: clip(name) })), { name: "clips" });
  served = await serveEngine({ startTimeoutMs: 15_000 });
});
after(async () => {
  await served?.close();
  await seeder?.close();
});

const start = (path: string, more: Record<string, string>) =>
  startSession(served, path, { magnet: seeder.magnet, pid: "me", ...more });

/** Where the segments of a playlist begin, seconds. */
async function segmentStarts(url: string): Promise<{ starts: number[]; text: string }> {
  const text = await (await fetch(url)).text();
  let at = 0;
  const starts = [...text.matchAll(/#EXTINF:([\d.]+)/g)].map(([, duration]) => {
    const begins = at;
    at += Number(duration);
    return begins;
  });
  return { starts, text };
}

/** Presentation time of the first picture, 90 kHz, and whether it can be decoded alone. */
function firstPicture(ts: Uint8Array): { pts: number; randomAccess: boolean } {
  const { streams } = checkTs(ts, { isSegment: false });
  const { pts, randomAccess } = streams[0]!.units[0]!;
  return { pts, randomAccess };
}

test("start_from begins MPEG TS at the segment it lies in: tables, a random access point, the clock of the whole", async () => {
  for (const [n, name] of CLIPS.entries()) {
    const _idx = String(n);
    const hls = await start("manifest.m3u8", { _idx });
    const { starts } = await segmentStarts(hls.playback_url);
    assertGreater(starts.length, 1, name);
    const last = starts.at(-1)!;
    const whole = await start("getstream", { _idx });
    const all = await bytesOf(whole.playback_url);
    const late = await start("getstream", { _idx, start_from: (last + 0.25).toFixed(3) });
    assertEquals(late.playback_session_id, whole.playback_session_id, name);
    const response = await fetch(late.playback_url);
    const body = new Uint8Array(await response.arrayBuffer());
    assertLess(body.length, all.length, name);
    assertSameBytes(body, all.subarray(all.length - body.length), name);
    assertEquals([body[0], body[1]! & 31, body[2]], [0x47, 0, 0], `${name} begins with a PAT`);
    const { pts, randomAccess } = firstPicture(body);
    assert(randomAccess, name);
    const afterS = (pts - firstPicture(all).pts) / 90_000;
    // Pictures are reordered, so that the first one of all need not be the first to be shown.
    assert(Math.abs(afterS - last) < 0.3, `${name}: ${afterS} s, not ${last}`);
    const length = response.headers.get("content-length");
    if (length === null) continue;
    assertEquals(Number(length), body.length, name);
    assertNotEquals(
      response.headers.get("etag"),
      (await fetch(whole.playback_url, { method: "HEAD" })).headers.get("etag"),
    );
    assertSameBytes(await bytesOf(late.playback_url, 188, 1000), body.subarray(188, 1000), name);
    // Later than its end a file begins with its last segment.
    const beyond = await start("getstream", { _idx, start_from: "1:00:00" });
    assertSameBytes(await bytesOf(beyond.playback_url), body, name);
  }
});

test("start_from tells players of HLS where to begin, also when it redirects", async () => {
  const { starts } = await segmentStarts((await start("manifest.m3u8", {})).playback_url);
  const playlist = async (start_from: string) => {
    const query = new URLSearchParams({ magnet: seeder.magnet, start_from });
    return (await segmentStarts(`${served.url}/engine/manifest.m3u8?${query}`)).text;
  };
  assertMatch(await playlist("2.5"), /\n#EXT-X-START:TIME-OFFSET=2\.500\n(?!.*TIME-OFFSET)/s);
  assertMatch(await playlist("0:03"), /\n#EXT-X-START:TIME-OFFSET=3\.000\n/);
  const beyond = /TIME-OFFSET=([\d.]+)/.exec(await playlist("3600"))![1];
  assert(Math.abs(Number(beyond) - starts.at(-1)!) < 0.001);
  assertEquals(/TIME-OFFSET/.exec(await playlist("0")), null);
});

test("start_from is refused by its name unless it is a time", async () => {
  for (const bad of ["x", "-1", "1:75", "1:99:00", "1e3", "1:2:3:4", "."]) {
    const { error } = await ask(served, "getstream", { magnet: seeder.magnet, start_from: bad });
    assertMatch(error!, /^invalid start_from: seconds/, bad);
    const { playback_url } = await start("getstream", {});
    const response = await fetch(`${playback_url}?start_from=${encodeURIComponent(bad)}`);
    assertEquals(response.status, 400, bad);
    await response.body?.cancel();
  }
});

test("playlist_selected_indexes chooses among existing files, and the error names one that does not exist", async () => {
  const chosen = async (playlist_selected_indexes: string) =>
    (await statOf(await start("getstream", { playlist_selected_indexes }))).selected_file_index;
  assertEquals([await chosen("2"), await chosen("1,0")], [2, 0]);
  for (const [bad, index] of [["9", 9], ["0,5", 5], ["-1", -1]] as const) {
    const { error } = await ask(served, "getstream", { magnet: seeder.magnet, playlist_selected_indexes: bad });
    assertEquals(error, `playlist_selected_indexes ${index}: the torrent has files 0 to 4`);
    const query = new URLSearchParams({ magnet: seeder.magnet, playlist_selected_indexes: bad });
    const response = await fetch(`${served.url}/engine/getstream?${query}`, { redirect: "manual" });
    assertEquals([response.status, (await response.text()).trim()], [404, error]);
  }
});

/** A web server that is a web seed of `bytes` and a tracker that knows the peer of `seeded`. */
async function withWebSeed(
  bytes: Uint8Array,
  body: (web: { readonly seed: string; readonly tracker: string; asked(path: string): number }) => Promise<void>,
): Promise<void> {
  const web: TestWeb = await serveWeb((request, response) => {
    if (request.url!.startsWith("/announce")) return void response.end("d8:intervali1800e5:peers0:e");
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "")!.map(Number);
    const end = Math.min(to! + 1, bytes.length);
    response.writeHead(206, { "content-range": `bytes ${from}-${end - 1}/${bytes.length}` });
    response.end(bytes.subarray(from, end));
  });
  try {
    await body({
      seed: `${web.base}/film.ts`,
      tracker: `${web.base}/announce`,
      asked: (path) => web.asked.filter(({ url }) => url!.startsWith(path)).length,
    });
  } finally {
    await web.close();
  }
}

async function transportFile(bytes: Uint8Array, trackers: readonly string[], webSeeds: readonly string[]) {
  const pieceLengthBytes = choosePieceLength(bytes.length);
  return await createTransportFile({
    name: "film.ts",
    pieceLengthBytes,
    pieceHashes: await hashPieces(
      bytes.length,
      pieceLengthBytes,
      (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
    ),
    sizeBytes: bytes.length,
    trackers: trackers.map((url) => [url]),
    webSeeds,
  });
}

async function post(file: Uint8Array<ArrayBuffer>, query: Record<string, string>) {
  const url = `${served.url}/engine/getfile?${new URLSearchParams({ format: "json", ...query })}`;
  return await (await fetch(url, { method: "POST", body: file })).json() as {
    response: Started | null;
    error: string | null;
  };
}

test("disable_p2p plays from web seeds: no tracker hears of it, and peers come when another session wants them", async () => {
  const film = clip("ts-188.ts");
  await withWebSeed(film, async ({ seed, tracker, asked }) => {
    const { bytes, metainfo } = await transportFile(film, [tracker], [seed]);
    const { response: alone } = await post(bytes, { disable_p2p: "1", pid: "alone" });
    assertSameBytes(await bytesOf(alone!.playback_url), film);
    assertGreater(asked("/film.ts"), 0);
    assertEquals([asked("/announce"), (await statOf(alone!)).peers], [0, 0]);
    const { infohashHex: infohash } = metainfo;
    const other = await startSession(served, "getfile", { infohash, pid: "other" });
    await until("an announce", () => asked("/announce") > 0);
    const announced = asked("/announce");
    // When the session that wants peers ends, only sessions without peers are left, so the tracker is told "stopped".
    await fetch(`${other.command_url}?method=stop`);
    await until("the announce of the end", () => asked("/announce") > announced);
    // A start that changes its mind is another session.
    const again = await startSession(served, "getfile", { infohash, pid: "alone" });
    assertNotEquals(again.playback_session_id, alone!.playback_session_id);
    assertEquals((await fetch(alone!.playback_url)).status, 404);
    await fetch(`${again.command_url}?method=stop`);
  });
});

/** Whether the engine answers the handshake of a peer that dials it (BEP 3). */
function takesPeer(infohash: Uint8Array): Promise<boolean> {
  const [host, port] = served.peer.split(":");
  const handshake = Buffer.concat([
    Buffer.from("\x13BitTorrent protocol"),
    Buffer.alloc(8),
    infohash,
    Buffer.from("-XX0000-abcdefghijkl"),
  ]);
  return new Promise((resolve) => {
    const socket = connect(Number(port), host, () => socket.write(handshake));
    socket.once("data", () => {
      resolve(true);
      socket.destroy();
    });
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
}

test("disable_p2p dials no peer that a magnet names, and takes none", async () => {
  const film = clip("ts-192.m2ts");
  const seeded = await seedFiles([{ path: "film.ts", bytes: film }]);
  try {
    await withWebSeed(film, async ({ seed }) => {
      const { bytes, metainfo } = await transportFile(film, [], [seed]);
      const { response } = await post(bytes, { disable_p2p: "1", pid: "web" });
      const magnet = `${seeded.magnet}&ws=${encodeURIComponent(seed)}`;
      const { infohash } = await startSession(served, "getfile", { magnet, disable_p2p: "1", pid: "magnet" });
      assertEquals(infohash, response!.infohash);
      assertEquals(await takesPeer(metainfo.infohash), false);
      assertSameBytes(await bytesOf(response!.playback_url), film);
      assertEquals((await statOf(response!)).peers, 0);
      const other = await startSession(served, "getfile", { magnet, pid: "peers" });
      assertEquals(await takesPeer(metainfo.infohash), true);
      for (const { command_url } of [other, response!]) await fetch(`${command_url}?method=stop`);
    });
  } finally {
    await seeded.close();
  }
});

test("disable_p2p is refused with its reason for streams that only peers provide", async () => {
  const film = clip("mp4-end.mp4");
  const { bytes } = await transportFile(film, [], []);
  assertEquals(
    (await post(bytes, { disable_p2p: "1" })).error,
    "disable_p2p: this torrent has no web seed and is not completely in the cache",
  );
  const unknown = await ask(served, "getstream", { infohash: "ab".repeat(20), disable_p2p: "1" });
  assertEquals(unknown.error, "disable_p2p: only peers know this torrent; start its transport file");
  const contentId = await ask(served, "getstream", { content_id: "cd".repeat(20), disable_p2p: "1" });
  assertEquals(contentId.error, "disable_p2p: this content id is not known here");
  // A complete torrent needs no peers.
  const whole = await start("getfile", { _idx: "0" });
  for (const n of CLIPS.keys()) await bytesOf((await start("getfile", { _idx: String(n) })).playback_url);
  const offline = await start("getfile", { disable_p2p: "1", pid: "offline" });
  assertSameBytes(await bytesOf(offline.playback_url), await bytesOf((await start("getfile", {})).playback_url));
  assertNotEquals(offline.playback_session_id, whole.playback_session_id);
});

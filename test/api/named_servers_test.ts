/** Trackers and web seeds that torrents name, asked on behalf of callers here and elsewhere. */
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import type { Engine } from "../../src/engine.ts";
import { createLiveKey } from "../../src/live/signer.ts";
import { createTransportFile } from "../../src/metainfo/create.ts";
import { createLiveTransportFile } from "../../src/metainfo/live.ts";
import { udp } from "../discovery/support/ports.ts";
import { announceBody, connectBody, startUdpTracker } from "../discovery/support/udp-tracker.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";
import { ADDRESSES, type CallOptions, withEngine } from "./support.ts";

const NO_PEERS = "d8:intervali1800e5:peers0:e";
const SIZE_BYTES = 100_000;

interface Servers {
  readonly trackers: readonly string[];
  readonly webSeed: string;
  /** Requests so far. */
  readonly asked: () => string[];
}

/** A web server that is a tracker and a web seed of zeros, and a UDP tracker. */
async function withServers(body: (servers: Servers) => Promise<void>) {
  const web = await serveWeb((request, response) => {
    if (request.url!.startsWith("/announce")) return void response.end(NO_PEERS);
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "")!.map(Number);
    response.writeHead(206).end(new Uint8Array(to! - from! + 1));
  });
  const tracker = await startUdpTracker(
    udp,
    ({ action }) => ({ body: action === 0 ? connectBody() : announceBody(1800, 0, 0, new Uint8Array()) }),
  );
  try {
    const asked = () => [
      ...web.asked.map(({ url }) => url!.startsWith("/announce") ? "http tracker" : "web seed"),
      ...tracker.seen.map(() => "udp tracker"),
    ];
    await body({
      webSeed: `${web.base}/seed`,
      trackers: [`${web.base}/announce`, `udp://127.0.0.1:${tracker.port}`],
      asked,
    });
  } finally {
    tracker.close();
    await web.close();
  }
}

/** A file of zeros that is not a video: the engine looks for its container, and so asks all servers that the torrent names. */
async function torrent(name: string, trackers: readonly string[], webSeed: string) {
  const piece = new Uint8Array(await crypto.subtle.digest("SHA-1", new Uint8Array(SIZE_BYTES)));
  return await createTransportFile({
    name,
    pieceLengthBytes: 131_072,
    pieceHashes: piece,
    sizeBytes: SIZE_BYTES,
    trackers: trackers.map((url) => [url]),
    webSeeds: [webSeed],
  });
}

const ELSEWHERE: readonly CallOptions[] = [
  { from: "intranet" },
  { headers: { "sec-fetch-site": "cross-site", referer: "https://tv.example/" } },
  { headers: { origin: "https://tv.example" } },
];

/** Plays a transport file for which no data comes; returns why it did not start. */
async function play(engine: Engine, bytes: Uint8Array<ArrayBuffer>, { from = "loopback", headers = {} }: CallOptions) {
  const url = "http://127.0.0.1:6878/engine/getstream";
  const request = new Request(url, { method: "POST", body: bytes, headers });
  const answer = await engine.fetch(request, { remote: { host: ADDRESSES[from], port: 1 } });
  return await answer.text();
}

const errorsOf = (engine: Engine) =>
  engine.swarms.list().at(-1)!.status().sources.filter(({ kind }) => kind === "tracker").map(({ lastError }) =>
    lastError
  );

test("a stream played by a remote caller or a page asks no private tracker or web seed", async () => {
  await withServers(async ({ trackers, webSeed, asked }) => {
    await withEngine(async ({ engine }) => {
      for (const [i, caller] of ELSEWHERE.entries()) {
        const { bytes } = await torrent(`elsewhere ${i}.ts`, trackers, webSeed);
        assertMatch(await play(engine, bytes, caller), /start timeout/);
        const errors = errorsOf(engine);
        assertEquals(errors.length, 2);
        for (const error of errors) assertMatch(error ?? "", /private network/);
      }
      assertEquals(asked(), []);
    }, { startTimeoutMs: 1000, allowOrigins: ["https://tv.example"] });
  });
});

test("a broadcast that a caller elsewhere watches has no private tracker asked", async () => {
  await withServers(async ({ trackers, asked }) => {
    await withEngine(async ({ engine }) => {
      const { publicKey } = await createLiveKey();
      const tiers = trackers.map((url) => [url]);
      const { bytes } = await createLiveTransportFile({ name: "talk", publicKey, bytesPerS: 100_000, trackers: tiers });
      assertMatch(await play(engine, bytes, { from: "intranet" }), /start timeout/);
      assertEquals(asked(), []);
      const answer = play(engine, bytes, {});
      await until("requests to both", () => new Set(asked()).size === 2);
      await answer;
    }, { startTimeoutMs: 1000 });
  });
});

test("a stream played by the user asks its private trackers and web seeds, whoever played it before", async () => {
  for (const allowPrivateFetch of [false, true]) {
    await withServers(async ({ trackers, webSeed, asked }) => {
      await withEngine(async ({ engine }) => {
        const { bytes, metainfo } = await torrent("both.ts", trackers, webSeed);
        const lease = engine.swarms.acquire({ metainfo, servers: "public" });
        await until("refusals", () => {
          return errorsOf(engine).filter((error) => error?.includes("private network")).length === 2;
        });
        const answers = play(engine, bytes, allowPrivateFetch ? { from: "intranet" } : {});
        await until("requests to all three", () => new Set(asked()).size === 3);
        await answers;
        lease.release();
      }, { startTimeoutMs: 4000, allowPrivateFetch });
    });
  }
});

/** Engines that broadcast and relay: what somebody who is given a link, an infohash or a content id gets. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/engine.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { MillraceError } from "../../src/errors.ts";
import type { Broadcast, BroadcastOptions, Relay } from "../../src/live/broadcast/broadcast-types.ts";
import { parseLiveTransportFile } from "../../src/metainfo/live.ts";
import { CLIP_RATE, LoopInput, RATE } from "../live/live-lab.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { seedNoise } from "./support.ts";

const ALONE: EngineOptions = { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, cache: "ram" };

/** Runs `body` with a maker of engines that are all closed afterwards. */
async function withEngines(body: (make: (options?: EngineOptions) => Promise<Engine>) => Promise<void>): Promise<void> {
  const ports = await loadPorts({ log: { level: "error" } });
  const engines: Engine[] = [];
  try {
    await body(async (options = {}) => {
      const engine = await createEngine(ports, { ...ALONE, ...options });
      engines.push(engine);
      return engine;
    });
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
}

function broadcast(engine: Engine, options: Partial<BroadcastOptions> = {}): Promise<Broadcast> {
  return engine.broadcast({ input: new LoopInput(), name: "Test", directory: null, bytesPerS: RATE, ...options });
}

const at = (engine: Engine) => `${engine.peerAddress!.host}:${engine.peerAddress!.port}`;

async function receives(relay: Relay): Promise<void> {
  await until("pieces arrive", () => relay.status().downloadedBytes > 4 * 65536);
  // Both may have dialled: one of the two connections stays.
  await until("one connection", () => relay.status().peers === 1);
}

test("engine.relay() finds out from a peer's metadata that a magnet without trackers names a broadcast", async () => {
  await withEngines(async (make) => {
    const home = await make();
    const sent = await broadcast(home);
    const viewer = await make();
    const relay = await viewer.relay({ kind: "magnet", magnet: `${sent.magnet}&x.pe=${at(home)}` });
    assertEquals([relay.metainfo.infohashHex, relay.contentId], [sent.metainfo.infohashHex, sent.contentId]);
    await receives(relay);
    assertEquals(viewer.swarms.list().filter(({ infohashHex }) => infohashHex === relay.metainfo.infohashHex), []);
    const third = await make();
    const second = await third.relay({ kind: "magnet", magnet: `${sent.magnet}&x.pe=${at(viewer)}` });
    await until("a relay passes it on", () => second.status().downloadedBytes > 0);
  });
});

test("engine.relay() needs nothing but the content id where there is a DHT", async () => {
  const ports = await loadPorts({ log: { level: "error" } });
  const first = await DhtNode.open(ports, { host: "127.0.0.1", bootstrap: [], statePath: null });
  const bootstrap = [`127.0.0.1:${first.port}`];
  const second = await DhtNode.open(ports, { host: "127.0.0.1", bootstrap, statePath: null });
  try {
    await withEngines(async (make) => {
      const home = await make({ dht: true, dhtBootstrap: bootstrap });
      const sent = await broadcast(home);
      const viewer = await make({ dht: true, dhtBootstrap: bootstrap });
      // The record is still on its way into the DHT when the viewer asks.
      await receives(await viewer.relay({ kind: "content_id", contentId: sent.contentId }));
    });
  } finally {
    await Promise.all([first.close(), second.close()]);
  }
});

test("engine.relay() takes a transport file, and refuses a torrent", async () => {
  await withEngines(async (make) => {
    const home = await make();
    const sent = await broadcast(home);
    assertEquals(await parseLiveTransportFile(sent.transportFile), sent.metainfo);
    const viewer = await make();
    const relay = await viewer.relay({ kind: "transport_file", bytes: sent.transportFile });
    assertEquals(viewer.broadcasts.list().map(({ role }) => role), ["viewer"]);
    await relay.close();
    const torrent = await seedNoise(65536);
    try {
      const error = await assertRejects(
        () => viewer.relay({ kind: "transport_file", bytes: torrent.transportFile }),
        MillraceError,
      );
      assertEquals(error.code, "invalid_argument");
    } finally {
      await torrent.close();
    }
  });
});

test("engine.broadcast() measures the bitrate that nobody named, and keeps what it measured", async () => {
  const directory = await temporaryDirectory();
  try {
    await withEngines(async (make) => {
      const home = await make();
      const { bytesPerS: _, ...unnamed } = {
        bytesPerS: 0,
        input: new LoopInput(),
        name: "Test",
        directory: directory.path,
      };
      const first = await home.broadcast(unnamed);
      // By the clip's own clock, which the test outruns.
      assert(Math.abs(first.metainfo.bytesPerS - CLIP_RATE) < CLIP_RATE / 5, `${first.metainfo.bytesPerS}`);
      await first.close();
      const again = await home.broadcast({ ...unnamed, input: new LoopInput(RATE * 2) });
      assertEquals(again.metainfo.infohashHex, first.metainfo.infohashHex);
      await again.close();
      const error = await assertRejects(
        () => home.broadcast({ ...unnamed, input: new LoopInput(), name: "Other" }),
        MillraceError,
      );
      assertEquals(error.code, "conflict");
    });
  } finally {
    await directory.remove();
  }
});

test("engine.broadcast() of a private broadcast stays out of the DHT and tells no peer of another (BEP 27)", async () => {
  const ports = await loadPorts({ log: { level: "error" } });
  const node = await DhtNode.open(ports, { host: "127.0.0.1", bootstrap: [], statePath: null });
  try {
    await withEngines(async (make) => {
      const home = await make({ dht: true, dhtBootstrap: [`127.0.0.1:${node.port}`] });
      const sent = await broadcast(home, { isPrivate: true });
      await until("pieces", () => sent.status().headSeq > 2);
      const target = Uint8Array.from(sent.contentId.match(/../g)!, (hex) => parseInt(hex, 16));
      assertEquals(await node.getImmutable(target, AbortSignal.timeout(10_000)), null);
      assertEquals(sent.status().sources, []);
    });
  } finally {
    await node.close();
  }
});

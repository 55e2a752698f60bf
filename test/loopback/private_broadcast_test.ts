/** A private broadcast (BEP 27) among engines that have a DHT: who finds it, and who does not. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/engine.ts";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import type { Relay } from "../../src/live/broadcast/broadcast-types.ts";
import { compact, startHttpTracker } from "../discovery/support/http-tracker.ts";
import { LoopInput, RATE } from "../live/live-lab.ts";
import { until } from "../support/until.ts";

/** A tracker that answers those who know its key. */
async function keyedTracker(key: string) {
  const peers = new Set<string>();
  const tracker = await startHttpTracker(({ path, query }, response) => {
    const isIn = path === `/${key}/announce`;
    if (isIn) peers.add(`127.0.0.1:${query.get("port")}`);
    response.end(encodeBencode(
      isIn
        ? { interval: 1800, "min interval": 1, peers: compact(...peers) }
        : { "failure reason": "unregistered pass key" },
    ));
  });
  return { ...tracker, with: (own: string) => `${tracker.origin}/${own}/announce` };
}

const receives = (relay: Relay) => until("pieces arrive", () => relay.status().downloadedBytes > 65_536);

test("engine.broadcast() of a private broadcast is found by those whom its tracker lets in, and by no one else", async () => {
  const ports = await loadPorts({ log: { level: "error" } });
  const node = await DhtNode.open(ports, { host: "127.0.0.1", bootstrap: [], statePath: null });
  const bootstrap = [`127.0.0.1:${node.port}`];
  const tracker = await keyedTracker("right");
  const engines: Engine[] = [];
  const make = async (options: EngineOptions = {}) => {
    const alone: EngineOptions = { peerHost: "127.0.0.1", peerPort: 0, lsd: false, cache: "ram" };
    const engine = await createEngine(ports, { ...alone, dht: true, dhtBootstrap: bootstrap, ...options });
    engines.push(engine);
    return engine;
  };
  try {
    const home = await make();
    const sent = await home.broadcast({
      ...{ input: new LoopInput(), name: "Private", directory: null, bytesPerS: RATE, isPrivate: true },
      trackers: [[tracker.with("right")]],
    });
    // A support node that has the transport file, and a viewer behind it, find it by the tracker.
    const support = await make();
    const relay = await support.relay({ kind: "transport_file", bytes: sent.transportFile });
    await receives(relay);
    const guest = await make();
    await receives(await guest.relay({ kind: "transport_file", bytes: sent.transportFile }));
    // Both know the stream, and neither named it to the DHT.
    const found: string[] = [];
    await node.lookup(
      sent.metainfo.infohash,
      0,
      ({ host, port }) => found.push(`${host}:${port}`),
      AbortSignal.timeout(20_000),
    );
    assertEquals(found, []);
    const stranger = await make({ startTimeoutMs: 3000 });
    const fails = async (query: Record<string, string>) => {
      const url = `http://localhost/engine/getstream?${new URLSearchParams({ ...query, format: "json" })}`;
      return (await (await stranger.fetch(new Request(url))).json()).error as string;
    };
    const bare = `magnet:?xt=urn:btih:${sent.metainfo.infohashHex}`;
    const wrong = `${bare}&tr=${encodeURIComponent(tracker.with("wrong"))}`;
    const said = await Promise.all([{ content_id: sent.contentId }, { magnet: bare }].map(fails));
    assertEquals(said, ["start timeout: no answer to the selector", "start timeout: no_peers"]);
    assertEquals(await fails({ magnet: wrong }), "start timeout: no_peers");
    assert(tracker.seen.some(({ path }) => path === "/wrong/announce"));
    // It is no lock: members ask nobody for a key.
    const { host, port } = support.peerAddress!;
    const intruder = await make();
    await receives(await intruder.relay({ kind: "magnet", magnet: `${bare}&x.pe=${host}:${port}` }));
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
    await tracker.close();
    await node.close();
  }
});

/** Engines behind a proxy: every way out of the machine is watched. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import type { EngineOptions } from "../../src/engine.ts";
import type { FetchOptions, Ports } from "../../src/ports.ts";
import { compact, startHttpTracker } from "../discovery/support/http-tracker.ts";
import { serveOn } from "../support/engine.ts";
import { startProxy } from "../support/proxy.ts";
import { serveWeb } from "../support/web.ts";
import { ask, bytesOf, seedNoise, startSession, statOf } from "./support.ts";

/** `ports`, and what went out of the machine beside the proxy. */
function watched(ports: Ports, proxyPort: number): { ports: Ports; beside: string[] } {
  const beside: string[] = [];
  const fetched = (host: string, route: FetchOptions) => {
    if (route.proxy?.port !== proxyPort) beside.push(`http ${host}`);
  };
  return {
    beside,
    ports: {
      ...ports,
      tcp: {
        listen: (at, onConnection) => ports.tcp.listen(at, onConnection),
        connect: (target, options) => {
          if (target.port !== proxyPort) beside.push(`tcp ${target.host}:${target.port}`);
          return ports.tcp.connect(target, options);
        },
      },
      udp: {
        bind: (options) => {
          beside.push("udp");
          return ports.udp.bind(options);
        },
      },
      network: {
        ...ports.network,
        interfaces: () => ports.network.interfaces(),
        resolve: (host, options) => {
          beside.push(`name ${host}`);
          return ports.network.resolve(host, options);
        },
      },
      httpClient: {
        open: (request) => {
          fetched(request.url.host, request);
          return ports.httpClient.open(request);
        },
      },
      fetch: (input: Parameters<typeof fetch>[0], init?: FetchOptions) => {
        fetched(String(input), init ?? {});
        return ports.fetch(input, init);
      },
    },
  };
}

for (const kind of ["socks5", "http"] as const) {
  test(`createEngine() sends nothing beside a ${kind} proxy: peers, tracker, web seed, transport file, list`, async () => {
    const proxy = await startProxy({ kind, credentials: { user: "user", password: "word" } });
    const seeded = await seedNoise(1_500_000, { trackers: [["http://tracker.test:1/announce"]] });
    const tracker = await startHttpTracker((_announce, response) => {
      const peers = compact(seeded.peer);
      response.end(Buffer.concat([Buffer.from(`d8:intervali1800e5:peers${peers.length}:`), peers, Buffer.from("e")]));
    });
    const port = new URL(tracker.origin).port;
    const web = await serveWeb(({ url }, response) => {
      if (url === "/noise.torrent") response.end(seeded.transportFile);
      else if (url === "/list.m3u") response.end(`#EXTM3U\n#EXTINF:-1,One\nhttp://files.test/one.ts\n`);
      else response.writeHead(404).end();
    });
    const { ports, beside } = watched(await loadPorts({ log: { level: "error" } }), proxy.port);
    const options: EngineOptions = { proxy: proxy.url, dht: kind === "http", lsd: true, startTimeoutMs: 60_000 };
    const served = await serveOn(ports, options);
    try {
      // By its address, too: a tracker whose address nobody knows may not name a peer of this machine.
      const magnet = seeded.magnet +
        `&tr=${encodeURIComponent(`http://tracker.test:${port}/announce`)}` +
        `&tr=${encodeURIComponent(`udp://tracker.test:${port}/announce`)}` +
        `&ws=${encodeURIComponent(`http://seed.test:${web.port}/`)}`;
      const started = await startSession(served, "getfile", { magnet });
      assertEquals(await bytesOf(started.playback_url), seeded.data);
      const stat = await statOf(started) as { proxy: Record<string, string | null> };
      assertEquals([stat.proxy["server"], stat.proxy["trouble"]], [`${kind}://127.0.0.1:${proxy.port}`, null]);
      assertMatch(stat.proxy["udp_trouble"]!, /no UDP/);
      for (const path of ["noise.torrent", "list.m3u"]) {
        await ask(served, "getfile", { url: `http://files.test:${web.port}/${path}` });
      }
      // Names of the local network are nobody's business outside.
      const near = await ask(served, "getfile", { url: `http://nas:${web.port}/noise.torrent` });
      assertMatch(near.error!, /write its address/);
      const asked = new Set(proxy.asked);
      for (const target of [seeded.peer, `tracker.test:${port}`, `files.test:${web.port}`]) {
        assert(asked.has(target), `${target} was not asked by the proxy: ${[...asked]}`);
      }
      assertEquals([beside, proxy.faults], [[], []]);
      await proxy.close();
      const late = await ask(served, "getfile", { url: `http://files.test:${web.port}/other.torrent` });
      assertMatch(late.error!, /the proxy .* cannot be reached/);
      assertMatch((await statOf(started) as typeof stat).proxy["trouble"]!, /cannot be reached/);
      assertEquals(beside, []);
      // What is at an address of this machine or of a private network never was the proxy's.
      const own = await ask(served, "getfile", { url: `${web.base}/noise.torrent` });
      assertEquals([own.error, beside], [null, [`http 127.0.0.1:${web.port}`]]);
    } finally {
      await served.close();
      await proxy.close();
      await seeded.close();
      await tracker.close();
      await web.close();
    }
  });
}

test("createEngine() fetches transport files directly with proxyFor peers, and connects to peers by the proxy", async () => {
  const proxy = await startProxy();
  const seeded = await seedNoise(400_000);
  const web = await serveWeb((_, response) => void response.end(seeded.transportFile));
  const { ports, beside } = watched(await loadPorts({ log: { level: "error" } }), proxy.port);
  const served = await serveOn(ports, { proxy: proxy.url, proxyFor: "peers", startTimeoutMs: 60_000 });
  try {
    const magnet = `${seeded.magnet}&xs=${encodeURIComponent(`http://localhost:${web.port}/x.torrent`)}`;
    const started = await startSession(served, "getfile", { magnet });
    assertEquals(await bytesOf(started.playback_url), seeded.data);
    assertEquals(new Set(proxy.asked), new Set([seeded.peer]));
    assertEquals(beside.filter((way) => !way.includes("localhost")), []);
  } finally {
    await served.close();
    await proxy.close();
    await seeded.close();
    await web.close();
  }
});

/** What get_status and get_network_connection_status mean, over HTTP. */
import { join } from "node:path";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { LoopInput, RATE } from "../live/live-lab.ts";
import type { EngineOptions } from "../../src/engine.ts";
import { startHttpTracker } from "../discovery/support/http-tracker.ts";
import { serveEngine, temporaryDirectory } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { TOKEN } from "./support.ts";
import { openDatabase } from "../support/database.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";

type Result = Record<string, unknown>;

async function withServed(
  options: EngineOptions,
  body: (ask: (method: string) => Promise<Result>, engine: Awaited<ReturnType<typeof serveEngine>>) => Promise<void>,
): Promise<void> {
  const served = await serveEngine({ accessToken: TOKEN, ...options });
  try {
    await body(async (method) => {
      const { result, error } = await (await fetch(`${served.url}/server/api?method=${method}&token=${TOKEN}`)).json();
      assertEquals(error, null);
      return result;
    }, served);
  } finally {
    await served.close();
  }
}

const isConnected = async (ask: (method: string) => Promise<Result>) =>
  (await ask("get_network_connection_status"))["connected"] as boolean;

test("get_network_connection_status counts a tracker that answers as a connection, but not one that is silent or refuses", async () => {
  let reply: "silence" | "refusal" | "nobody" = "silence";
  const tracker = await startHttpTracker((_announce, response) => {
    if (reply === "refusal") response.end("d14:failure reason4:nonee");
    else if (reply === "nobody") response.end("d8:intervali1800e5:peers0:e");
  });
  try {
    for (const wanted of ["silence", "refusal", "nobody"] as const) {
      reply = wanted;
      const before = tracker.seen.length;
      await withServed({ startTimeoutMs: 20_000 }, async (ask, { engine }) => {
        assertEquals(await isConnected(ask), false);
        const magnet = parseMagnet(`magnet:?xt=urn:btih:${ID}&tr=${tracker.origin}/announce`);
        const lease = engine.swarms.acquire({ magnet });
        await until("the tracker is asked", () => tracker.seen.length > before);
        if (wanted === "nobody") await until("connected", () => isConnected(ask));
        else {
          if (wanted === "refusal") {
            await until("refused", () => lease.swarm.status().sources.some(({ lastError }) => lastError !== null));
          }
          assertEquals(await isConnected(ask), false, wanted);
        }
        lease.release();
      });
    }
  } finally {
    await tracker.close();
  }
});

test("get_network_connection_status counts a DHT node that answers as a connection, but not one that is silent", async () => {
  const node = await DhtNode.open(await loadPorts(), { host: "127.0.0.1", bootstrap: [], statePath: null });
  const bootstrap = `127.0.0.1:${node.port}`;
  await withServed({ dht: true, dhtBootstrap: [bootstrap] }, async (ask) => {
    await until("connected", () => isConnected(ask));
  });
  await node.close();
  await withServed({ dht: true, dhtBootstrap: [bootstrap] }, async (ask) => {
    assertEquals(await isConnected(ask), false);
  });
});

test("get_network_connection_status: a viewer of our broadcast is a connection until it leaves", async () => {
  await withServed({}, async (ask, { engine, peer }) => {
    const sent = await engine.broadcast({ input: new LoopInput(), name: "Test", directory: null, bytesPerS: RATE });
    assertEquals(await isConnected(ask), false);
    await withServed({}, async (askViewer, viewer) => {
      await viewer.engine.relay({ kind: "magnet", magnet: `${sent.magnet}&x.pe=${peer}` });
      await until("connected", async () => await isConnected(ask) && await isConnected(askViewer));
    });
    await until("alone again", async () => !await isConnected(ask));
  });
});

test("get_status: playlist_loaded is true only while the playlist can be read", async () => {
  const { path, remove } = await temporaryDirectory();
  try {
    await withServed({ stateDir: path }, async (ask) => {
      // Nothing has been stored yet; the file comes with the first use, which is this one.
      const other = await openDatabase(join(path, "millrace.db"));
      await other.execute("CREATE TABLE letters (text)");
      assertEquals((await ask("get_status"))["playlist_loaded"], false);
      // It belongs to another program, which thinks better of it.
      await other.execute("DROP TABLE letters");
      other.close();
      assertEquals((await ask("get_status"))["playlist_loaded"], true);
    });
  } finally {
    await remove();
  }
});

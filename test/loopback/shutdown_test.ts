/** Closing an engine: readers end, trackers get `stopped`, nothing keeps the process alive. */
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { serveEngine, temporaryDirectory } from "../support/engine.ts";
import { start } from "../support/process.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";
import { MIB, seedNoise, startSession } from "./support.ts";
import { ownMs } from "../support/held-up.ts";

/** An HTTP tracker that records announces and knows no peers; `silent` never answers a stop. */
async function tracker(options: { silent?: boolean } = {}) {
  const events: { event: string; left: string | null; port: string | null }[] = [];
  const web = await serveWeb((request, response) => {
    const query = new URL(request.url ?? "/", "http://tracker").searchParams;
    const event = query.get("event") ?? "";
    events.push({ event, left: query.get("left"), port: query.get("port") });
    if (event === "stopped" && options.silent) return;
    response.end("d8:intervali1800e5:peers0:e");
  });
  return { events, url: `${web.base}/announce`, close: () => web.close() };
}

test("close() ends readers, announces `stopped` and resolves within 3 s, even with a silent tracker", async () => {
  const seeder = await seedNoise(8 * MIB);
  const trackers = [await tracker(), await tracker({ silent: true })];
  const served = await serveEngine({ downloadLimitBytesPerSecond: MIB });
  let closed = false;
  try {
    const magnet = seeder.magnet + trackers.map(({ url }) => `&tr=${encodeURIComponent(url)}`).join("");
    const started = await startSession(served, "getfile", { magnet, use_api_events: "1" });
    const events = fetch(started.event_url!).then((answer) => answer.text());
    const response = await fetch(started.playback_url);
    const reading = response.arrayBuffer().then((body) => body.byteLength, () => -1);
    await until("the trackers heard of us", () => trackers.every(({ events }) => events[0]?.event === "started"));
    const tookMs = await ownMs(() => served.close());
    closed = true;
    assertLess(tookMs, 3_000);
    assertEquals(await reading, -1, "a body that is cut short is seen as such");
    await events.catch(() => {});
    for (const { events } of trackers) {
      assertEquals(events.filter(({ event }) => event === "stopped").length, 1);
      assert(Number(events[0]!.left) > 0);
      assertEquals(events[0]!.port, served.peer.split(":")[1]);
    }
    await served.engine.close();
    const answer = await served.engine.fetch(
      new Request(`http://127.0.0.1/engine/getstream?infohash=${"a".repeat(40)}`),
    );
    assertEquals(answer.status, 503);
  } finally {
    if (!closed) await served.close();
    await Promise.all([seeder.close(), ...trackers.map((one) => one.close())]);
  }
});

test("close() does not wait for the DHT, whose nodes are silent while records are looked up and stored (BEP 5, 44)", async () => {
  const ports = await loadPorts();
  const seen: string[] = [];
  const silent = await ports.udp.bind({ host: "127.0.0.1" });
  silent.onMessage((data) => seen.push(new TextDecoder("latin1").decode(data)));
  const other = await serveEngine({ dht: true, dhtBootstrap: [`127.0.0.1:${silent.address.port}`] });
  const served = await serveEngine({ dht: true, dhtBootstrap: [other.peer, `127.0.0.1:${silent.address.port}`] });
  try {
    const body = await readFile(new URL("../fixtures/single.torrent", import.meta.url));
    const starts = [
      fetch(`${served.url}/engine/getstream?format=json`, { method: "POST", body: new Uint8Array(body) }),
      fetch(`${served.url}/engine/getstream?format=json&content_id=${"ab".repeat(20)}`),
    ].map((started) => started.then((answer) => answer.text(), () => ""));
    await until("the DHT is asked", () => seen.length > 0 && served.engine.swarms.list().length > 0);
    assertLess(await ownMs(() => served.close()), 3_000);
    await Promise.all(starts);
  } finally {
    await Promise.all([served.close(), other.close()]);
    silent.close();
  }
});

test("close() aborts network requests that API calls wait for, and answers the calls", async () => {
  let gone = 0;
  const silent = await serveWeb((_request, response) => void response.on("close", () => gone++));
  const served = await serveEngine();
  try {
    const ask = async (query: Record<string, string>) =>
      await (await served.engine.fetch(new Request(`http://127.0.0.1/server/api?${new URLSearchParams(query)}`)))
        .json();
    const calls = [
      ask({ method: "analyze_content", query: `${silent.base}/a` }),
      ask({ method: "get_media_files", url: `${silent.base}/b` }),
      ask({ method: "parse_m3u_playlist", url: `${silent.base}/c` }),
    ];
    await until("all are asked for", () => silent.asked.length === 3);
    await served.engine.close();
    for (const { error } of await Promise.all(calls)) {
      assertEquals([error.code, error.message], [9, "the engine is closing"]);
    }
    await until("the connections are gone", () => gone === 3);
  } finally {
    await served.close();
    await silent.close();
  }
});

test("close() leaves no timer and no socket: the process ends by itself", async () => {
  const seeder = await seedNoise(4 * MIB);
  const directory = await temporaryDirectory();
  const script = new URL("./support/closing-process.ts", import.meta.url).pathname;
  const deno = "Deno" in globalThis ? ["run", "-A", "--no-check"] : [];
  const child = start(process.execPath, [...deno, script, seeder.magnet, directory.path]);
  try {
    await child.line(/^closed$/);
    let hasEnded = false;
    void child.exited.then(() => hasEnded = true);
    await until("it has ended by itself", () => hasEnded, 5_000);
    assertEquals(await child.exited, 0, child.output().slice(-500));
  } finally {
    await child.stop();
    await seeder.close();
    await directory.remove();
  }
});

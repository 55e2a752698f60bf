/** Broadcasts that the method API starts, over HTTP and with a real viewer. */
import { copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { MAX_BROADCASTS } from "../../src/engine/broadcast-desk.ts";
import { serveEngine, temporaryDirectory } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { TOKEN, withEngine } from "./support.ts";

const CLIP = new URL("../fixtures/ts-188.ts", import.meta.url);

async function api(url: string, method: string, params: Record<string, string> = {}) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  return await (await fetch(`${url}/server/api?${query}`)).json();
}

test("broadcast_start sends a file to a viewer, broadcast_list shows the way, and the same name keeps its id", async () => {
  const directory = await temporaryDirectory();
  const source = join(directory.path, "clip.ts");
  await copyFile(CLIP, source);
  const studio = await serveEngine({ accessToken: TOKEN, stateDir: join(directory.path, "state") });
  const viewer = await serveEngine({ startTimeoutMs: 20_000 });
  try {
    const { result: started, error } = await api(studio.url, "broadcast_start", {
      source,
      name: "talk",
      title: "A talk",
    });
    assertEquals(error, null);
    assertEquals([started.title, started.source, started.ended], ["A talk", source, false]);
    assertEquals(started.lost_packets, null);
    const magnet = `${started.magnet}&x.pe=${studio.peer}`;
    const played = await fetch(`${viewer.url}/engine/getstream?magnet=${encodeURIComponent(magnet)}`);
    assertEquals(played.status, 200);
    const reader = played.body!.getReader();
    assertEquals((await reader.read()).value![0], 0x47);
    await until("the viewer is fed", async () => {
      const { result } = await api(studio.url, "broadcast_list");
      const [own] = result.broadcasts;
      return own.peers === 1 && own.members[0]?.to.length > 0 && own.upload > 0;
    });
    await reader.cancel();
    assertMatch(
      (await api(studio.url, "broadcast_start", { source, name: "talk" })).error.message,
      /of this name runs/,
    );
    assertEquals((await api(studio.url, "broadcast_stop", { infohash: started.infohash })).result, "ok");
    assertEquals((await api(studio.url, "broadcast_list")).result.broadcasts, []);
    const again = (await api(studio.url, "broadcast_start", { source, name: "talk", title: "A talk" })).result;
    assertEquals([again.infohash, again.content_id], [started.infohash, started.content_id]);
  } finally {
    await viewer.close();
    await studio.close();
    await directory.remove();
  }
});

test("broadcast_list counts the packets that a udp:// source lost", async () => {
  const studio = await serveEngine({ accessToken: TOKEN });
  const bytes = await readFile(CLIP);
  const ports = await loadPorts({ log: { level: "error" } });
  const sender = await ports.udp.bind({ host: "127.0.0.1" });
  const other = await ports.udp.bind({ host: "127.0.0.1" });
  const to = other.address;
  other.close();
  const size = 7 * 188;
  let sent = 0;
  const sending = setInterval(() => {
    // Every tenth datagram is left out.
    if (sent++ % 10 === 5) return;
    const at = sent * size % (bytes.length - size);
    void sender.send(bytes.subarray(at - at % 188, at - at % 188 + size), to);
  }, 1);
  try {
    const { error } = await api(studio.url, "broadcast_start", { source: `udp://127.0.0.1:${to.port}`, name: "u" });
    assertEquals(error, null);
    await until("lost packets", async () => {
      const [own] = (await api(studio.url, "broadcast_list")).result.broadcasts;
      return own.lost_packets > 0;
    });
  } finally {
    clearInterval(sending);
    sender.close();
    await studio.close();
  }
});

test("broadcast_start says what is wrong when the source is a missing file, a relative path, standard input or malformed", async () => {
  await withEngine(async ({ call }) => {
    const start = async (source: string) => (await call("broadcast_start", { token: TOKEN, source, name: "x" })).error!;
    assertMatch((await start("/nowhere/at/all.ts")).message, /cannot read \/nowhere\/at\/all\.ts/);
    assertMatch((await start("clip.ts")).message, /whole path/);
    assertMatch((await start("-")).message, /standard input/);
    assertMatch((await start("udp://")).message, /source/);
    assertEquals((await call("broadcast_stop", { token: TOKEN, infohash: "0".repeat(40) })).error!.code, 5);
    assertEquals((await call("broadcast_list", { token: TOKEN })).result.broadcasts, []);
  });
});

test("broadcast_start serves only callers on this machine, even if others have the token", async () => {
  await withEngine(async ({ call }) => {
    const params = { token: TOKEN, source: CLIP.pathname, name: "x" };
    const refused = await call("broadcast_start", params, { from: "intranet" });
    assertEquals([refused.status, refused.error!.code], [403, 4]);
    const page = await call("broadcast_start", params, { headers: { origin: "https://evil.example" } });
    assertEquals(page.error!.code, 4);
    assertEquals((await call("broadcast_list", { token: TOKEN })).result.broadcasts, []);
  });
});

test("broadcast_start refuses another when as many run as may", async () => {
  await withEngine(async ({ call }) => {
    const start = (n: number) => call("broadcast_start", { token: TOKEN, source: CLIP.pathname, name: `b${n}` });
    const all = await Promise.all(Array.from({ length: MAX_BROADCASTS + 1 }, (_, n) => start(n)));
    assertEquals(all.filter(({ error }) => error === null).length, MAX_BROADCASTS);
    const refused = all.find(({ error }) => error !== null)!;
    assertMatch(refused.error!.message, /broadcasts run: stop one first/);
    const { broadcasts } = (await call("broadcast_list", { token: TOKEN })).result;
    await call("broadcast_stop", { token: TOKEN, infohash: broadcasts[0].infohash });
    assert((await start(99)).error === null);
  });
});

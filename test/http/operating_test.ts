/** For operators of the engine: metrics, health, readiness, and log lines that follow one request. */
import { test } from "node:test";
import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
// @ts-types="../metrics/parse-prometheus-text-format.d.ts"
import parse from "parse-prometheus-text-format";
import { Hono } from "hono";
import { loadPorts } from "../../platform/detect.ts";
import type { EngineOptions } from "../../src/engine.ts";
import { AccessPolicy } from "../../src/http/address.ts";
import type { HttpEnv, HttpParts } from "../../src/http/context.ts";
import { addGuard } from "../../src/http/guard.ts";
import { addOperatingRoutes } from "../../src/http/operating-routes.ts";
import type { Logger } from "../../src/ports.ts";
import { ADDRESSES, withEngine } from "../api/support.ts";
import { clip } from "../support/fixtures.ts";
import { seedFiles, serveOn } from "../support/engine.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";

const POLICY = new AccessPolicy({ interfaces: () => [], resolve: () => Promise.resolve([]) }, {
  allowedHosts: [],
  allowedOrigins: [],
  publicUrl: null,
  trustedProxies: [],
  allowIntranet: true,
  allowInternet: false,
});

type Families = ReadonlyMap<string, ReturnType<typeof parse>[number]>;

async function scrape(url: string): Promise<Families> {
  const response = await fetch(`${url}/metrics`);
  assertEquals(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  return new Map(parse(await response.text()).map((family) => [family.name, family]));
}

function valueOf(families: Families, name: string, labels: Record<string, string> = {}): number {
  const wanted = Object.entries(labels);
  const found = families.get(name)?.metrics.find((metric) =>
    wanted.every(([key, value]) => metric.labels?.[key] === value)
  );
  return Number(found?.value ?? found?.count);
}

/** Lines that are logged, with their fields. */
function recorder() {
  const lines: (Record<string, unknown> & { level: string; message: string })[] = [];
  const logger = (bound: Record<string, unknown>): Logger => ({
    log: (level, message, fields) => void lines.push({ ...bound, ...fields, level, message }),
    child: (fields) => logger({ ...bound, ...fields }),
  });
  return { lines, log: logger({}) };
}

async function playing(
  body: (
    url: string,
    start: (more?: string) => Promise<Record<string, string>>,
    log: ReturnType<typeof recorder>,
  ) => Promise<void>,
  options: EngineOptions = {},
) {
  const log = recorder();
  const seeder = await seedFiles([{ path: "film.mp4", bytes: clip("mp4-30fps.mp4") }], {
    pieceLengthBytes: 16_384,
    engine: { uploadLimitBytesPerSecond: 100_000 },
  });
  const served = await serveOn({ ...await loadPorts(), log: log.log }, options);
  try {
    await body(served.url, async (more = "") => {
      const query = `format=json&magnet=${encodeURIComponent(seeder.magnet)}${more}`;
      const { response, error } = await (await fetch(`${served.url}/engine/getstream?${query}`)).json();
      assertEquals(error, null);
      return response;
    }, log);
  } finally {
    await served.close();
    await seeder.close();
  }
}

test("/metrics counts swarms, peers, bytes, sessions, starts and requests when a stream was played", async () => {
  await playing(async (url, start) => {
    const { playback_url, command_url } = await start();
    const reading = fetch(playback_url!).then((response) => response.arrayBuffer());
    // Two seeders disconnect from each other.
    await until(
      "the peer is told",
      async () => valueOf(await scrape(url), "millrace_peers", { kind: "torrent" }) === 1,
    );
    const bytes = (await reading).byteLength;
    const during = await scrape(url);
    assertEquals(valueOf(during, "millrace_swarms", { kind: "torrent" }), 1);
    assertEquals(valueOf(during, "millrace_swarms", { kind: "broadcast" }), 0);
    assertEquals(valueOf(during, "millrace_sessions", { output: "ts", state: "playing" }), 1);
    assertMatch(await (await fetch(`${url}/metrics`)).text(), /^millrace_start_seconds_count\{output="ts"\} 1$/m);
    assertEquals(valueOf(during, "millrace_http_requests_total", { route: "/engine/getstream", status: "200" }), 1);
    assertEquals(valueOf(during, "millrace_http_requests_total", { route: "/engine/r/:infohash/:id" }), 1);
    assertEquals(valueOf(during, "millrace_pieces_failed_total", { kind: "torrent" }), 0);
    assertGreater(valueOf(during, "millrace_cache_used_bytes"), bytes / 2);
    for (const kind of ["resident", "heap", "external"]) {
      assertGreater(valueOf(during, "millrace_memory_bytes", { kind }), 100_000, kind);
    }
    assertGreater(valueOf(during, "millrace_timers"), 0);
    await fetch(`${command_url}?method=stop`);
    const downloaded = valueOf(during, "millrace_peer_bytes_total", { kind: "torrent", direction: "down" });
    assertGreater(downloaded, bytes / 2);
    await until(
      "the swarm is left",
      async () => valueOf(await scrape(url), "millrace_swarms", { kind: "torrent" }) === 0,
    );
    const after = await scrape(url);
    assert(
      valueOf(after, "millrace_peer_bytes_total", { kind: "torrent", direction: "down" }) >= downloaded,
      "a counter never goes back",
    );
    assertEquals(valueOf(after, "millrace_sessions", { output: "ts", state: "playing" }), 0);
    await until(
      "the loop is measured",
      async () => valueOf(await scrape(url), "millrace_event_loop_delay_seconds") > 0,
    );
  }, { swarmLingerMs: 10 });
});

test("/metrics has no label from outside when strangers ask for paths, methods and streams of their own making", async () => {
  await playing(async (url) => {
    const ask = async (from: number, end: number) => {
      for (let n = from; n < end; n++) {
        await (await fetch(`${url}/nothing/${n}`)).text();
        await (await fetch(`${url}/server/api?method=made_up_${n}`)).text();
        await (await fetch(`${url}/engine/stat/${"a".repeat(40)}/${n}`)).text();
        await (await fetch(`${url}/engine/getstream?infohash=bad${n}`)).text();
        await (await fetch(`${url}/`, { method: `X${n}` })).text();
      }
      return await (await fetch(`${url}/metrics`)).text();
    };
    await ask(0, 1);
    const before = (await ask(1, 2)).split("\n").length;
    const text = await ask(2, 50);
    assert(!/made_up|nothing|bad\d|"X\d/.test(text), "a stranger's word is in the text");
    const families = await scrape(url);
    assertEquals(valueOf(families, "millrace_api_calls_total", { method: "unknown", result: "error_1" }), 50);
    assertEquals(valueOf(families, "millrace_http_requests_total", { route: "none", method: "GET" }), 50);
    assertEquals(text.split("\n").length, before);
  });
});

test("a start that fails is counted by the code of its error", async () => {
  await playing(async (url) => {
    const dead = `magnet:?xt=urn:btih:${"0".repeat(39)}1&x.pe=127.0.0.1:1`;
    await (await fetch(`${url}/engine/getstream?magnet=${encodeURIComponent(dead)}`)).text();
    const families = await scrape(url);
    assertEquals(valueOf(families, "millrace_start_failures_total", { output: "ts", code: "start_timeout" }), 1);
  }, { startTimeoutMs: 200 });
});

test("/metrics, /healthz and /readyz follow the address rule and show nothing to pages of other sites", async () => {
  await withEngine(async ({ engine }) => {
    const ask = (path: string, from: keyof typeof ADDRESSES, headers: Record<string, string> = {}) =>
      engine.fetch(new Request(`http://127.0.0.1:6878${path}`, { headers }), {
        remote: { host: ADDRESSES[from], port: 1 },
      });
    for (const path of ["/metrics", "/healthz", "/readyz"]) {
      assertEquals((await ask(path, "loopback")).status, 200, path);
      assertEquals((await ask(path, "intranet")).status, 200, path);
      assertEquals((await ask(path, "internet")).status, 403, path);
      const page = await ask(path, "loopback", { origin: "https://evil.example", "sec-fetch-site": "cross-site" });
      assertEquals(page.status, 403, path);
      engine.access.setAllowed("intranet", false);
      assertEquals((await ask(path, "intranet")).status, 403, path);
      engine.access.setAllowed("intranet", true);
    }
  });
});

test("/readyz says what is wrong when the database cannot be read or hangs, while /healthz stays ok", async () => {
  const clock = new FakeClock();
  let isLoaded: () => Promise<boolean> = () => Promise.resolve(true);
  const closing = new AbortController();
  const app = new Hono<HttpEnv>();
  const parts = {
    clock,
    api: { playlist: { isLoaded: () => isLoaded() }, closing: closing.signal },
    isOwnRequest: () => Promise.resolve(false),
    policy: POLICY,
    publicUrl: null,
  } as unknown as HttpParts;
  addGuard(app, parts);
  addOperatingRoutes(app, parts);
  const ask = async (path: string) => {
    const response = await app.fetch(
      new Request(`http://127.0.0.1:6878${path}`, { headers: { host: "127.0.0.1:6878" } }),
      {
        info: { remote: { host: "127.0.0.1", port: 1 } },
      },
    );
    return [response.status, await response.text()];
  };
  assertEquals(await ask("/readyz"), [200, "ready\n"]);
  isLoaded = () => Promise.resolve(false);
  assertEquals(await ask("/readyz"), [503, "not ready: the database cannot be read\n"]);
  isLoaded = () => new Promise(() => {});
  const asked = ask("/readyz");
  await settle();
  clock.advance(2000);
  assertEquals(await asked, [503, "not ready: the database does not respond\n"]);
  closing.abort();
  assertEquals(await ask("/readyz"), [503, "not ready: the engine is closing\n"]);
  assertEquals(await ask("/healthz"), [200, "ok\n"]);
  assertEquals(clock.pendingTimers, 0);
});

test("the log follows one request and one session, and holds neither the id that controls it nor an address", async () => {
  await playing(async (url, start, { lines }) => {
    const { playback_url, command_url, playback_session_id = "" } = await start("&pid=secret-pid");
    const played = await fetch(playback_url!);
    await played.arrayBuffer();
    await fetch(`${command_url}?method=stop`);
    await until("the end is logged", () => lines.some(({ message }) => message === "a session ended"));
    const session = playback_session_id.slice(0, 8);
    const started = lines.find(({ message }) => message === "a session started")!;
    assertEquals(started["session"], session);
    const request = lines.find((line) => line.message === "request" && line["request"] === started["request"])!;
    assertEquals([request["route"], request["status"]], ["/engine/getstream", 200]);
    assertEquals(lines.find(({ message }) => message === "a session ended")!["reason"], "stop command");
    const read = lines.find((line) => line["request"] === played.headers.get("x-request-id"))!;
    assertEquals(read["route"], "/engine/r/:infohash/:id");
    assertEquals(new Set(lines.filter(({ message }) => message === "request").map((line) => line["request"])).size, 3);
    const all = JSON.stringify(lines);
    assert(!all.includes(playback_session_id) && !all.includes("secret-pid"), all);
    const health = await fetch(`${url}/healthz`);
    assertMatch(health.headers.get("x-request-id")!, /^[0-9a-f]{6}-[0-9a-z]+$/);
    await health.text();
  });
});

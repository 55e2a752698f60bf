/** Addresses in answers as clients behind proxies see them, through the whole engine. */
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/engine.ts";
import { type SeededFiles, seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";

let seeder: SeededFiles;
before(async () => {
  seeder = await seedFiles([{ path: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
});
after(() => seeder?.close());

async function withEngine(options: EngineOptions, work: (engine: Engine) => Promise<void>): Promise<void> {
  const ports = await loadPorts({ log: { level: "error" } });
  const engine = await createEngine(ports, { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, ...options });
  try {
    await work(engine);
  } finally {
    await engine.close();
  }
}

interface Caller {
  readonly base?: string;
  readonly from?: string;
  readonly headers?: Record<string, string>;
}

function ask(engine: Engine, path: string, { base = "http://127.0.0.1:6878", from = "127.0.0.1", headers }: Caller) {
  return engine.fetch(new Request(base + path, { headers: headers ?? {} }), { remote: { host: from, port: 1 } });
}

/** A proxy that speaks for a caller on this machine. */
const PROXIED = { "x-forwarded-for": "127.0.0.1" };

const startPath = (name: string, more: Record<string, string> = {}) =>
  `/${name}?${new URLSearchParams({ magnet: seeder.magnet, format: "json", pid: "1", ...more })}`;

/** Connects the engine to the seeder: only a program on this machine may name a peer on it. */
async function connect(engine: Engine): Promise<void> {
  const answer = await engine.fetch(new Request(`http://127.0.0.1:6878${startPath("engine/getfile")}`));
  assertEquals((await answer.json()).error, null);
}

/** All absolute URLs that a start and its playlist answer. */
async function urlsOf(engine: Engine, caller: Caller, prefix = "engine"): Promise<string[]> {
  const { response, error } = await (await ask(
    engine,
    startPath(`${prefix}/manifest.m3u8`, { use_api_events: "1" }),
    caller,
  )).json();
  assertEquals(error, null);
  const { pathname } = new URL(response.playback_url);
  const path = pathname.slice(pathname.indexOf(`/${prefix}/`));
  const playlist = await (await ask(engine, path, caller)).text();
  const segments = playlist.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  assert(segments.length > 0);
  return [response.playback_url, response.stat_url, response.command_url, response.event_url, ...segments];
}

test("--public-url is the base of every URL, its sub-path included", () =>
  withEngine(
    { publicUrl: "https://tv.example.com/media/", pathAliases: ["tv"], trustProxy: ["127.0.0.7"] },
    async (engine) => {
      await connect(engine);
      for (const prefix of ["engine", "tv"]) {
        for (const caller of [{}, { from: "127.0.0.7", headers: PROXIED, base: "http://tv.example.com" }]) {
          for (const url of await urlsOf(engine, caller, prefix)) {
            assert(url.startsWith(`https://tv.example.com/media/${prefix}/`), url);
          }
        }
      }
      const redirect = await ask(engine, startPath("engine/getstream", { format: "" }), {});
      assert(redirect.headers.get("location")!.startsWith("https://tv.example.com/media/engine/r/"));
    },
  ));

test("X-Forwarded-* counts only from trusted proxies and for allowed hosts", () =>
  withEngine({ trustProxy: ["127.0.0.7"], allowedHosts: ["tv.example.com"] }, async (engine) => {
    await connect(engine);
    const headers = { ...PROXIED, "x-forwarded-host": "tv.example.com", "x-forwarded-proto": "https" };
    const bases = async (caller: Caller) => new Set((await urlsOf(engine, caller)).map((url) => new URL(url).origin));
    assertEquals([...await bases({ from: "127.0.0.7", headers })], ["https://tv.example.com"]);
    const standard = {
      forwarded: 'for=192.0.2.7;host="evil.example.com", for=127.0.0.1;host=tv.example.com;proto=https',
    };
    assertEquals([...await bases({ from: "127.0.0.7", headers: standard })], ["https://tv.example.com"]);
    engine.access.setAllowed("internet", true);
    assertEquals([...await bases({ from: "127.0.0.1", headers })], ["http://127.0.0.1:6878"]);
    assertEquals([...await bases({ from: "127.0.0.1", headers: standard })], ["http://127.0.0.1:6878"]);
    const foreign = { ...headers, "x-forwarded-host": "evil.example.com", "x-forwarded-proto": "javascript" };
    assertEquals([...await bases({ from: "127.0.0.7", headers: foreign })], ["http://127.0.0.1:6878"]);
  }));

test("the address rule uses the caller that a trusted proxy names, and believes no other claim", () =>
  withEngine({ trustProxy: ["127.0.0.7"] }, async (engine) => {
    await connect(engine);
    const statusOf = async (caller: Caller) => {
      const answer = await ask(engine, startPath("engine/getstream"), caller);
      await answer.body?.cancel();
      return answer.status;
    };
    const headers = { "x-forwarded-for": "8.8.8.8" };
    assertEquals(await statusOf({ from: "127.0.0.7", headers }), 403);
    assertEquals(await statusOf({ from: "127.0.0.1", headers }), 403);
    assertEquals(await statusOf({ from: "127.0.0.1", headers: { via: "1.1 proxy" } }), 403);
    assertEquals(await statusOf({ from: "127.0.0.7", headers: { "x-forwarded-for": "8.8.8.8, 127.0.0.1" } }), 200);
    assertEquals(await statusOf({ from: "127.0.0.7", headers: { forwarded: "for=8.8.8.8" } }), 403);
    assertEquals(await statusOf({ from: "127.0.0.7", headers: { forwarded: "for=8.8.8.8, for=127.0.0.1" } }), 200);
    assertEquals(await statusOf({ from: "8.8.8.8", headers: { "x-forwarded-for": "127.0.0.1" } }), 403);
    assertEquals(await statusOf({ base: "http://evil.example.com" }), 421);
  }));

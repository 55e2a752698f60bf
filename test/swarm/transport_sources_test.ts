import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { ServerScope } from "../../src/discovery/types.ts";
import { MillraceError } from "../../src/errors.ts";
import { encodeAnyMetainfo } from "../../src/metainfo/live.ts";
import type { Logger } from "../../src/ports.ts";
import { MetadataBudget } from "../../src/swarm/metadata/metadata-fetch.ts";
import { type TransportFileFetch, TransportSources } from "../../src/swarm/metadata/transport-sources.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent } from "./support/torrent.ts";

const torrent = await makeTorrent({ bytes: 65536, pieceLength: 32768 });
const other = await makeTorrent({ bytes: 65536, pieceLength: 32768, seed: 9 });
const { infohash, infohashHex } = torrent.metainfo;
const magnet = { infohash, infohashHex, name: null, trackers: [], peers: [], webSeeds: [], selectOnly: null };
const good = encodeAnyMetainfo(torrent.metainfo);

type Answer = Uint8Array | MillraceError | "silence";

/** Sources that answer as given, by URL; `asked` has the second and the scope of each request. */
function setUp(answers: Record<string, Answer>, isPublic = false) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const found: string[] = [];
  const told: string[] = [];
  const log: Logger = { log: (_level, _message, fields) => void told.push(JSON.stringify(fields)), child: () => log };
  const budget = new MetadataBudget();
  const fetch: TransportFileFetch = (url, scope, _maxBytes, signal) => {
    asked.push(`${clock.monotonic() / 1000} ${url} ${scope}`);
    const answer = answers[url]!;
    if (answer instanceof MillraceError) return Promise.reject(answer);
    if (answer !== "silence") return Promise.resolve({ bytes: answer, isPublic });
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const sources = new TransportSources({
    infohashHex,
    ports: { clock, log },
    budget,
    fetch,
    found: (metainfo, scope: ServerScope) => found.push(`${metainfo.infohashHex} ${scope}`),
  });
  return { clock, asked, found, told, budget, sources };
}

const gone = new MillraceError("not_found", "gone");

test("TransportSources asks one after the other after 3 s, until one has the torrent's own file", async () => {
  const { clock, asked, found, told, sources } = setUp({
    "http://a/?apikey=secret": gone,
    "http://b/": "silence",
    "http://c/": encodeAnyMetainfo(other.metainfo),
    "http://d/": new TextEncoder().encode("<html>"),
    "http://e/": good,
    "http://f/": good,
  });
  sources.add(["http://a/?apikey=secret", "http://b/", "http://c/"], "any", false);
  sources.add(["http://d/", "http://e/", "http://f/"], "public", false);
  await clock.advanceAsync(2_999);
  assertEquals(asked, []);
  await clock.advanceAsync(1);
  await until("the second source is asked", () => asked.length === 2);
  await clock.advanceAsync(10_000);
  await until("a source has the file", () => found.length > 0);
  assertEquals(asked, [
    "3 http://a/?apikey=secret any",
    "3 http://b/ any",
    "13 http://c/ any",
    "13 http://d/ public",
    "13 http://e/ public",
  ]);
  assertEquals(found, [`${infohashHex} public`]);
  assertEquals([told.length, told.join().includes("secret")], [4, false]);
  await until("the timers are gone", () => clock.pendingTimers === 0);
});

test("TransportSources asks at once when no peers will, and again when the scope of a source widens", async () => {
  const answers: Record<string, Answer> = { "http://10.0.0.1/": new MillraceError("denied", "private") };
  const { clock, asked, found, sources } = setUp(answers, true);
  sources.add(["http://10.0.0.1/"], "public", true);
  await clock.advanceAsync(0);
  sources.add(["http://10.0.0.1/"], "public", true);
  await clock.advanceAsync(0);
  answers["http://10.0.0.1/"] = good;
  sources.add(["http://10.0.0.1/"], "any", true);
  await clock.advanceAsync(0);
  await until("the file is there", () => found.length > 0);
  assertEquals(asked, ["0 http://10.0.0.1/ public", "0 http://10.0.0.1/ any"]);
  assertEquals(found, [`${infohashHex} public`]);
});

test("TransportSources asks at most 16, waits for memory, and ends when it is closed", async () => {
  const urls = Array.from({ length: 40 }, (_, i) => `http://s${i}/`);
  const { clock, asked, budget, sources } = setUp(Object.fromEntries(urls.map((url) => [url, gone])));
  const held = [budget.take(11 << 20), budget.take(10 << 20)];
  sources.add(urls, "any", true);
  await clock.advanceAsync(2_000);
  assertEquals([held, asked.length], [[true, true], 0]);
  budget.give(21 << 20);
  await clock.advanceAsync(1_000);
  await until("the memory is given back", () => clock.pendingTimers === 0 && budget.take(12 << 20));
  assertEquals(asked.length, 16);

  const closed = setUp({ "http://a/": "silence", "http://b/": good });
  closed.sources.add(["http://a/", "http://b/"], "any", true);
  await closed.clock.advanceAsync(0);
  closed.sources.close();
  await closed.clock.advanceAsync(60_000);
  await until("the memory is given back", () => closed.budget.take(12 << 20));
  assertEquals([closed.asked.length, closed.found, closed.told, closed.clock.pendingTimers], [1, [], [], 0]);
});

test("TorrentSwarm gets the metadata, trackers and web seeds from a magnet's source", async () => {
  await Lab.run(async (lab) => {
    const asked: string[] = [];
    const webSeeds = ["http://web.example/x"];
    const bytes = encodeAnyMetainfo({ ...torrent.metainfo, webSeeds });
    const { join } = await lab.node({
      transportFileFetch: (url, scope) => {
        asked.push(`${url} ${scope}`);
        return Promise.resolve({ bytes, isPublic: true });
      },
    });
    const { swarm } = join({ magnet: { ...magnet, sources: ["http://a/"] }, servers: "any", withoutPeers: true });
    const metainfo = await swarm.metadata(soon());
    assertEquals([metainfo.infohashHex, swarm.metainfo?.webSeeds], [infohashHex, webSeeds]);
    assertEquals(swarm.metainfo?.isFromPublic, true);
    join({ magnet: { ...magnet, sources: ["http://b/"] }, withoutPeers: true });
    assertEquals(asked, ["http://a/ any"]);
  });
});

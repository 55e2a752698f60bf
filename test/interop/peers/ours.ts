/** Our engine in the interop tests: playing what others seed, and seeding. */
import { assert, assertEquals } from "@std/assert";
import { parseMagnet } from "../../../src/metainfo/magnet.ts";
import { createEngine, type Engine, type EngineOptions } from "../../../src/engine.ts";
import type { Swarm } from "../../../src/swarm/types.ts";
import { loadPorts } from "../../../platform/detect.ts";
import { type ServedEngine, serveEngine } from "../../support/engine.ts";
import { until } from "../../support/until.ts";
import { assertSame, type Content } from "./content.ts";

/** Longest a test waits for bytes to play. */
const READ_TIMEOUT_MS = 30_000;

/** A selector: parameters of the query, or a transport file. */
export type Selector = Readonly<Record<string, string>> | Uint8Array<ArrayBuffer>;

/** Starts `path` with `format=json`; returns the playback URL. */
export async function startPlayback(
  player: ServedEngine,
  path: string,
  selector: Selector,
  fileIndex = 0,
): Promise<string> {
  const posted = selector instanceof Uint8Array;
  const query = new URLSearchParams({ format: "json", _idx: String(fileIndex), ...(posted ? {} : selector) });
  const response = await fetch(`${player.url}/engine/${path}?${query}`, {
    ...(posted ? { method: "POST", body: selector } : {}),
    signal: AbortSignal.timeout(READ_TIMEOUT_MS),
  });
  const answer = await response.json();
  assertEquals(answer.error, null);
  return answer.response.playback_url;
}

/** The body of a GET, perhaps of a range. */
export async function read(url: string, range?: string): Promise<Uint8Array> {
  const response = await fetch(url, {
    headers: range === undefined ? {} : { range: `bytes=${range}` },
    signal: AbortSignal.timeout(READ_TIMEOUT_MS),
  });
  assertEquals(response.status, range === undefined ? 200 : 206);
  return new Uint8Array(await response.arrayBuffer());
}

/** Plays a range from the middle first, then both files whole, then the MPEG TS of both; all compared with the source. */
export async function playAll(player: ServedEngine, content: Content, selector: Selector): Promise<void> {
  const film = content.files[0]!.bytes;
  const middle = Math.floor(film.length / 2);
  const url = await startPlayback(player, "getfile", selector, indexOf(content, content.files[0]!.path));
  const part = await read(url, `${middle}-${middle + 99_999}`);
  assertSame(part, film.subarray(middle, middle + 100_000), "range from the middle");
  for (const file of content.files) {
    const index = indexOf(content, file.path);
    assertSame(await read(await startPlayback(player, "getfile", selector, index)), file.bytes, file.path);
    const ts = await read(await startPlayback(player, "getstream", selector, index));
    assert(ts.length > 0 && ts.length % 188 === 0, `${file.path}: ${ts.length} bytes of MPEG TS`);
    for (let at = 0; at < ts.length; at += 188) assert(ts[at] === 0x47, `${file.path}: no sync byte at ${at}`);
  }
}

/** Like `Promise.all`, but waits for all of them, so that everything they started is stopped before the test fails. */
export async function allOf(jobs: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(jobs)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/** Gives an engine the address of a peer, as if another peer had named it. */
export function learnPeer(engine: Engine, content: Content, peer: string): void {
  engine.swarms.acquire({ magnet: parseMagnet(content.magnet({ peers: [peer] })) });
}

/** Tools order the files of a torrent as they like. */
function indexOf(content: Content, path: string): number {
  return content.metainfo.files.findIndex((file) => file.path.endsWith(path));
}

/** Runs `body` with an engine that plays. */
export async function withPlayer(options: EngineOptions, body: (player: ServedEngine) => Promise<void>): Promise<void> {
  const player = await serveEngine({ startTimeoutMs: 25_000, ...options });
  try {
    await body(player);
  } finally {
    await player.close();
  }
}

/** An engine that seeds a content. */
export interface OurSeeder {
  readonly engine: Engine;
  readonly swarm: Swarm;
  readonly peer: string;
  /** Goes to a peer, as after hearing of it from somebody. */
  dial(peer: string): void;
  /** Resolves when the engine has announced to every tracker. */
  announced(): Promise<void>;
}

/** Runs `body` with an engine that has all of `content` and seeds it. */
export async function withOurSeeder(
  content: Content,
  options: EngineOptions & { readonly torrentTrackers?: readonly string[] },
  body: (seeder: OurSeeder) => Promise<void>,
): Promise<void> {
  const { torrentTrackers = [], ...engineOptions } = options;
  const engine = await createEngine(await loadPorts(), {
    peerHost: "127.0.0.1",
    peerPort: 0,
    dht: false,
    lsd: false,
    cache: "seed",
    cacheDir: content.directory,
    ...engineOptions,
  });
  try {
    const metainfo = { ...content.metainfo, trackers: torrentTrackers.map((url) => [url]) };
    const { swarm } = engine.swarms.acquire({ metainfo });
    await swarm.completed(AbortSignal.timeout(READ_TIMEOUT_MS));
    await body({
      engine,
      swarm,
      peer: `${options.peerHost ?? "127.0.0.1"}:${engine.peerAddress!.port}`,
      dial: (peer) => learnPeer(engine, content, peer),
      announced: () =>
        until("the tracker was told", () => {
          const trackers = swarm.status().sources.filter((source) => source.kind === "tracker");
          return trackers.length > 0 && trackers.every((source) => source.nextAnnounceMs !== null);
        }),
    });
  } finally {
    await engine.close();
  }
}

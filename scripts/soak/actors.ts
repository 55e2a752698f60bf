/** The users of a soak: each does one thing for a while, leaves, and does it again until the soak ends. */
import { randomBytes } from "node:crypto";
import net from "node:net";
import type { World } from "./world.ts";

/** A viewer reads no faster than this, bytes/s: the machine is to be busy, not full. */
const READING_BYTES_PER_S = 1_500_000;
/** A request without a response for this long has failed, ms: the engine itself gives a start up after 15 s. */
const REQUEST_TIMEOUT_MS = 40_000;
/** A deed is over after this, ms, whatever it waits for. */
const DEED_TIMEOUT_MS = 90_000;
const IMPORTED_ITEMS = 300;

/** What each actor did. */
export interface Tally {
  /** Deeds by actor. */
  readonly done: Map<string, number>;
  /** Deeds that failed, by actor and reason. */
  readonly failed: Map<string, number>;
  bytes: number;
}

/**
 * Runs all actors until `over` fires; resolves when the last has left. `load` over 0 and at most 1: with half the load about
 * half the actors, but one of each kind, rest twice as long between their deeds.
 */
export async function act(world: World, tally: Tally, over: AbortSignal, load = 1): Promise<void> {
  const cast: readonly (readonly [string, number, number, Deed])[] = [
    ["film, MPEG TS", 3, 2, watchFilmTs],
    ["film, HLS", 2, 2, watchFilmHls],
    ["film, as it is", 1, 3, watchFile],
    ["channel, MPEG TS", 2, 2, watchChannelTs],
    ["channel, HLS", 2, 2, watchChannelHls],
    ["magnet that nobody has", 1, 5, startUnknown],
    ["page", 1, 6, loadPage],
    ["import", 1, 15, importList],
    ["broadcast from here", 1, 15, broadcastFromHere],
    ["peer that vanishes", 1, 3, vanish],
    ["seeder killed", 1, 15, (stage) => pick(stage.world.films).restart(1000)],
    ["broadcaster killed", 1, 45, (stage) => pick(stage.world.channels).restart(2000)],
  ];
  await Promise.all(
    cast.flatMap(([name, count, pauseS, deed]) =>
      Array.from({ length: Math.ceil(count * load) }, async () => {
        while (!over.aborted) {
          await pause(pauseS / load * 1000 * (0.5 + Math.random()), over);
          if (!over.aborted) await perform(name, deed, world, tally, over);
        }
      })
    ),
  );
}

/** What a deed works with. */
interface Stage {
  readonly world: World;
  readonly tally: Tally;
  /** Fires when the deed is to end. */
  readonly signal: AbortSignal;
}

type Deed = (stage: Stage) => Promise<void>;

async function perform(name: string, deed: Deed, world: World, tally: Tally, over: AbortSignal): Promise<void> {
  const own = new AbortController();
  const leave = () => own.abort();
  over.addEventListener("abort", leave);
  const timer = setTimeout(leave, DEED_TIMEOUT_MS);
  try {
    await deed({ world, tally, signal: own.signal });
    count(tally.done, name);
  } catch (error) {
    if (!over.aborted) count(tally.failed, `${name}: ${reasonOf(error)}`);
  } finally {
    clearTimeout(timer);
    over.removeEventListener("abort", leave);
    own.abort();
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string } };
  const text = [message ?? String(error), cause?.code].filter(Boolean).join(" ");
  // Numbers and ids differ each time.
  return text.replace(/[0-9a-f]{8,}|127\.0\.0\.1:\d+/g, "…").trim().slice(0, 100);
}

async function watchFilmTs(stage: Stage): Promise<void> {
  const start = await open(stage, `/engine/getstream?${film(stage)}&${viewer()}`);
  const { url, headers } = start;
  await read(stage, start, 4 + Math.random() * 4);
  const sizeBytes = Number(headers.get("content-length") ?? 0);
  for (let seek = 0; seek < 3 && sizeBytes > 0; seek++) {
    const range = `bytes=${Math.floor(Math.random() * sizeBytes)}-`;
    await read(stage, await open(stage, url, { range }), 1 + Math.random() * 3);
  }
}

async function watchFilmHls(stage: Stage): Promise<void> {
  const start = await open(stage, `/engine/manifest.m3u8?${film(stage)}&${viewer()}`);
  const list = segments(await start.text(), start.url);
  for (let segment = 0; segment < 6; segment++) await read(stage, await open(stage, pick(list)), 3);
}

async function watchFile(stage: Stage): Promise<void> {
  const session = await control(stage, `/engine/getfile?${film(stage)}&${viewer()}&format=json&use_api_events=1`);
  await read(stage, await open(stage, session["playback_url"]!), 4);
  await (await open(stage, session["stat_url"]!)).text();
  await (await open(stage, `${session["command_url"]!}?method=stop`)).text();
}

async function watchChannelTs(stage: Stage): Promise<void> {
  const start = await open(stage, `/engine/getstream?magnet=${channel(stage)}&${viewer()}`);
  await read(stage, start, 5 + Math.random() * 15);
}

async function watchChannelHls(stage: Stage): Promise<void> {
  const start = await open(stage, `/engine/manifest.m3u8?magnet=${channel(stage)}&${viewer()}`);
  const seen = new Set<string>();
  let list = await start.text();
  for (let look = 0; look < 8; look++) {
    for (const segment of segments(list, start.url).filter((one) => !seen.has(one))) {
      seen.add(segment);
      await read(stage, await open(stage, segment), 3);
    }
    await pause(1500, stage.signal);
    list = await (await open(stage, start.url)).text();
  }
}

async function startUnknown(stage: Stage): Promise<void> {
  const gone = AbortSignal.timeout(3000);
  const magnet = encodeURIComponent(`magnet:?xt=urn:btih:${randomBytes(20).toString("hex")}&x.pe=127.0.0.1:9`);
  try {
    const given = await fetch(`${stage.world.subject.url}/engine/getstream?magnet=${magnet}`, { signal: gone });
    await given.body?.cancel();
  } catch (error) {
    if (!gone.aborted) throw error;
  }
}

async function loadPage(stage: Stage): Promise<void> {
  for (const path of ["/", "/webui/app.js", "/webui/app.css", "/webui/hls.js", "/docs", "/metrics"]) {
    await (await open(stage, path)).arrayBuffer();
  }
  const infohash = randomBytes(20).toString("hex");
  await call(stage, "set_position", { infohash, position: "12", duration: "100" });
  for (const method of ["get_settings", "get_tasks", "playlist_get", "get_log", "get_network_connection_status"]) {
    await call(stage, method, {});
  }
  await call(stage, "search", { query: `film ${Math.floor(Math.random() * 100)}`, group_by_channels: "1" });
}

async function importList(stage: Stage): Promise<void> {
  let text = "#EXTM3U\n";
  for (let item = 0; item < IMPORTED_ITEMS; item++) {
    const id = randomBytes(20).toString("hex");
    text += `#EXTINF:-1 group-title="Group ${item % 9}",Film ${id.slice(0, 6)}\nmagnet:?xt=urn:btih:${id}\n`;
  }
  const { task_id } = await call(stage, "playlist_import", {}, text) as { task_id: string };
  for (let look = 0; look < 60; look++) {
    const { state } = await call(stage, "get_task", { task_id }) as { state: string };
    if (state !== "running" && state !== "queued") break;
    await pause(250, stage.signal);
  }
  await call(stage, "playlist_clear", {});
}

async function broadcastFromHere(stage: Stage): Promise<void> {
  const name = `own ${Math.floor(Math.random() * 3)}`;
  const sent = await call(stage, "broadcast_start", { source: stage.world.clip, name }) as {
    infohash: string;
    magnet: string;
  };
  try {
    const start = await open(stage, `/engine/getstream?magnet=${encodeURIComponent(sent.magnet)}&${viewer()}`);
    await read(stage, start, 5);
  } finally {
    // Not by the deed's own signal: a broadcast that it leaves running would count in the idle engine.
    await call({ ...stage, signal: new AbortController().signal }, "broadcast_stop", { infohash: sent.infohash });
  }
}

/** A peer that shakes hands, or does not finish it, and is gone. */
async function vanish({ world, signal }: Stage): Promise<void> {
  const { infohash } = pick(world.films);
  const hello = Buffer.concat([
    Buffer.from("\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05", "latin1"),
    Buffer.from(infohash, "hex"),
    Buffer.from("-XX0001-"),
    randomBytes(12),
  ]);
  const socket = net.connect(world.subject.peerPort, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(hello.subarray(0, Math.random() < 0.5 ? 40 : hello.length));
  await pause(Math.random() * 2000, signal);
  socket.destroy();
}

const film = ({ world }: Stage) => `magnet=${encodeURIComponent(pick(world.films).magnet)}`;
const channel = ({ world }: Stage) => encodeURIComponent(pick(world.channels).magnet);
const viewer = () => `pid=${randomBytes(6).toString("hex")}`;

function pick<T>(from: readonly T[]): T {
  if (from.length === 0) throw new Error("nothing to choose from");
  return from[Math.floor(Math.random() * from.length)]!;
}

/** A response that has begun; fails on an error status. */
async function open(stage: Stage, path: string, headers: Record<string, string> = {}): Promise<Response> {
  const url = new URL(path, stage.world.subject.url);
  const timer = new AbortController();
  const leave = () => timer.abort();
  const late = setTimeout(leave, REQUEST_TIMEOUT_MS);
  stage.signal.addEventListener("abort", leave, { once: true });
  try {
    const response = await fetch(url, { headers, signal: timer.signal });
    if (response.status < 400) return response;
    throw new Error(`${response.status} ${(await response.text()).slice(0, 80)}`);
  } finally {
    clearTimeout(late);
  }
}

/** Reads a body for `seconds` at the pace of a viewer, then leaves. */
async function read({ tally, signal }: Stage, response: Response, seconds: number): Promise<void> {
  const reader = response.body!.getReader();
  const began = performance.now();
  let bytes = 0;
  try {
    while (performance.now() - began < seconds * 1000) {
      const { done, value } = await within(reader.read(), seconds * 1000, signal);
      if (done) break;
      bytes += value.length;
      const dueMs = bytes / READING_BYTES_PER_S * 1000 - (performance.now() - began);
      if (dueMs > 10) await pause(dueMs, signal);
    }
  } finally {
    tally.bytes += bytes;
    await reader.cancel().catch(() => {});
  }
}

/** What `reading` returns; the end of the stream when it takes longer than `ms`: a viewer who sees nothing leaves. */
async function within<T>(reading: Promise<{ done: boolean; value?: T }>, ms: number, signal: AbortSignal) {
  const timer = new AbortController();
  const gaveUp = pause(ms, AbortSignal.any([signal, timer.signal])).then(() => ({ done: true, value: undefined }));
  try {
    return await Promise.race([reading, gaveUp]) as
      | { done: true; value?: undefined }
      | { done: false; value: Uint8Array };
  } finally {
    timer.abort();
  }
}

async function control(stage: Stage, path: string): Promise<Record<string, string>> {
  const { response, error } = await (await open(stage, path)).json() as {
    response: Record<string, string> | null;
    error: string | null;
  };
  if (response === null) throw new Error(error ?? "no response");
  return response;
}

async function call(stage: Stage, method: string, params: Record<string, string>, body?: string): Promise<unknown> {
  const { subject } = stage.world;
  const query = new URLSearchParams({ api_version: "3", method, token: subject.token(), ...params });
  const given = await fetch(`${subject.url}/server/api?${query}`, {
    signal: AbortSignal.any([stage.signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
    ...(body === undefined ? {} : { method: "POST", body, headers: { "content-type": "application/octet-stream" } }),
  });
  const { result, error } = await given.json() as { result: unknown; error: { message: string } | null };
  if (error !== null) throw new Error(`${method}: ${error.message}`);
  return result;
}

function segments(list: string, base: string): string[] {
  return list.split("\n").filter((row) => row !== "" && !row.startsWith("#")).map((row) => new URL(row, base).href);
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Resolves after `ms`, or when `signal` fires. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end);
  });
}

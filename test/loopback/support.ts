/** Shared by the loopback tests: noise torrents, starting a file session, reading and comparing. */
import { Buffer } from "node:buffer";
import { assert, assertEquals } from "@std/assert";
import { assertDescribed } from "../support/described.ts";
import type { SeededFiles, SeedOptions, ServedEngine } from "../support/engine.ts";
import { seedFiles } from "../support/engine.ts";
import { noise } from "../support/random.ts";

export const MIB = 1024 * 1024;

/** A seeded single file of reproducible noise. */
export interface SeededNoise extends SeededFiles {
  readonly data: Uint8Array;
}

/** Seeds noise under a name that counts as playable; `getfile` delivers it unchanged. */
export async function seedNoise(bytes: number, options: SeedOptions & { seed?: number } = {}): Promise<SeededNoise> {
  const data = noise(bytes, options.seed ?? 7);
  const { seed: _seed, ...rest } = options;
  const seeded = await seedFiles([{ path: "noise.mkv", bytes: data }], { pieceLengthBytes: 256 * 1024, ...rest });
  return { ...seeded, data };
}

/** A link whose swarm is known only to `peers`. */
export const magnetOf = (metainfo: { infohashHex: string }, ...peers: { host: string; port: number }[]) =>
  `magnet:?xt=urn:btih:${metainfo.infohashHex}${peers.map(({ host, port }) => `&x.pe=${host}:${port}`).join("")}`;

/** The URLs of a start response. */
export interface Started {
  readonly playback_url: string;
  readonly stat_url: string;
  readonly command_url: string;
  readonly event_url?: string;
  readonly infohash: string;
  readonly is_live: number;
  readonly playback_session_id: string;
}

/** A start's answer, failure included. */
export async function ask(
  served: ServedEngine,
  path: string,
  query: Record<string, string>,
): Promise<{ response: Started | null; error: string | null }> {
  const url = `${served.url}/engine/${path}?${new URLSearchParams({ format: "json", ...query })}`;
  const answer = await (await fetch(url)).json();
  assertDescribed(`/engine/${path}`, answer);
  return answer;
}

/** Starts a session; fails the test when it does not start. */
export async function startSession(
  served: ServedEngine,
  path: string,
  query: Record<string, string>,
): Promise<Started> {
  const { response, error } = await ask(served, path, query);
  assertEquals(error, null);
  assert(response !== null);
  return response;
}

/** The `stat` of a session. */
export async function statOf(started: Started): Promise<Record<string, unknown>> {
  const answer = await (await fetch(`${started.stat_url}?skip_player_activity=1`)).json();
  assertDescribed("/engine/stat/{infohash}/{session}", answer);
  return answer.response;
}

/** Sends a command and answers its envelope. */
export async function command(started: Started, query: string): Promise<{ response: unknown; error: unknown }> {
  const answer = await (await fetch(`${started.command_url}?${query}`)).json();
  assertDescribed("/engine/cmd/{infohash}/{session}", answer);
  return answer;
}

/** The bytes `[from, to)` of a URL, or all of it. */
export async function bytesOf(url: string, from?: number, to?: number): Promise<Uint8Array> {
  const response = await fetch(url, from === undefined ? {} : { headers: { range: `bytes=${from}-${to! - 1}` } });
  assert(response.ok, `${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Compares long byte arrays quickly and says where they part. */
export function assertSameBytes(actual: Uint8Array, expected: Uint8Array, what = "bytes"): void {
  assertEquals(actual.length, expected.length, `${what}: length`);
  if (Buffer.compare(actual, expected) === 0) return;
  let at = 0;
  while (actual[at] === expected[at]) at++;
  throw new Error(`${what} differ from ${at} on`);
}

/** Payload that a seeder sent to all its peers. */
export function sentBy(seeder: SeededFiles): number {
  return seeder.engine.swarms.list().reduce((sum, swarm) => sum + swarm.status().uploadedBytes, 0);
}

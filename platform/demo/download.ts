/** `demo --once`: downloads the outputs as a player would and checks them. */
import { concatBytes } from "../../src/bytes/hex.ts";
import { PACKET_BYTES } from "../../src/bytes/ts/packet.ts";
import { MillraceError } from "../../src/errors.ts";
import { TsCheck, type TsSummary } from "./ts-check.ts";

/** Deadline for one whole response, ms: the clip is small and its seeder is on this machine. */
const DOWNLOAD_TIMEOUT_MS = 60_000;

/** Largest playlist, bytes. */
const MAX_PLAYLIST_BYTES = 1 << 20;

/** What an output delivered. */
export interface Downloaded extends TsSummary {
  readonly bytes: number;
  /** 1 for the TS output. */
  readonly segments: number;
}

async function get(url: string): Promise<Response> {
  const response = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
  if (response.ok) return response;
  const text = (await response.text()).slice(0, 200);
  throw new MillraceError("connection_failed", `${new URL(url).pathname} answered ${response.status}: ${text}`);
}

async function feed(check: TsCheck, response: Response): Promise<number> {
  let bytes = 0;
  for await (const chunk of response.body!) {
    check.push(chunk);
    bytes += chunk.length;
  }
  return bytes;
}

/** Downloads and checks the whole TS output; its length must be the announced one. */
export async function downloadTs(url: string): Promise<Downloaded> {
  const check = new TsCheck();
  const response = await get(url);
  const announced = response.headers.get("content-length");
  const bytes = await feed(check, response);
  if (announced !== null && Number(announced) !== bytes) {
    throw new MillraceError("bad_media", `the TS output has ${bytes} bytes, not ${announced} as announced`);
  }
  return { ...check.finish(), bytes, segments: 1 };
}

/** Downloads and checks the TS output of a broadcast for `watchMs`. */
export async function watchTs(url: string, watchMs: number): Promise<Downloaded> {
  const check = new TsCheck();
  const reader = (await get(url)).body!.getReader();
  const endMs = performance.now() + watchMs;
  let bytes = 0;
  // Check whole packets only: reading stops at any point of the stream.
  let rest: Uint8Array = new Uint8Array();
  while (performance.now() < endMs) {
    const { done, value } = await reader.read();
    if (done) throw new MillraceError("bad_media", "the broadcast ended");
    bytes += value.length;
    rest = concatBytes([rest, value]);
    const whole = rest.length - rest.length % PACKET_BYTES;
    check.push(rest.subarray(0, whole));
    rest = rest.subarray(whole);
  }
  await reader.cancel();
  return { ...check.finish(), bytes, segments: 1 };
}

/** Downloads the whole HLS output and checks all its segments as one stream. */
export async function downloadHls(url: string): Promise<Downloaded> {
  const response = await get(url);
  const playlist = await response.text();
  if (playlist.length > MAX_PLAYLIST_BYTES || !playlist.startsWith("#EXTM3U") || !playlist.includes("#EXT-X-ENDLIST")) {
    throw new MillraceError("bad_media", "the HLS playlist is not a complete one");
  }
  const check = new TsCheck();
  let bytes = 0;
  let segments = 0;
  for (const line of playlist.split(/\r?\n/)) {
    if (line === "" || line.startsWith("#")) continue;
    bytes += await feed(check, await get(new URL(line, response.url).href));
    segments++;
  }
  return { ...check.finish(), bytes, segments };
}

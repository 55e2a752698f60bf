/** Plays files through a swarm of two engines on loopback: as MPEG TS, as HLS and by byte ranges, all over HTTP. */
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import path from "node:path";
import { type ServedEngine, serveEngine } from "../../test/support/engine.ts";
import { createTransportFile, hashPieces } from "../../src/metainfo/create.ts";

/** Small pieces: a file of 200 KB has a dozen, which come in any order. */
const PIECE_BYTES = 16 * 1024;
/** Ranges asked for. */
const RANGES = 12;
/** Longest range, bytes. */
const MAX_RANGE_BYTES = 200_000;
/** Playing one file takes no longer, ms. */
const PLAY_TIMEOUT_MS = 60_000;

/** Parameters that ask for AAC in place of all other sound. */
const AS_AAC = { transcode_audio: "1", transcode_mp3: "1", transcode_ac3: "1" };

/** What a file became. */
export interface Played {
  /** The MPEG TS. */
  readonly ts: Uint8Array;
  /** In the order of the playlist, fetched in another one. */
  readonly segments: readonly Uint8Array[];
  /** EXTINF of each, ms. */
  readonly extinfMs: readonly number[];
  /** Ranges of the TS that differ from the whole. */
  readonly wrongRanges: readonly string[];
}

/** Numbers in [0, 1) that follow from `name` (Park and Miller's generator). */
function numbers(name: string): () => number {
  let state = [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) % 0x7ffffffe, 7) + 1;
  return () => (state = state * 48271 % 0x7fffffff) / 0x7fffffff;
}

/** `items` in an order that `random` chooses. */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items.map((item) => ({ item, place: random() })).sort((a, b) => a.place - b.place).map(({ item }) => item);
}

async function bytesOf(url: string, signal: AbortSignal, range?: readonly [start: number, end: number]) {
  const headers: HeadersInit = range === undefined ? {} : { range: `bytes=${range[0]}-${range[1] - 1}` };
  const response = await fetch(url, { headers, signal });
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (response.status !== (range === undefined ? 200 : 206)) {
    throw new Error(`${response.status}: ${new TextDecoder().decode(bytes.subarray(0, 300))}`);
  }
  return { bytes, hasRanges: response.headers.get("accept-ranges") === "bytes" };
}

interface Session {
  readonly playback_url: string;
  readonly command_url: string;
}

/** Segments of a playlist, fetched in an order that `random` chooses. */
async function playHls(url: string, signal: AbortSignal, random: () => number) {
  const lines = new TextDecoder().decode((await bytesOf(url, signal)).bytes).split("\n").map((line) => line.trim());
  const extinfMs = lines.filter((line) => line.startsWith("#EXTINF:")).map((line) => 1000 * parseFloat(line.slice(8)));
  const addresses = lines.filter((line) => line !== "" && !line.startsWith("#"));
  const segments: Uint8Array[] = [];
  for (const [i, address] of shuffled([...addresses.entries()], random)) {
    segments[i] = (await bytesOf(new URL(address, url).href, signal)).bytes;
  }
  return { extinfMs, segments };
}

/** Ranges of a TS of `sizeBytes`, with the bytes of each; none where it is played without a length. */
async function playRanges(url: string, signal: AbortSignal, random: () => number) {
  const response = await fetch(url, { method: "HEAD", signal });
  const sizeBytes = Number(response.headers.get("content-length") ?? 0);
  const ranges: { start: number; bytes: Uint8Array }[] = [];
  if (response.headers.get("accept-ranges") !== "bytes") return ranges;
  for (let i = 0; i < RANGES; i++) {
    const start = Math.floor(random() * sizeBytes);
    const end = Math.min(sizeBytes, start + 1 + Math.floor(random() * MAX_RANGE_BYTES));
    ranges.push({ start, bytes: (await bytesOf(url, signal, [start, end])).bytes });
  }
  return ranges;
}

/** One engine that seeds files below a folder, and one that plays them; both serve any number of files. */
export class SwarmPlayer {
  readonly #folder: string;
  readonly #seeder: ServedEngine;
  readonly #player: ServedEngine;

  private constructor(folder: string, seeder: ServedEngine, player: ServedEngine) {
    this.#folder = folder;
    this.#seeder = seeder;
    this.#player = player;
  }

  /** Starts both engines; files to play are directly in folders of `folder`. */
  static async start(folder: string): Promise<SwarmPlayer> {
    const seeder = await serveEngine({ cache: "seed", cacheDir: folder });
    // Nothing is left of a file when its last session ends: the next output fetches it again.
    const player = await serveEngine({ swarmLingerMs: 0, transcodeAudio: "never" });
    return new SwarmPlayer(folder, seeder, player);
  }

  /**
   * Plays `file` in all three ways, in an order that follows from its name; `asAac`: with its sound as AAC. Rejects where the
   * engine refuses it.
   */
  async play(file: string, asAac = false): Promise<Played> {
    const signal = AbortSignal.timeout(PLAY_TIMEOUT_MS);
    const bytes = new Uint8Array(readFileSync(file));
    const { metainfo } = await createTransportFile({
      name: path.relative(this.#folder, path.dirname(file)),
      pieceLengthBytes: PIECE_BYTES,
      pieceHashes: await hashPieces(
        bytes.length,
        PIECE_BYTES,
        (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
      ),
      files: [{ path: path.basename(file), sizeBytes: bytes.length }],
    });
    const lease = this.#seeder.engine.swarms.acquire({ metainfo });
    try {
      await lease.swarm.completed(signal);
      const magnet = `magnet:?xt=urn:btih:${metainfo.infohashHex}&x.pe=${this.#seeder.peer}`;
      const random = numbers(path.basename(file));
      const query = { magnet, format: "json", _idx: "0", ...(asAac ? AS_AAC : {}) };
      const played: { ts?: Uint8Array; hls?: Awaited<ReturnType<typeof playHls>> } = {};
      let ranges: Awaited<ReturnType<typeof playRanges>> = [];
      const ways = [
        () =>
          this.#session("getstream", query, signal, async (url) => {
            played.ts = (await bytesOf(url, signal)).bytes;
          }),
        () =>
          this.#session("manifest.m3u8", query, signal, async (url) => {
            played.hls = await playHls(url, signal, random);
          }),
        () =>
          this.#session("getstream", query, signal, async (url) => {
            ranges = await playRanges(url, signal, random);
          }),
      ];
      for (const way of shuffled(ways, random)) await way();
      const ts = played.ts!;
      const wrongRanges = ranges
        .filter(({ start, bytes }) => Buffer.compare(bytes, ts.subarray(start, start + bytes.length)) !== 0)
        .map(({ start, bytes }) => `${start}–${start + bytes.length}`);
      return { ts, ...played.hls!, wrongRanges };
    } finally {
      lease.release();
    }
  }

  /** Starts a session by `query`, hands its address to `play`, and stops it. */
  async #session(
    output: string,
    query: Record<string, string>,
    signal: AbortSignal,
    play: (url: string) => Promise<void>,
  ) {
    const answer = await fetch(`${this.#player.url}/engine/${output}?${new URLSearchParams(query)}`, { signal });
    const { response, error } = await answer.json() as { response: Session | null; error: string | null };
    if (response === null) throw new Error(`${answer.status}: ${error}`);
    try {
      await play(response.playback_url);
    } finally {
      await (await fetch(`${response.command_url}?method=stop`, { signal })).arrayBuffer();
    }
  }

  /** Ends both engines. */
  async close(): Promise<void> {
    await this.#player.close();
    await this.#seeder.close();
  }
}

/** Content of the interop tests: a directory with two playable files, and torrents of it. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "@std/assert";
import { choosePieceLength, createTransportFile, hashPieces } from "../../../src/metainfo/create.ts";
import { magnetLink } from "../../../src/metainfo/live.ts";
import { parseTransportFile } from "../../../src/metainfo/transport-file.ts";
import type { Metainfo } from "../../../src/metainfo/types.ts";
import { temporaryDirectory } from "../../support/engine.ts";

const MIB = 2 ** 20;
const PACK = "pack";

/** One file of the pack. */
export interface ContentFile {
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A directory of content and its torrent. */
export interface Content {
  /** Holds the pack under its name. */
  readonly directory: string;
  /** The large one first. */
  readonly files: readonly ContentFile[];
  readonly torrentPath: string;
  readonly transportFile: Uint8Array<ArrayBuffer>;
  readonly metainfo: Metainfo;
  magnet(more?: { peers?: readonly string[]; trackers?: readonly string[] }): string;
  remove(): Promise<void>;
}

/** The whole of the large file by default: pieces enough for several peers, small enough for a busy machine. */
const FILM_MIB = 5;

/**
 * An MP4 that plays (a fixture with a box of random bytes that players skip) and a Matroska fixture. `makeTorrent` makes
 * the torrent with another project's tool. Another `name` gives another infohash.
 */
export async function makeContent(
  options: {
    filmMib?: number;
    webSeeds?: readonly string[];
    pieceLengthBytes?: number;
    makeTorrent?: (source: string, target: string) => Promise<void>;
  } = {},
): Promise<Content> {
  const { path: directory, remove } = await temporaryDirectory();
  try {
    const clip = await fixture("mp4-front.mp4");
    const files: ContentFile[] = [
      { path: "film.mp4", bytes: withFreeBox(clip, (options.filmMib ?? FILM_MIB) * MIB) },
      { path: "clip.mkv", bytes: await fixture("mkv-two-audio.mkv") },
    ];
    await mkdir(join(directory, PACK));
    for (const file of files) await writeFile(join(directory, PACK, file.path), file.bytes);
    const torrentPath = join(directory, "pack.torrent");
    if (options.makeTorrent === undefined) {
      await writeFile(torrentPath, await ourTorrent(files, options));
    } else await options.makeTorrent(join(directory, PACK), torrentPath);
    return { ...await contentOf(directory, files, torrentPath), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The content of a pack in `directory`, and of its transport file. */
export async function contentOf(
  directory: string,
  files: readonly ContentFile[],
  torrentPath: string,
): Promise<Content> {
  const transportFile = new Uint8Array(await readFile(torrentPath));
  const metainfo = await parseTransportFile(transportFile);
  return {
    directory,
    files,
    torrentPath,
    transportFile,
    metainfo,
    magnet({ peers = [], trackers = [] } = {}) {
      const more = [...trackers.map((url) => `&tr=${encodeURIComponent(url)}`), ...peers.map((at) => `&x.pe=${at}`)];
      return magnetLink({ ...metainfo, trackers: [] }) + more.join("");
    },
    remove: () => Promise.resolve(),
  };
}

/** Fails unless the pack in `directory` equals the content. */
export async function assertFetched(content: Content, directory: string): Promise<void> {
  for (const { path, bytes } of content.files) {
    assertSame(new Uint8Array(await readFile(join(directory, PACK, path))), bytes, path);
  }
}

/** Like `assertEquals`, but fast for megabytes and without printing them. */
export function assertSame(actual: Uint8Array, expected: Uint8Array, what: string): void {
  assert(actual.length === expected.length, `${what}: ${actual.length} bytes instead of ${expected.length}`);
  assert(Buffer.compare(actual, expected) === 0, `${what}: the bytes differ`);
}

async function fixture(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await readFile(new URL(`../../fixtures/${name}`, import.meta.url)));
}

/** ISO/IEC 14496-12, 8.1.2: a `free` box may stand anywhere and is skipped. */
function withFreeBox(clip: Uint8Array, boxBytes: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(clip.length + boxBytes);
  all.set(clip);
  const box = all.subarray(clip.length);
  for (let at = 8; at < box.length; at += 65_536) {
    crypto.getRandomValues(box.subarray(at, Math.min(at + 65_536, box.length)));
  }
  new DataView(box.buffer, box.byteOffset).setUint32(0, boxBytes);
  box.set(new TextEncoder().encode("free"), 4);
  return all;
}

async function ourTorrent(
  files: readonly ContentFile[],
  options: { webSeeds?: readonly string[]; pieceLengthBytes?: number },
): Promise<Uint8Array> {
  const all = Buffer.concat(files.map((file) => file.bytes));
  const { webSeeds = [], pieceLengthBytes = choosePieceLength(all.length) } = options;
  const read = (offset: number, length: number) => Promise.resolve(all.subarray(offset, offset + length));
  const pieceHashes = await hashPieces(all.length, pieceLengthBytes, read);
  const { bytes } = await createTransportFile({
    name: PACK,
    pieceLengthBytes,
    pieceHashes,
    files: files.map((file) => ({ path: file.path, sizeBytes: file.bytes.length })),
    webSeeds,
  });
  return bytes;
}

/**
 * Runs `body` with a content. What it registers with `cleanup` runs afterwards, the last first, also when it fails; then
 * the content is removed.
 */
export async function withContent(
  options: Parameters<typeof makeContent>[0],
  body: (content: Content, cleanup: (step: () => Promise<void>) => void) => Promise<void>,
): Promise<void> {
  const content = await makeContent(options);
  const steps: (() => Promise<void>)[] = [];
  try {
    await body(content, (step) => void steps.push(step));
  } finally {
    for (const step of steps.reverse()) await step().catch(() => {});
    await content.remove();
  }
}

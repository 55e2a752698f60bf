/** Engines for tests: a served one that plays, and one that seeds given files. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/engine.ts";
import { choosePieceLength, createTransportFile, hashPieces } from "../../src/metainfo/create.ts";
import { createFromFiles, type TorrentFormat } from "../../src/metainfo/create-from-files.ts";
import type { Ports } from "../../src/ports.ts";
import type { Metainfo } from "../../src/metainfo/types.ts";
import { CheckedAnswers } from "./checked-answers.ts";

/** A directory that is removed with everything in it. */
export async function temporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "millrace-test-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/**
 * Address at which engines are served. Browsers hold pages of 127.0.0.1 for secure, and give them more than pages that come
 * from anywhere else over plain http: the browser suite runs at another address of this machine, too.
 */
export const PAGE_HOST = process.env["MILLRACE_PAGE_HOST"] ?? "127.0.0.1";

/** An engine with an HTTP server on a free port. Its answers are compared with `/openapi.json`. */
export interface ServedEngine {
  readonly engine: Engine;
  /** `http://127.0.0.1:<port>`, or the address that `MILLRACE_PAGE_HOST` names. */
  readonly url: string;
  readonly peer: string;
  close(): Promise<void>;
}

/** Options for tests: no DHT, no LSD, no players, free ports, RAM; only what the test names is used. */
const ALONE: EngineOptions = {
  peerHost: "127.0.0.1",
  peerPort: 0,
  dht: false,
  lsd: false,
  playerDiscovery: false,
  cache: "ram",
};

/** Starts an engine and serves it. */
export async function serveEngine(options: EngineOptions = {}): Promise<ServedEngine> {
  return await serveOn(await loadPorts(), options);
}

/** As `serveEngine`, on ports of the test's own. */
export async function serveOn(ports: Ports, options: EngineOptions): Promise<ServedEngine> {
  const engine = await createEngine(ports, { ...ALONE, ...options });
  const answers = new CheckedAnswers();
  const server = await ports.http.serve(
    { host: PAGE_HOST, port: 0 },
    async (request, info) => answers.take(request, await engine.fetch(request, info)),
  );
  return {
    engine,
    url: `http://${PAGE_HOST}:${server.address.port}`,
    peer: `127.0.0.1:${engine.peerAddress?.port}`,
    async close() {
      await engine.close();
      await server.close(0);
      await answers.close();
    },
  };
}

/** Files being seeded by an engine of their own. */
export interface SeededFiles {
  readonly metainfo: Metainfo;
  readonly transportFile: Uint8Array;
  /** With the seeder as `x.pe`. */
  readonly magnet: string;
  readonly peer: string;
  readonly engine: Engine;
  /** Directory that holds the content under its torrent name. */
  readonly directory: string;
  close(): Promise<void>;
}

/** Options of `seedFiles`. */
export interface SeedOptions {
  readonly name?: string;
  readonly pieceLengthBytes?: number;
  /** Of other versions than 1: without `pieceLengthBytes`, trackers and `isPrivate`. Default "v1". */
  readonly format?: TorrentFormat;
  readonly trackers?: readonly (readonly string[])[];
  readonly isPrivate?: boolean;
  readonly engine?: EngineOptions;
}

/** Its files are hashed by then, ms, on a machine that is busy with other tests too. */
const HASHED_MS = 60_000;

/** Makes a torrent of `files` (one file: single-file torrent) and seeds it. */
export async function seedFiles(
  files: readonly { path: string; bytes: Uint8Array }[],
  options: SeedOptions = {},
): Promise<SeededFiles> {
  const directory = await temporaryDirectory();
  const single = files.length === 1 && options.name === undefined;
  const name = single ? files[0]!.path : options.name ?? "pack";
  const totalBytes = files.reduce((sum, file) => sum + file.bytes.length, 0);
  const pieceLengthBytes = options.pieceLengthBytes ?? choosePieceLength(totalBytes);
  const all = new Uint8Array(totalBytes);
  let at = 0;
  for (const file of files) {
    all.set(file.bytes, at);
    at += file.bytes.length;
    const path = single ? join(directory.path, name) : join(directory.path, name, file.path);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, file.bytes);
  }
  const ports = await loadPorts();
  const describeV1 = async () => {
    const pieceHashes = await hashPieces(
      totalBytes,
      pieceLengthBytes,
      (offset, length) => Promise.resolve(all.subarray(offset, offset + length)),
    );
    return await createTransportFile({
      name,
      pieceLengthBytes,
      pieceHashes,
      ...(single
        ? { sizeBytes: totalBytes }
        : { files: files.map(({ path, bytes }) => ({ path, sizeBytes: bytes.length })) }),
      trackers: options.trackers ?? [],
      isPrivate: options.isPrivate ?? false,
    });
  };
  const describeOther = async (format: TorrentFormat) => {
    const sources = files.map(({ path, bytes }) => ({
      path,
      sizeBytes: bytes.length,
      read: (offset: number, length: number) => Promise.resolve(bytes.subarray(offset, offset + length)),
    }));
    return await createFromFiles({ format, name, isFolder: !single, files: sources }, ports.sha256);
  };
  const { format = "v1" } = options;
  const { bytes: transportFile, metainfo } = await (format === "v1" ? describeV1() : describeOther(format));
  const engine = await createEngine(ports, {
    ...ALONE,
    cache: "seed",
    cacheDir: directory.path,
    ...options.engine,
  });
  const lease = engine.swarms.acquire({ metainfo });
  await lease.swarm.completed(AbortSignal.timeout(HASHED_MS));
  const peer = `127.0.0.1:${engine.peerAddress?.port}`;
  return {
    metainfo,
    transportFile,
    magnet: `magnet:?xt=urn:btih:${metainfo.infohashHex}&dn=${encodeURIComponent(name)}&x.pe=${peer}`,
    peer,
    engine,
    directory: directory.path,
    async close() {
      await engine.close();
      await directory.remove();
    },
  };
}

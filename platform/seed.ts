/** `seed`: offers a file or a folder to peers and prints its address. The demo's second process; no discovery, no HTTP. */
import path from "node:path";
import process from "node:process";
import type { Config } from "../src/config.ts";
import { peerHostFor } from "../src/discovery/peer-host.ts";
import { MillraceError } from "../src/errors.ts";
import type { FilePort, Ports } from "../src/ports.ts";
import { HandleCache } from "../src/storage/handle-cache.ts";
import { createSeedCache } from "../src/storage/seed-cache.ts";
import { createSwarmManager } from "../src/swarm/manager.ts";
import type { CreatedTransportFile } from "../src/metainfo/create.ts";
import { createFromFiles, type TorrentFormat } from "../src/metainfo/create-from-files.ts";
import { MAX_FILES, MAX_PATH_COMPONENTS } from "../src/metainfo/limits.ts";
import { magnetLink } from "../src/metainfo/live.ts";
import type { PlacedFile } from "../src/metainfo/tree-order.ts";
import { createPeerId } from "../src/wire/peer-id.ts";
import { print } from "./host.ts";
import { ProgressLine } from "./progress-line.ts";

/** What `seed` prints, one JSON line. */
export interface SeedLine {
  /** 40 hex characters; of a torrent of version 2 alone the first 40 of 64. */
  readonly infohash: string;
  /** Of the file or folder. */
  readonly name: string;
  /** Names it in all its versions, and the peer. */
  readonly magnet: string;
  /** `host:port` for peers. */
  readonly peer: string;
}

/** Seeds `config.file` until `stopped` resolves or the parent process is gone. */
export async function runSeed(config: Config, ports: Ports, stopped: Promise<void>): Promise<number> {
  if (config.file === null) throw new MillraceError("config", "seed needs --file");
  const file = path.resolve(config.file).replaceAll("\\", "/");
  const { metainfo, bytes } = await describe(ports, file, config.format);
  if (config.transportFile !== null) await ports.files.writeFile(path.resolve(config.transportFile), bytes);
  const directory = path.posix.dirname(file);
  const cache = createSeedCache({ files: ports.files, directory, clock: ports.clock, log: ports.log });
  const swarms = await createSwarmManager(ports, {
    cache,
    peerId: createPeerId(),
    peerHost: await peerHostFor({ named: config.peerHost, isFree: true }, ports.udp),
    peerPort: config.peerPort,
    uploadLimitBytesPerSecond: config.uploadLimitBytesPerSecond,
    utp: config.utp,
  });
  const lease = swarms.acquire({ metainfo });
  const address = swarms.peerAddress!;
  const host = address.host === "0.0.0.0" || address.host === "::" ? "127.0.0.1" : address.host;
  const peer = `${host}:${address.port}`;
  const { infohashHex: infohash, name } = metainfo;
  const line: SeedLine = { infohash, name, peer, magnet: `${magnetLink(metainfo)}&x.pe=${peer}` };
  print(JSON.stringify(line));
  await Promise.race([stopped, parentGone()]);
  lease.release();
  await swarms.close();
  await cache.close();
  return 0;
}

/** The transport file of the file or folder at `shared`, an absolute path. */
async function describe(ports: Ports, shared: string, format: TorrentFormat): Promise<CreatedTransportFile> {
  const { isDirectory, sizeBytes } = await ports.files.info(shared);
  const name = path.posix.basename(shared);
  const found = isDirectory ? await filesBelow(ports.files, shared) : [{ path: name, sizeBytes }];
  const directory = isDirectory ? shared : path.posix.dirname(shared);
  const handles = new HandleCache(ports.files);
  const line = new ProgressLine(process.stderr);
  const total = found.reduce((sum, file) => sum + file.sizeBytes, 0) * (format === "hybrid" ? 2 : 1);
  let done = 0;
  const files = found.map((file) => ({
    ...file,
    read: async (offset: number, length: number) => {
      line.show("hashing", done, total);
      done += length;
      const bytes = new Uint8Array(length);
      const at = `${directory}/${file.path}`;
      return bytes.subarray(0, await handles.use(at, "read", (handle) => handle.read(bytes, offset)));
    },
  }));
  try {
    return await createFromFiles({ format, name, isFolder: isDirectory, files }, ports.sha256);
  } finally {
    line.end();
    for (const { path } of files) handles.forget(`${directory}/${path}`);
    await handles.settled();
  }
}

/** The files below `directory`, by their paths from there. */
async function filesBelow(files: FilePort, directory: string): Promise<PlacedFile[]> {
  const found: PlacedFile[] = [];
  const walk = async (below: readonly string[]) => {
    if (below.length >= MAX_PATH_COMPONENTS) throw new MillraceError("config", "a folder lies too deep in others");
    for (const name of await files.list([directory, ...below].join("/"))) {
      const names = [...below, name];
      const { isDirectory, sizeBytes } = await files.info([directory, ...names].join("/"));
      if (isDirectory) await walk(names);
      else found.push({ path: names.join("/"), sizeBytes });
      if (found.length > MAX_FILES) throw new MillraceError("config", `the folder has more than ${MAX_FILES} files`);
    }
  };
  await walk([]);
  return found;
}

/** Resolves when the parent process is gone: standard input then ends, however the parent died. */
function parentGone(): Promise<void> {
  return new Promise((resolve) => {
    process.stdin.on("end", () => resolve());
    process.stdin.on("error", () => resolve());
    process.stdin.resume();
  });
}

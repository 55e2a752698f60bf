/** `seed`: offers one file to peers and prints its address. The demo's second process; no discovery, no HTTP. */
import path from "node:path";
import process from "node:process";
import type { Config } from "../src/config.ts";
import { MillraceError } from "../src/errors.ts";
import type { Ports } from "../src/ports.ts";
import { createSeedCache } from "../src/storage/seed-cache.ts";
import { createSwarmManager } from "../src/swarm/manager.ts";
import { choosePieceLength, createTransportFile, hashPieces } from "../src/metainfo/create.ts";
import type { Metainfo } from "../src/metainfo/types.ts";
import { createPeerId } from "../src/wire/peer-id.ts";
import { print } from "./host.ts";
import { ProgressLine } from "./progress-line.ts";

/** What `seed` prints, one JSON line. */
export interface SeedLine {
  /** 40 hex characters. */
  readonly infohash: string;
  /** File name. */
  readonly name: string;
  /** `host:port` for peers. */
  readonly peer: string;
}

/** Seeds `config.file` until `stopped` resolves or the parent process is gone. */
export async function runSeed(config: Config, ports: Ports, stopped: Promise<void>): Promise<number> {
  if (config.file === null) throw new MillraceError("config", "seed needs --file");
  const file = path.resolve(config.file).replaceAll("\\", "/");
  const metainfo = await describe(ports, file);
  const directory = path.posix.dirname(file);
  const cache = createSeedCache({ files: ports.files, directory, clock: ports.clock, log: ports.log });
  const swarms = await createSwarmManager(ports, {
    cache,
    peerId: createPeerId(),
    peerHost: config.peerHost,
    peerPort: config.peerPort,
    uploadLimitBytesPerSecond: config.uploadLimitBytesPerSecond,
    utp: config.utp,
  });
  const lease = swarms.acquire({ metainfo });
  const address = swarms.peerAddress!;
  const host = address.host === "0.0.0.0" || address.host === "::" ? "127.0.0.1" : address.host;
  const line: SeedLine = { infohash: metainfo.infohashHex, name: metainfo.name, peer: `${host}:${address.port}` };
  print(JSON.stringify(line));
  await Promise.race([stopped, parentGone()]);
  lease.release();
  await swarms.close();
  await cache.close();
  return 0;
}

async function describe(ports: Ports, file: string): Promise<Metainfo> {
  const handle = await ports.files.open(file, "read");
  const line = new ProgressLine(process.stderr);
  try {
    const { sizeBytes } = await handle.info();
    const pieceLengthBytes = choosePieceLength(sizeBytes);
    const pieceHashes = await hashPieces(sizeBytes, pieceLengthBytes, async (offset, length) => {
      line.show("hashing", offset, sizeBytes);
      const bytes = new Uint8Array(length);
      return bytes.subarray(0, await handle.read(bytes, offset));
    });
    const name = path.posix.basename(file);
    return (await createTransportFile({ name, sizeBytes, pieceLengthBytes, pieceHashes })).metainfo;
  } finally {
    line.end();
    await handle.close();
  }
}

/** Resolves when the parent process is gone: standard input then ends, however the parent died. */
function parentGone(): Promise<void> {
  return new Promise((resolve) => {
    process.stdin.on("end", () => resolve());
    process.stdin.on("error", () => resolve());
    process.stdin.resume();
  });
}

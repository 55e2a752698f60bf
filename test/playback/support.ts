/** A swarm made of bytes in memory, for tests of what stands on swarms. */
import { MemorySource, type ReadOptions } from "../../src/bytes/source.ts";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { Swarm, SwarmLease, SwarmManager, SwarmReader, SwarmStatus, SwarmTarget } from "../../src/swarm/types.ts";
import type { Metainfo, MetainfoFile } from "../../src/transport/types.ts";

/** A torrent's metadata as far as playback looks at it. */
export function fakeMetainfo(
  files: readonly { name: string; bytes: Uint8Array }[],
  infohashHex = "1".repeat(40),
): Metainfo {
  let offset = 0;
  const list: MetainfoFile[] = files.map(({ name, bytes }, index) => {
    const file = { index, path: name, name, sizeBytes: bytes.length, offset, padding: false };
    offset += bytes.length;
    return file;
  });
  return {
    infohash: new Uint8Array(20).fill(0x11),
    infohashHex,
    name: files[0]?.name ?? "empty",
    pieceLengthBytes: 16384,
    pieceCount: Math.ceil(offset / 16384),
    totalBytes: offset,
    pieceHashes: new Uint8Array(20 * Math.ceil(offset / 16384)),
    files: list,
    isPrivate: false,
    infoBytes: new Uint8Array(),
    trackers: [],
    webSeeds: [],
    nodes: [],
  };
}

/** A swarm whose files are all there, unless `silent`: then every read and the metadata wait for ever. */
export class FakeSwarm implements Swarm {
  readonly infohashHex: string;
  metainfo: Metainfo | null;
  readonly readers = new Set<SwarmReader>();
  silent: boolean;
  peers = 3;
  readonly #files: readonly { name: string; bytes: Uint8Array }[];
  readonly #known: Metainfo;

  constructor(files: readonly { name: string; bytes: Uint8Array }[], options: { silent?: boolean } = {}) {
    this.#files = files;
    this.#known = fakeMetainfo(files);
    this.infohashHex = this.#known.infohashHex;
    this.silent = options.silent ?? false;
    this.metainfo = this.silent ? null : this.#known;
  }

  metadata(signal: AbortSignal): Promise<Metainfo> {
    return this.silent ? waitForAbort(signal) : Promise.resolve(this.#known);
  }

  openReader(fileIndex: number): SwarmReader {
    const source = new MemorySource(this.#files[fileIndex]!.bytes);
    const closing = new AbortController();
    const reader: SwarmReader = {
      fileIndex,
      sizeBytes: source.sizeBytes,
      setBitrate() {},
      availableFrom: (offset, max) => Math.min(max, source.sizeBytes - offset),
      stallReason: () => this.silent ? "no_peers" : null,
      read: (offset: number, length: number, options: ReadOptions) =>
        this.silent
          ? waitForAbort(AbortSignal.any([options.signal, closing.signal]))
          : source.read(offset, length, options),
      close: () => {
        closing.abort(new MillraceError("closed", "the reader was closed"));
        this.readers.delete(reader);
      },
    };
    this.readers.add(reader);
    return reader;
  }

  setDownloadAll(): void {}
  completed(): Promise<void> {
    return Promise.resolve();
  }

  status(): SwarmStatus {
    return {
      peers: this.peers,
      downloadBytesPerSecond: 204_800,
      uploadBytesPerSecond: 1024,
      downloadedBytes: 5000,
      uploadedBytes: 70,
      wastedBytes: 0,
      havePieces: 1,
      sources: [],
      message: null,
    };
  }
}

/** Hands out one swarm and counts the leases on it. */
export class FakeSwarms implements SwarmManager {
  leases = 0;
  readonly peerAddress = null;
  readonly #swarm: Swarm;

  constructor(swarm: Swarm) {
    this.#swarm = swarm;
  }

  acquire(_target: SwarmTarget): SwarmLease {
    this.leases++;
    let released = false;
    return {
      swarm: this.#swarm,
      release: () => {
        if (!released) this.leases--;
        released = true;
      },
    };
  }

  list(): readonly Swarm[] {
    return [this.#swarm];
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function waitForAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(abortError(signal));
    signal.addEventListener("abort", () => reject(abortError(signal)), { once: true });
  });
}

/** A swarm made of bytes in memory, for tests of the layers above swarms. */
import type { ReadOptions } from "../../src/bytes/source.ts";
import { MemorySource } from "../support/memory-source.ts";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { Clock } from "../../src/ports.ts";
import { Sessions } from "../../src/playback/sessions.ts";
import type { SessionsParts } from "../../src/playback/sessions-parts.ts";
import type { StartRequest } from "../../src/playback/start-request.ts";
import type {
  ReaderOptions,
  StallReason,
  Swarm,
  SwarmManager,
  SwarmReader,
  SwarmStatus,
  SwarmTarget,
} from "../../src/swarm/types.ts";
import type { Lease } from "../../src/swarm/leases.ts";
import { pieceCells, type SwarmPicture } from "../../src/swarm/data/picture.ts";
import { Bitfield } from "../../src/bytes/bitfield.ts";
import type { Metainfo, MetainfoFile } from "../../src/metainfo/types.ts";

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

/** A swarm whose files are complete, unless `silent`: then the metadata and every read wait forever. */
export class FakeSwarm implements Swarm {
  readonly left = new AbortController();
  readonly ending = this.left.signal;
  readonly infohashHex: string;
  metainfo: Metainfo | null;
  readonly readers = new Set<SwarmReader>();
  silent: boolean;
  /** Reads wait forever, the metadata does not. */
  silentReads = false;
  /** Readers that may be open at once. */
  maxReaders = Infinity;
  /** Bytes of each file that are here. */
  hereBytes = Infinity;
  /** Of the pieces that each file consists of. */
  pieceBytes = Infinity;
  peers = 3;
  downloadedBytes = 5000;
  downloadBytesPerSecond = 204_800;
  /** Why a read that waits does so. */
  reason: StallReason = "no_peers";
  /** How far each reader was to fetch ahead, null: as the swarm sees fit. */
  readonly aheadBytes: (number | null)[] = [];
  /** How much each reader yields to others, ms. */
  readonly yieldsMs: number[] = [];
  /** Every read so far. */
  readonly reads: { readonly fileIndex: number; readonly offset: number; readonly length: number }[] = [];
  /** Reads that wait. */
  readonly #waiting = new Set<() => void>();
  readonly #files: readonly { name: string; bytes: Uint8Array }[];
  readonly #known: Metainfo;

  constructor(files: readonly { name: string; bytes: Uint8Array }[], options: { silent?: boolean } = {}) {
    this.#files = files;
    this.#known = fakeMetainfo(files);
    this.infohashHex = this.#known.infohashHex;
    this.silent = options.silent ?? false;
    this.metainfo = this.silent ? null : this.#known;
  }

  /** Reads that wait come through as far as they may now. */
  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  metadata(signal: AbortSignal): Promise<Metainfo> {
    return this.silent ? waitForAbort(signal) : Promise.resolve(this.#known);
  }

  openReader(fileIndex: number, options: ReaderOptions = {}): SwarmReader {
    if (this.readers.size >= this.maxReaders) throw new MillraceError("too_busy", "too many readers");
    this.aheadBytes.push(options.readAheadBytes ?? null);
    this.yieldsMs.push(options.yieldMs ?? 0);
    const source = new MemorySource(this.#files[fileIndex]!.bytes);
    const closing = new AbortController();
    const reader: SwarmReader = {
      fileIndex,
      sizeBytes: source.sizeBytes,
      setBitrate() {},
      setReadAhead: (bytes) => bytes,
      availableFrom: (offset, max) => Math.max(0, Math.min(max, source.sizeBytes - offset, this.hereBytes - offset)),
      pieceEnd: (offset) => Math.min(source.sizeBytes, offset - offset % this.pieceBytes + this.pieceBytes),
      isWaiting: () => this.#waiting.size > 0,
      stallReason: () => this.silent ? this.reason : null,
      read: (offset: number, length: number, options: ReadOptions) => {
        this.reads.push({ fileIndex, offset, length });
        if (!this.silent && !this.silentReads) return source.read(offset, length, options);
        let wake = () => {};
        const woken = new Promise<void>((resolve) => this.#waiting.add(wake = resolve));
        const given = waitForAbort(AbortSignal.any([options.signal, closing.signal]));
        return Promise.race([woken, given]).finally(() => this.#waiting.delete(wake))
          .then(() => source.read(offset, length, options));
      },
      close: () => {
        closing.abort(new MillraceError("closed", "the reader was closed"));
        this.readers.delete(reader);
      },
    };
    this.readers.add(reader);
    return reader;
  }

  picture(fileIndex: number): SwarmPicture {
    const cells = this.metainfo && pieceCells(this.metainfo, fileIndex, {
      have: new Bitfield(this.metainfo.pieceCount, new Uint8Array(this.metainfo.pieceCount).fill(255)),
      underWay: [],
      readers: [],
    });
    return { cells, peers: [], checking: null, metadata: null };
  }

  setDownloadAll(): void {}
  completed(): Promise<void> {
    return Promise.resolve();
  }

  status(): SwarmStatus {
    return {
      peers: this.peers,
      downloadBytesPerSecond: this.downloadBytesPerSecond,
      uploadBytesPerSecond: 1024,
      downloadedBytes: this.downloadedBytes,
      uploadedBytes: 70,
      wastedBytes: 0,
      failedPieces: 0,
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

  acquire(_target: SwarmTarget): Lease<Swarm> {
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

const log = { log() {}, child: () => log };

/** Sessions over `swarms`, none of them live unless `more` says so. */
export function makeSessions(clock: Clock, swarms: SwarmManager, more: Partial<SessionsParts> = {}): Sessions {
  return new Sessions({
    clock,
    log,
    swarms,
    live: {
      acquire() {
        throw new Error("nothing here is live");
      },
      running: () => null,
    },
    channels: null,
    liveWindow: () => ({ limits: { windowMs: 60_000, maxBytes: 2 ** 20 } }),
    resolver: { resolve: () => Promise.resolve({}) },
    startTimeoutMs: 20_000,
    audioEncoder: null,
    foreignReader: null,
    cushion: { choice: "auto" },
    audioTarget: "aac",
    onMetadata: () => {},
    ...more,
  });
}

/** The request of a player on this machine, changed by `more`. */
export function startRequest(infohash: string, more: Partial<StartRequest>): StartRequest {
  return {
    selector: { kind: "infohash", infohash },
    output: "file",
    fileIndex: undefined,
    pid: undefined,
    clientHost: "127.0.0.1",
    callerIsLocal: true,
    preferredAudioLanguage: null,
    transcode: null,
    clientSessionId: -1,
    useApiStop: false,
    stopNotifications: false,
    forceRestart: false,
    signal: new AbortController().signal,
    ...more,
  };
}

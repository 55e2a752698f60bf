/** What the front does with torrents: finds their descriptions, fetches the beginnings of files, and says how far that is. */
import { deadline } from "../../../bytes/deadline.ts";
import type { AnyMetainfo } from "../../../metainfo/live.ts";
import { fileBody } from "../../../playback/output.ts";
import type { PlaybackSession } from "../../../playback/session.ts";
import type { StartRequest } from "../../../playback/start-request.ts";
import type { StreamSelector } from "../../../content/selector.ts";
import type { HttpParts } from "../../context.ts";
import type { TorrServerTorrent } from "./kept.ts";

/** A torrent that nobody asks about sleeps after this, ms. */
const AWAKE_MS = 60_000;
/** Descriptions that are looked for at once: each search holds a swarm. */
const MAX_SEARCHES = 16;
/** Beginnings that are fetched at once, and that are remembered. */
const MAX_PRELOADS = 4;
const MAX_REMEMBERED = 64;
/** Longest time for one, ms. */
const PRELOAD_MS = 300_000;
/** What is fetched of the end, bytes: the index of many films is there. */
const TAIL_BYTES = 8 * 1024 * 1024;

/** The beginning of a file that is fetched ahead. Bytes. */
export interface Preload {
  readonly index: number;
  readonly goalBytes: number;
  readonly fetchedBytes: number;
  readonly isRunning: boolean;
}

interface Job extends Preload {
  fetchedBytes: number;
  isRunning: boolean;
  readonly hash: string;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** Runs for one engine. */
export class TorrentWork {
  readonly #parts: HttpParts;
  /** When each torrent was last asked about, monotonic ms; the one asked about longest ago first. */
  readonly #asked = new Map<string, number>();
  readonly #searches = new Set<string>();
  readonly #found = new Map<string, AnyMetainfo>();
  readonly #jobs = new Map<string, Job>();
  readonly #learnt: (hash: string, metainfo: AnyMetainfo) => void;

  /** `learnt` gets each description that is found. */
  constructor(parts: HttpParts, learnt: (hash: string, metainfo: AnyMetainfo) => void) {
    this.#parts = parts;
    this.#learnt = learnt;
  }

  isAwake(hash: string): boolean {
    return this.sessionOf(hash) !== null ||
      (this.#asked.get(hash) ?? -Infinity) + AWAKE_MS > this.#parts.clock.monotonic();
  }

  isSearching(hash: string): boolean {
    return this.#searches.has(hash);
  }

  /** The session that plays a file of the torrent; null: none does. */
  sessionOf(hash: string): PlaybackSession | null {
    const running = this.#parts.sessions.list().filter((one) => one.identity.infohashHex === hash);
    return running.find((one): one is PlaybackSession => one.kind === "file") ?? null;
  }

  /** The description of a torrent if it has arrived; no network is used. */
  async known(hash: string): Promise<AnyMetainfo | null> {
    return this.#found.get(hash) ?? await this.#parts.api.content.known(hash);
  }

  /** Notes that somebody asks about it, and begins to look for its description. */
  async wake(torrent: TorrServerTorrent): Promise<void> {
    const { hash } = torrent;
    this.#ask(hash);
    if (this.#searches.size >= MAX_SEARCHES || this.#searches.has(hash)) return;
    this.#searches.add(hash);
    const known = await this.known(hash).catch((error) => {
      this.#searches.delete(hash);
      throw error;
    });
    if (known === null) {
      this.#find(torrent, this.#parts.api.closing).catch(() => {}).finally(() => this.#searches.delete(hash));
      return;
    }
    this.#learnt(hash, known);
    this.#searches.delete(hash);
  }

  /**
   * The description of a torrent.
   *
   * @throws `invalid_argument`, `not_found`, `bad_transport_file`, `denied`, `timeout`, `unsupported_media`, or the
   * signal's reason: as `MetainfoFinder.find`
   */
  async description(torrent: TorrServerTorrent, signal: AbortSignal): Promise<AnyMetainfo> {
    this.#ask(torrent.hash);
    return await this.known(torrent.hash) ?? await this.#find(torrent, signal);
  }

  async #find(torrent: TorrServerTorrent, signal: AbortSignal): Promise<AnyMetainfo> {
    const context = { callerIsLocal: torrent.isLocal, signal };
    const metainfo = await this.#parts.api.content.find(selectorOf(torrent), context);
    this.#learnt(torrent.hash, metainfo);
    this.#found.set(torrent.hash, metainfo);
    if (this.#found.size > MAX_REMEMBERED) this.#found.delete(this.#found.keys().next().value!);
    return metainfo;
  }

  #ask(hash: string): void {
    this.#asked.delete(hash);
    this.#asked.set(hash, this.#parts.clock.monotonic());
    for (const [oldest, ms] of this.#asked) {
      if (ms + AWAKE_MS > this.#parts.clock.monotonic()) break;
      this.#asked.delete(oldest);
    }
  }

  /** The last beginning of a file of the torrent that was fetched; null: none was. */
  preloadOf(hash: string): Preload | null {
    return [...this.#jobs.values()].findLast((job) => job.hash === hash) ?? null;
  }

  /**
   * Fetches the first `goalBytes` of a file, and its end. Resolves when they have arrived or it was given up; it goes on when
   * the caller leaves. `start` begins a session with the signal of the work.
   */
  async preload(
    hash: string,
    file: { readonly index: number; readonly sizeBytes: number },
    goalBytes: number,
    start: (signal: AbortSignal) => StartRequest,
  ): Promise<void> {
    const key = `${hash}/${file.index}`;
    const running = this.#jobs.get(key);
    if (running !== undefined && (running.isRunning || running.fetchedBytes >= running.goalBytes)) {
      return await running.done;
    }
    if ([...this.#jobs.values()].filter((job) => job.isRunning).length >= MAX_PRELOADS) return;
    const stop = new AbortController();
    const ending = deadline(this.#parts.clock, PRELOAD_MS, AbortSignal.any([stop.signal, this.#parts.api.closing]));
    const goal = Math.min(file.sizeBytes, goalBytes);
    const request = start(ending.signal);
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const job: Job = { hash, index: file.index, stop, goalBytes: goal, fetchedBytes: 0, isRunning: true, done };
    this.#jobs.delete(key);
    this.#jobs.set(key, job);
    if (this.#jobs.size > MAX_REMEMBERED) {
      const oldest = [...this.#jobs].find(([, { isRunning }]) => !isRunning)?.[0];
      if (oldest !== undefined) this.#jobs.delete(oldest);
    }
    this.#fetch(job, request, file.sizeBytes).catch(() => {}).finally(() => {
      ending.cancel();
      job.isRunning = false;
      resolve();
    });
    await done;
  }

  async #fetch(job: Job, request: StartRequest, sizeBytes: number): Promise<void> {
    const { signal } = request;
    const session = await this.#parts.sessions.start(request);
    const body = fileBody(session);
    if (body === null) return;
    const read = async (start: number, end: number, got: (bytes: number) => void) => {
      const into = new WritableStream<Uint8Array>({ write: (chunk) => got(chunk.length) });
      await body.open(start, end).pipeTo(into, { signal });
    };
    const tail = Math.max(job.goalBytes, sizeBytes - TAIL_BYTES);
    await Promise.all([
      read(0, job.goalBytes, (bytes) => job.fetchedBytes += bytes),
      tail < sizeBytes ? read(tail, sizeBytes, () => {}) : null,
    ]);
  }

  /** Stops what works on a torrent for the client at this address. */
  drop(hash: string, clientHost: string): void {
    this.#asked.delete(hash);
    for (const [key, job] of this.#jobs) {
      if (job.hash !== hash) continue;
      job.stop.abort();
      this.#jobs.delete(key);
    }
    const { sessions } = this.#parts;
    for (const { identity, id } of sessions.list()) {
      const isIts = identity.infohashHex === hash && identity.output === "file" && identity.client === clientHost;
      if (isIts) sessions.stop(hash, id, "its client dropped the torrent");
    }
  }
}

/** What names the torrent in a start. */
export function selectorOf({ magnet, hash }: TorrServerTorrent): StreamSelector {
  return magnet === null ? { kind: "infohash", infohash: hash } : { kind: "magnet", magnet };
}

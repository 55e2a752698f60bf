/** Downloads the torrents of the list whole, some at a time, and shares them until their limits are reached. */
import { sleep } from "../../../bytes/deadline.ts";
import { MillraceError } from "../../../errors.ts";
import { isLive } from "../../../metainfo/live.ts";
import { parseMagnet } from "../../../metainfo/magnet.ts";
import type { Metainfo } from "../../../metainfo/types.ts";
import type { Lease } from "../../../swarm/leases.ts";
import type { Swarm } from "../../../swarm/types.ts";
import type { HttpParts } from "../../context.ts";
import type { QbittorrentList, QbittorrentTorrent } from "./kept.ts";

/** Torrents that are downloaded, and shared, at once: each is a swarm. */
const MAX_DOWNLOADS = 8;
const MAX_SHARED = 8;
/** Pause before a torrent that failed is tried again, ms. */
const RETRY_MS = 60_000;
/** How often it is looked whether a limit of sharing is reached, s. */
const SHARING_STEP_S = 60;

/** What goes on with a torrent. `failed`: it is tried again in a minute. */
export type Phase = "waiting" | "metadata" | "downloading" | "sharing" | "failed";

interface Job {
  phase: Phase;
  lease: Lease<Swarm> | null;
  /** Resolves when it has left the swarm. */
  done: Promise<void>;
  readonly stop: AbortController;
}

/** Runs for one engine. */
export class WholeDownloads {
  readonly #parts: HttpParts;
  readonly #list: QbittorrentList;
  readonly #jobs = new Map<string, Job>();
  /** When those that failed are tried again, monotonic ms. */
  readonly #retries = new Map<string, number>();

  constructor(parts: HttpParts, list: QbittorrentList) {
    this.#parts = parts;
    this.#list = list;
  }

  /** Whether this engine keeps whole torrents at all: on disk, and without a limit. */
  get isPossible(): boolean {
    return this.#parts.whole.directory !== null;
  }

  phaseOf(hash: string): Phase {
    return this.#jobs.get(hash)?.phase ?? (this.#retries.has(hash) ? "failed" : "waiting");
  }

  /** The swarm of a torrent that is downloaded or shared; null: it is not. */
  swarmOf(hash: string): Swarm | null {
    return this.#jobs.get(hash)?.lease?.swarm ?? null;
  }

  /** Begins what can begin; to be called after the list changed. */
  look(): void {
    if (!this.isPossible || this.#parts.api.closing.aborted) return;
    for (const torrent of this.#list.torrents()) {
      if (torrent.isStopped || this.#jobs.has(torrent.hash) || (torrent.completedS !== null && isShared(torrent))) {
        continue;
      }
      if ((this.#retries.get(torrent.hash) ?? -Infinity) > this.#parts.clock.monotonic()) continue;
      const isSharing = torrent.completedS !== null;
      const running = [...this.#jobs.values()].filter(({ phase }) => (phase === "sharing") === isSharing).length;
      if (running < (isSharing ? MAX_SHARED : MAX_DOWNLOADS)) this.#begin(torrent);
    }
  }

  /** Ends what goes on with a torrent. */
  stop(hash: string): void {
    this.#retries.delete(hash);
    this.#jobs.get(hash)?.stop.abort(new MillraceError("closed", "a client stopped the torrent"));
  }

  /** Removes the files of a torrent, as soon as nobody uses them. Never rejects. */
  async removeFiles(hash: string): Promise<void> {
    const { whole, log } = this.#parts;
    await this.#jobs.get(hash)?.done;
    await whole.remove(hash).catch((error) =>
      log.log("debug", "a torrent's files could not be removed", { hash, error })
    );
  }

  #begin(torrent: QbittorrentTorrent): void {
    const { hash } = torrent;
    const stop = new AbortController();
    const job: Job = {
      phase: torrent.completedS === null ? "metadata" : "sharing",
      lease: null,
      done: Promise.resolve(),
      stop,
    };
    this.#jobs.set(hash, job);
    this.#retries.delete(hash);
    const { clock, api: { closing } } = this.#parts;
    job.done = this.#run(torrent, job, AbortSignal.any([stop.signal, closing])).catch((error) => {
      if (stop.signal.aborted || closing.aborted) return;
      this.#parts.log.log("debug", "a torrent could not be downloaded", { hash, error });
      this.#retries.set(hash, clock.monotonic() + RETRY_MS);
      sleep(clock, RETRY_MS, closing).then(() => this.look(), () => {});
    }).finally(() => {
      this.#release(torrent, job);
      this.#jobs.delete(hash);
      this.look();
    });
  }

  #release({ hash }: QbittorrentTorrent, { lease }: Job): void {
    if (lease === null) return;
    const { swarm } = lease;
    swarm.setDownloadAll(false);
    this.#list.change(hash, { progress: progressOf(swarm) });
    lease.release({ atOnce: true });
  }

  async #run({ hash, link, isLocal, completedS }: QbittorrentTorrent, job: Job, signal: AbortSignal): Promise<void> {
    const { api: { content }, whole, clock } = this.#parts;
    const metainfo = await content.find({ kind: "magnet", magnet: link }, { callerIsLocal: isLocal, signal });
    if (isLive(metainfo)) throw new MillraceError("unsupported_media", "a broadcast has no end");
    this.#list.change(hash, { name: metainfo.name, sizeBytes: metainfo.totalBytes });
    const lease = whole.acquire({ metainfo, magnet: parseMagnet(link), servers: isLocal ? "any" : "public" });
    job.lease = lease;
    if (completedS === null) {
      job.phase = "downloading";
      lease.swarm.setDownloadAll(true);
      await lease.swarm.completed(signal);
      this.#list.change(hash, { completedS: Math.floor(clock.now() / 1000), progress: 1 });
      job.phase = "sharing";
      this.look();
    }
    await this.#share(hash, lease, signal);
  }

  async #share(hash: string, { swarm }: Lease<Swarm>, signal: AbortSignal): Promise<void> {
    let countedBytes = 0;
    for (;;) {
      const torrent = this.#list.torrent(hash);
      if (torrent === undefined || isShared(torrent)) return;
      await sleep(this.#parts.clock, SHARING_STEP_S * 1000, signal);
      const { uploadedBytes } = swarm.status();
      this.#list.change(hash, {
        seededS: torrent.seededS + SHARING_STEP_S,
        uploadedBytes: torrent.uploadedBytes + Math.max(0, uploadedBytes - countedBytes),
      });
      countedBytes = uploadedBytes;
    }
  }
}

/** Whether it has been shared as much as its limits say; without any limit it is not shared. */
export function isShared(torrent: QbittorrentTorrent): boolean {
  const { ratioLimit, seedingTimeLimit, inactiveSeedingTimeLimit, uploadedBytes, sizeBytes, seededS } = torrent;
  const limits = [ratioLimit, seedingTimeLimit, inactiveSeedingTimeLimit];
  if (limits.every((limit) => limit === -2)) return true;
  // How long nobody has asked for it is not counted: the limit counts from its completion.
  const minutes = seededS / 60;
  return ratioLimit >= 0 && uploadedBytes >= ratioLimit * sizeBytes ||
    seedingTimeLimit >= 0 && minutes >= seedingTimeLimit ||
    inactiveSeedingTimeLimit >= 0 && minutes >= inactiveSeedingTimeLimit;
}

/** How much of a torrent is downloaded, from 0 to 1. */
export function progressOf(swarm: Pick<Swarm, "metainfo" | "status">): number {
  const metainfo: Metainfo | null = swarm.metainfo;
  return metainfo === null ? 0 : swarm.status().havePieces / metainfo.pieceCount;
}

/** What is cached, for the method API: names beside sizes, what stays, removal, the limit. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import type { TransportCache } from "../content/transport-cache.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { RemovedTorrents, StorageDesk } from "../http/api/parts.ts";
import type { Clock } from "../ports.ts";
import type { PieceCache, StoredTorrent } from "../storage/piece-store.ts";
import type { TorrentSwarmManager } from "../swarm/manager.ts";
import type { EngineOptions } from "./options.ts";

/** A swarm that nobody uses any more has this long to close before its pieces are removed, ms. */
const LEAVE_TIMEOUT_MS = 10_000;

/** What the desk looks at. */
export interface StorageDeskParts {
  readonly cache: Pick<PieceCache, "torrents" | "remove" | "keep" | "setLimit">;
  readonly kind: NonNullable<EngineOptions["cache"]>;
  readonly manager: Pick<TorrentSwarmManager, "list" | "swarms">;
  readonly known: Pick<TransportCache, "byInfohash">;
  readonly clock: Clock;
}

/** Makes the part of the method API for what is cached. */
export function createStorageDesk({ cache, kind, manager, known, clock }: StorageDeskParts): StorageDesk {
  const refuseOwn = () => {
    if (kind === "seed") throw new MillraceError("denied", "these are your own files, which are never removed here");
  };
  const nameOf = async (infohashHex: string): Promise<string | null> => {
    const running = manager.list().find((swarm) => swarm.infohashHex === infohashHex)?.metainfo;
    return (running ?? await known.byInfohash(infohashHex))?.name ?? null;
  };
  const isInUse = (infohashHex: string): boolean => {
    const swarm = manager.swarms.get(infohashHex);
    return swarm !== undefined && manager.swarms.isLeased(swarm);
  };
  /** Closes the swarm that lingers for a player that may come back. */
  const leave = async (infohashHex: string, signal: AbortSignal): Promise<void> => {
    const swarm = manager.swarms.get(infohashHex);
    const late = deadline(clock, LEAVE_TIMEOUT_MS, signal, stillClosing);
    try {
      await withSignal(
        swarm === undefined ? manager.swarms.closed(infohashHex) : manager.swarms.leave(swarm),
        late.signal,
      );
    } finally {
      late.cancel();
    }
  };
  const removeOne = async ({ infohashHex, usedBytes }: StoredTorrent, signal: AbortSignal): Promise<number> => {
    if (isInUse(infohashHex)) throw inUse();
    await leave(infohashHex, signal);
    try {
      await cache.remove(infohashHex);
    } catch (error) {
      // Someone joined it while its swarm closed.
      throw hasCode(error, "conflict") ? inUse() : error;
    }
    return usedBytes;
  };
  return {
    async list(first, count) {
      const all = cache.torrents();
      const torrents = [];
      // One after another: each may be read from the disk.
      for (const { isOpen: _, ...torrent } of all.slice(first, first + count)) {
        const { infohashHex } = torrent;
        torrents.push({ ...torrent, name: await nameOf(infohashHex), isInUse: isInUse(infohashHex) });
      }
      return { total: all.length, torrents };
    },
    async remove(infohashHex, signal) {
      refuseOwn();
      const stored = cache.torrents().find((one) => one.infohashHex === infohashHex);
      if (stored === undefined) throw new MillraceError("not_found", "nothing of this torrent is cached");
      return { freedBytes: await removeOne(stored, signal), inUseCount: 0 };
    },
    async removeAll(signal): Promise<RemovedTorrents> {
      refuseOwn();
      let freedBytes = 0;
      let inUseCount = 0;
      for (const stored of cache.torrents().filter(({ isKept }) => !isKept)) {
        try {
          freedBytes += await removeOne(stored, signal);
        } catch (error) {
          if (!hasCode(error, "conflict") && !hasCode(error, "too_busy")) throw error;
          inUseCount++;
        }
      }
      return { freedBytes, inUseCount };
    },
    async keep(infohashHex, isKept) {
      refuseOwn();
      await cache.keep(infohashHex, isKept);
    },
    async setLimit(limitBytes) {
      refuseOwn();
      await cache.setLimit(limitBytes);
    },
  };
}

function inUse(): MillraceError {
  return new MillraceError("conflict", "it is in use: stop what plays or downloads it, and try again");
}

function stillClosing(): MillraceError {
  return new MillraceError("too_busy", "this torrent is still being closed after its last use: try again in a minute");
}

/** What is cached, for the method API: names beside sizes, removal, the limit. */
import type { TransportCache } from "../content/transport-cache.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { StorageDesk } from "../http/api/parts.ts";
import type { PieceCache } from "../storage/piece-store.ts";
import type { TorrentSwarmManager } from "../swarm/manager.ts";
import type { EngineOptions } from "./options.ts";

/** What the desk looks at. */
export interface StorageDeskParts {
  readonly cache: Pick<PieceCache, "torrents" | "remove" | "setLimit">;
  readonly kind: NonNullable<EngineOptions["cache"]>;
  readonly manager: Pick<TorrentSwarmManager, "list">;
  readonly known: Pick<TransportCache, "byInfohash">;
}

/** Makes the part of the method API for what is cached. */
export function createStorageDesk({ cache, kind, manager, known }: StorageDeskParts): StorageDesk {
  const refuseOwn = () => {
    if (kind === "seed") throw new MillraceError("denied", "these are your own files, which are never removed here");
  };
  const nameOf = async (infohashHex: string): Promise<string | null> => {
    const running = manager.list().find((swarm) => swarm.infohashHex === infohashHex)?.metainfo;
    return (running ?? await known.byInfohash(infohashHex))?.name ?? null;
  };
  return {
    async list(first, count) {
      const all = cache.torrents();
      const torrents = [];
      // One after another: each may be read from the disk.
      for (const { isOpen, ...torrent } of all.slice(first, first + count)) {
        torrents.push({ ...torrent, name: await nameOf(torrent.infohashHex), isInUse: isOpen });
      }
      return { total: all.length, torrents };
    },
    async remove(infohashHex) {
      refuseOwn();
      const wanted = cache.torrents().filter((one) => infohashHex === null || one.infohashHex === infohashHex);
      if (infohashHex !== null && wanted.length === 0) {
        throw new MillraceError("not_found", "nothing of this torrent is cached");
      }
      let freedBytes = 0;
      for (const { infohashHex: id, usedBytes } of wanted) {
        try {
          await cache.remove(id);
          freedBytes += usedBytes;
        } catch (error) {
          if (!hasCode(error, "conflict")) throw error;
          if (infohashHex === null) continue;
          throw new MillraceError("conflict", "it is in use: stop what plays it, and try again half a minute later");
        }
      }
      return freedBytes;
    },
    async setLimit(limitBytes) {
      refuseOwn();
      await cache.setLimit(limitBytes);
    },
  };
}

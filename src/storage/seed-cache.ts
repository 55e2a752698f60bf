/** Seeds files that are already on disk: a cache over the user's own complete files. */
import { Bitfield } from "../bytes/bitfield.ts";
import { MillraceError } from "../errors.ts";
import { type DiskCacheOptions, diskShared } from "./disk-cache.ts";
import { DiskStore } from "./disk-store.ts";
import { foundPaths } from "./found-paths.ts";
import { HandleCache } from "./handle-cache.ts";
import { Medium } from "./medium.ts";
import { filePlacement } from "./placement.ts";
import { restore } from "./restore.ts";
import type { PieceCache, PieceStore, TorrentLayout } from "./piece-store.ts";

/**
 * A cache over `directory`, which holds each torrent under its name, as the torrent or as millrace writes it. `open()`
 * hashes everything there (it waits 1.5 s; later finds are reported by `onFound`) and serves good pieces. Nothing is
 * written or removed; `put` rejects with `io`.
 */
export function createSeedCache(options: Omit<DiskCacheOptions, "limitBytes">): PieceCache {
  const shared = diskShared(options, 0);
  const handles = new HandleCache(options.files);
  const stores = new Map<string, DiskStore>();
  return {
    limitBytes: 0,
    get usedBytes() {
      return shared.lru.usedBytes;
    },
    async open(layout: TorrentLayout): Promise<PieceStore> {
      const id = layout.infohashHex;
      const { files, directory, clock } = options;
      const placement = filePlacement(layout, directory, await foundPaths(files, layout, directory));
      if (stores.has(id)) throw new MillraceError("conflict", "this torrent's pieces are already open");
      if (stores.has(id)) throw new MillraceError("conflict", "this torrent's pieces are already open");
      const medium = new Medium(files, handles, clock, placement);
      const store: DiskStore = new DiskStore(shared, layout, medium, {
        resumePath: null,
        readOnly: true,
        onClosed: () => {
          stores.delete(id);
          shared.lru.drop(store);
        },
      });
      stores.set(id, store);
      const everything = new Bitfield(layout.pieceCount);
      everything.setAll();
      await restore(store, everything, -Infinity, clock);
      return store;
    },
    torrents: () =>
      [...stores].reverse().map(([infohashHex, store]) => {
        const { totalBytes } = store.layout;
        return { infohashHex, usedBytes: shared.lru.bytesOfAll(store), totalBytes, isOpen: true, isKept: true };
      }),
    keep: () => Promise.resolve(),
    setLimit: () => Promise.resolve(),
    // They are the user's.
    remove: () => Promise.resolve(),
    async close() {
      await Promise.all([...stores.values()].map((store) => store.close()));
      await handles.settled();
    },
  };
}

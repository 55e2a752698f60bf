/** Where pieces and the windows of broadcasts are kept, according to the options. */
import { MillraceError } from "../errors.ts";
import type { LiveWindowMaker } from "../playback/live/live-streams.ts";
import { WindowFiles } from "../playback/live/window-files.ts";
import type { Ports } from "../ports.ts";
import { createDiskCache } from "../storage/disk-cache.ts";
import { createRamCache } from "../storage/ram-cache.ts";
import { createSeedCache } from "../storage/seed-cache.ts";
import type { PieceCache } from "../storage/piece-store.ts";
import type { EngineOptions } from "./options.ts";

const DEFAULT_CACHE_LIMIT_BYTES = 512 * 1024 * 1024;
const DEFAULT_LIVE_WINDOW_MS = 60_000;
/** Most bytes of one broadcast kept for its players: 60 s at the highest allowed rate, an hour and a half at 1 Mb/s. */
const MAX_LIVE_WINDOW_BYTES = 768 * 1024 * 1024;

/** The piece cache. Rejects with `config` when a required directory is missing, `io` when that can't be used. */
export async function createCache(ports: Ports, options: EngineOptions): Promise<PieceCache> {
  const { files, clock, log, sha256 } = ports;
  const limitBytes = options.cacheLimitBytes ?? DEFAULT_CACHE_LIMIT_BYTES;
  const kind = options.cache ?? "ram";
  if (kind === "ram") return createRamCache({ limitBytes, clock });
  const directory = options.cacheDir ?? null;
  if (directory === null) throw new MillraceError("config", `cache "${kind}" needs cacheDir`);
  return kind === "seed"
    ? createSeedCache({ files, directory, clock, log, sha256 })
    : await createDiskCache({ files, directory, limitBytes, clock, log, sha256 });
}

/** How broadcasts are kept for their players: with a disk cache, data older than some 90 s is on disk. */
export async function createWindowMaker({ files, log }: Ports, options: EngineOptions): Promise<LiveWindowMaker> {
  const limits = {
    windowMs: options.liveWindowMs ?? DEFAULT_LIVE_WINDOW_MS,
    maxBytes: MAX_LIVE_WINDOW_BYTES,
    maxDiskBytes: options.cacheLimitBytes ?? DEFAULT_CACHE_LIMIT_BYTES,
  };
  if (options.cache !== "disk" || !options.cacheDir) return () => ({ limits, files: null });
  const directory = `${options.cacheDir}/live-window`;
  // A crash may have left some.
  await files.remove(directory).catch(() => {});
  return (infohashHex) => ({
    limits,
    files: new WindowFiles(files, `${directory}/${infohashHex}-${crypto.randomUUID()}`, log),
  });
}

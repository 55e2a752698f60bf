/**
 * Measures writing and reading pieces through the disk cache: MB/s and CPU-seconds per GiB, on the runtime that runs it.
 *
 *     deno run -A scripts/bench/storage.ts [directory]     (also with node24 and bun; default directory /dev/shm)
 */
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { createDiskCache } from "../../src/storage/disk-cache.ts";
import type { PieceStore, TorrentLayout } from "../../src/storage/piece-store.ts";

const GIB = 1024 ** 3;
const TOTAL_BYTES = GIB;
/** Bytes of pieces under way at once, as in a swarm. */
const CONCURRENT_BYTES = 16 * 1024 * 1024;

const ports = await loadPorts();
const directory = `${process.argv[2] ?? "/dev/shm"}/millrace-bench-${process.pid}`;
const log = { log() {}, child: () => log };

function layoutOf(pieceLengthBytes: number): TorrentLayout {
  const pieceCount = Math.ceil(TOTAL_BYTES / pieceLengthBytes);
  return {
    infohashHex: pieceLengthBytes.toString(16).padStart(40, "0"),
    name: "bench.bin",
    pieceLengthBytes,
    pieceCount,
    totalBytes: TOTAL_BYTES,
    pieceHashes: new Uint8Array(20 * pieceCount),
    files: [{ path: "bench.bin", sizeBytes: TOTAL_BYTES, offset: 0 }],
    multiFile: false,
  };
}

async function measure(name: string, bytes: number, work: () => Promise<void>): Promise<void> {
  const cpu = process.cpuUsage();
  const started = performance.now();
  await work();
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const cpuPerGib = (user + system) / 1e6 / (bytes / GIB);
  const rss = Math.round(process.memoryUsage().rss / 1e6);
  console.log(
    `${ports.runtime.name.padEnd(5)} ${name.padEnd(34)} ${(bytes / 1e6 / seconds).toFixed(0).padStart(6)} MB/s ` +
      `${cpuPerGib.toFixed(2).padStart(5)} CPU-s/GiB  RSS ${rss} MB`,
  );
}

/** Runs `work` for every number below `count`, `lanes` at once. */
async function inLanes(count: number, lanes: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: lanes }, async () => {
    while (next < count) await work(next++);
  }));
}

for (const limitBytes of [0, 4 * GIB]) {
  for (const pieceLengthBytes of [1024 * 1024, 64 * 1024, 16 * 1024]) {
    const cache = await createDiskCache({ files: ports.files, directory, limitBytes, clock: ports.clock, log });
    const layout = layoutOf(pieceLengthBytes);
    const store: PieceStore = await cache.open(layout);
    const name = `${pieceLengthBytes / 1024} KiB pieces, ${limitBytes === 0 ? "files" : "extents"}`;
    await measure(`put ${name}`, TOTAL_BYTES, async () => {
      await inLanes(layout.pieceCount, CONCURRENT_BYTES / pieceLengthBytes, (piece) => {
        return store.put(piece, cache.buffers!.acquire(pieceLengthBytes));
      });
    });
    if (pieceLengthBytes === 1024 * 1024) {
      await measure(`read 16 KiB, ${name}`, TOTAL_BYTES, async () => {
        await inLanes(TOTAL_BYTES / 16384, 4, (i) => store.read(i >> 6, (i & 63) * 16384, 16384));
      });
      await measure(`read 256 KiB, ${name}`, TOTAL_BYTES, async () => {
        await inLanes(TOTAL_BYTES / 262144, 4, (i) => store.read(i >> 2, (i & 3) * 262144, 262144));
      });
    }
    await cache.close();
    await ports.files.remove(directory);
  }
}
process.exit(0);

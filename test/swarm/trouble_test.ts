import { test } from "node:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { Swarm, SwarmReader } from "../../src/swarm/types.ts";
import { hurried, Lab, soon } from "./support/lab.ts";
import { MemoryCache, type MemoryStore } from "./support/memory-cache.ts";
import { makeTorrent } from "./support/torrent.ts";
import { until } from "../support/until.ts";

test("TorrentSwarm plays on from memory and reports it when the disk is full", async () => {
  const torrent = await makeTorrent({ bytes: 400_000 });
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent);
    const cache = new MemoryCache();
    const leecher = await lab.node({ cache });
    const { swarm } = leecher.join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    cache.stores.get(torrent.metainfo.infohashHex)!.broken = new MillraceError("disk_full", "nothing left");
    swarm.addPeer(seeder.address);
    const reader = swarm.openReader(0);
    assertEquals(await reader.read(0, 400_000, { signal: soon() }), torrent.data);
    assertStringIncludes(swarm.status().message ?? "", "nothing left");
  });
});

test("TorrentSwarm tells peers that it lost pieces, and again when it has them back (BEP 54)", async () => {
  const torrent = await makeTorrent({ bytes: 300_000 });
  await Lab.run(async (lab) => {
    const first = await lab.seeder(torrent);
    const { swarm } = (await lab.node()).join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    swarm.addPeer(first.address);
    const reader = swarm.openReader(0, { readAheadBytes: 0 });
    await reader.read(0, 1000, { signal: soon() });
    const store = (first.cache as MemoryCache).stores.get(torrent.metainfo.infohashHex)!;
    store.evict(3);
    const waiting = reader.read(200_000, 1000, { signal: soon() });
    await until("the leecher knows that nobody has the piece", () => reader.stallReason() === "missing_piece");
    // The seeder fetches it from another seeder, and announces it.
    const second = await lab.seeder(torrent);
    const lease = first.join({ metainfo: torrent.metainfo });
    lease.swarm.addPeer(second.address);
    await lease.swarm.openReader(0).read(200_000, 1000, { signal: soon() });
    assertEquals(await waiting, torrent.data.slice(200_000, 201_000));
  });
});

/** Runs `body` with a leecher that has read all of its 300,000 bytes from a seeder. */
async function withSeededReader(
  body: (context: {
    swarm: Swarm;
    reader: SwarmReader;
    store: MemoryStore;
    data: Uint8Array;
  }) => Promise<void>,
): Promise<void> {
  const torrent = await makeTorrent({ bytes: 300_000 });
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent);
    const cache = new MemoryCache();
    const leecher = await lab.node({ cache });
    const { swarm } = leecher.join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    swarm.addPeer(seeder.address);
    const reader = swarm.openReader(0);
    await reader.read(0, 300_000, { signal: soon() });
    await body({ swarm, reader, store: cache.stores.get(torrent.metainfo.infohashHex)!, data: torrent.data });
  });
}

test("TorrentSwarm fetches evicted pieces again when they are read", async () => {
  await withSeededReader(async ({ reader, store, data }) => {
    store.evict(1);
    assertEquals(reader.availableFrom(0, 300_000), 65536);
    assertEquals(await reader.read(60_000, 20_000, { signal: soon() }), data.slice(60_000, 80_000));
  });
});

test("TorrentSwarm reconnects to the seeds it parted from when pieces are lost", async () => {
  await withSeededReader(async ({ swarm, reader, store, data }) => {
    await until("both seeds part", () => swarm.status().peers === 0);
    store.evict(1);
    const late = AbortSignal.timeout(3_000);
    assertEquals(await reader.read(60_000, 20_000, { signal: late }), data.slice(60_000, 80_000));
  });
});

test("TorrentSwarm keeps the download limit", async () => {
  const torrent = await makeTorrent({ bytes: 2_000_000 });
  await Lab.run(async (lab) => {
    const ports = hurried(lab.ports, 10);
    const seeder = await lab.seeder(torrent);
    const leecher = await lab.node({ ports, downloadLimitBytesPerSecond: 500_000 });
    const { swarm } = leecher.join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    swarm.setDownloadAll(true);
    const startedMs = ports.clock.monotonic();
    swarm.addPeer(seeder.address);
    await swarm.completed(soon());
    const seconds = (ports.clock.monotonic() - startedMs) / 1000;
    // Requests under way when the bucket ran dry still arrive: at most 2 MB/s of pipeline beyond the limit's burst.
    assert(seconds > 1.5, `2 MB at 0.5 MB/s in ${seconds} s`);
  });
});

for (const files of [undefined, [50_000, 100_000, 250_000]] as const) {
  test(`WebSeed serves a torrent of ${files === undefined ? "one file" : "several files"}`, async () => {
    const torrent = await makeTorrent({ bytes: 400_000, pieceLength: 32768, ...(files ? { files } : {}) });
    const requested: string[] = [];
    let failures = 1;
    const server = createServer((request, response) => {
      const path = decodeURIComponent(request.url!);
      requested.push(path);
      if (failures-- > 0) return void response.writeHead(503).end();
      const file = torrent.metainfo.files.find((f) => path.endsWith(`/${f.path}`)) ?? torrent.metainfo.files[0]!;
      const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range!)!;
      const at = file.offset + Number(from);
      response.writeHead(206).end(torrent.data.slice(at, file.offset + Number(to) + 1));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      await Lab.run(async (lab) => {
        const { port } = server.address() as AddressInfo;
        const leecher = await lab.node({ ports: hurried(lab.ports, 10) });
        const webSeeds = [`http://127.0.0.1:${port}/${files === undefined ? "one.bin" : "dir/"}`];
        const { swarm } = leecher.join({ metainfo: { ...torrent.metainfo, webSeeds } });
        await swarm.metadata(soon());
        swarm.setDownloadAll(true);
        await swarm.completed(soon());
        assertEquals(await swarm.openReader(0).read(0, 50_000, { signal: soon() }), torrent.data.slice(0, 50_000));
        assert(requested.length > 1);
      });
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
}

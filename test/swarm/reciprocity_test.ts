/** Over real links: a peer that uploads to us gets more from us than peers that only take (BEP 3, tit for tat). */
import { test } from "node:test";
import { assert } from "@std/assert";
import { until } from "../support/until.ts";
import { hurried, Lab, soon } from "./support/lab.ts";
import { MemoryCache, MemoryStore } from "./support/memory-cache.ts";
import { makeTorrent } from "./support/torrent.ts";

test("TorrentSwarm uploads more to a peer that uploads than to those that only take", { timeout: 40_000 }, async () => {
  const torrent = await makeTorrent({ bytes: 16_000_000 });
  const { metainfo } = torrent;
  const half = Math.floor(metainfo.pieceCount / 2);
  const holding = (first: number, end: number): MemoryCache => {
    const cache = new MemoryCache();
    const store = new MemoryStore(metainfo);
    for (let piece = first; piece < end; piece++) void store.put(piece, torrent.piece(piece));
    store.closed = true;
    cache.stores.set(metainfo.infohashHex, store);
    return cache;
  };
  await Lab.run(async (lab) => {
    // A 10 s round takes half a second here; rates are per sped-up second.
    const ports = hurried(lab.ports, 20);
    const own = await lab.node({
      ports,
      cache: holding(0, half),
      uploadSlots: 2,
      uploadLimitBytesPerSecond: 100_000,
      pex: false,
    });
    const giver = await lab.node({
      ports,
      cache: holding(half, metainfo.pieceCount),
      uploadLimitBytesPerSecond: 50_000,
      pex: false,
    });
    const takers = [];
    for (let n = 0; n < 4; n++) takers.push(await lab.node({ ports, uploadLimitBytesPerSecond: 1, pex: false }));
    const swarms = [own, giver, ...takers].map((node) => node.join({ metainfo }).swarm);
    await Promise.all(swarms.map((swarm) => swarm.metadata(soon())));
    for (const swarm of swarms) swarm.setDownloadAll(true);
    for (const swarm of swarms.slice(1)) swarm.addPeer(own.address);
    const received = (n: number) => swarms[n]!.status().downloadedBytes;
    await until("the giver received something", () => received(1) > 2_500_000, 30_000);
    const most = Math.max(...takers.map((_, n) => received(n + 2)));
    assert(received(1) > 1.3 * most, `${received(1)} to the giver, ${most} to a taker`);
    assert(takers.some((_, n) => received(n + 2) > 0), "takers never got their turn");
  });
});

/** Leaving a torrent and joining it again at once, over a cache that is slow to open and to close. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { PieceStore, TorrentLayout } from "../../src/storage/piece-store.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { Lab, soon } from "./support/lab.ts";
import { MemoryCache } from "./support/memory-cache.ts";
import { makeTorrent } from "./support/torrent.ts";

/** Opens and closes take some turns of the event loop; one may stay closing until it is let go. */
class SlowCache extends MemoryCache {
  openTurns = 3;
  closeTurns = 9;
  /** Stores that are open, being opened or being closed. */
  busy = 0;
  mostBusy = 0;
  /** Set: a store closes only after it. */
  hold: Promise<void> | null = null;

  override async open(layout: TorrentLayout): Promise<PieceStore> {
    this.mostBusy = Math.max(this.mostBusy, ++this.busy);
    for (let turn = 0; turn < this.openTurns; turn++) await settle();
    const store = await super.open(layout);
    const close = store.close.bind(store);
    store.close = async () => {
      for (let turn = 0; turn < this.closeTurns; turn++) await settle();
      await this.hold;
      await close();
      this.busy--;
      store.close = close;
    };
    return store;
  }
}

test("TorrentSwarmManager.acquire() of a torrent that is being left waits until its pieces are closed, time and again", async () => {
  const { metainfo } = await makeTorrent({ bytes: 100_000 });
  await Lab.run(async (lab) => {
    const cache = new SlowCache();
    const node = await lab.node({ cache });
    for (let round = 0; round < 40; round++) {
      cache.openTurns = round % 4;
      cache.closeTurns = round % 7;
      const { swarm, release } = node.join({ metainfo });
      // Left before its store is open, while it is opened, and afterwards.
      for (let turn = 0; turn < round % 5; turn++) await settle();
      if (round % 3 === 0) await swarm.metadata(soon());
      release({ atOnce: true });
    }
    const { swarm } = node.join({ metainfo });
    await swarm.metadata(soon());
    assertEquals([swarm.status().message, cache.mostBusy], [null, 1]);
  });
});

test("TorrentSwarmManager.acquire() says so when the pieces of a torrent that was left are not closed within 30 s", async () => {
  const { metainfo } = await makeTorrent({ bytes: 100_000 });
  await Lab.run(async (lab) => {
    const cache = new SlowCache();
    const clock = new FakeClock();
    const node = await lab.node({ cache, ports: { ...lab.ports, clock } });
    const first = node.join({ metainfo });
    await first.swarm.metadata(soon());
    let letGo!: () => void;
    cache.hold = new Promise((resolve) => letGo = resolve);
    first.release({ atOnce: true });
    const second = node.join({ metainfo });
    const refused = assertRejects(() => second.swarm.metadata(soon()), MillraceError, "still being closed");
    await clock.advanceAsync(30_000);
    assertEquals((await refused as MillraceError).code, "too_busy");
    second.release({ atOnce: true });
    letGo();
    const third = node.join({ metainfo });
    await third.swarm.metadata(soon());
  });
});

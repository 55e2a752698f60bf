/** Other clients seed, our engine plays: by transport file and by magnet, plain and encrypted. */
import { test } from "node:test";
import { assertLess } from "@std/assert";
import { aria2, libtorrent, makeHybridTorrent, transmission } from "./peers/clients.ts";
import { assertFetched, type Content, withContent } from "./peers/content.ts";
import { allOf, learnPeer, playAll, startPlayback, withOurSeeder, withPlayer } from "./peers/ours.ts";

/**
 * Share of a content that may come twice. A reader of a range that leaves has the blocks ahead of it cancelled; those that
 * the seeder has sent by then come although the next reader asks for them again.
 */
const MAX_WASTED_SHARE = 0.1;

for (const [name, startClient] of [["libtorrent", libtorrent], ["aria2c", aria2]] as const) {
  test(`plays what ${name} seeds, by magnet and by transport file`, async () => {
    await withContent({}, async (content, cleanup) => {
      const seeder = await startClient(content, { mode: "seed" });
      cleanup(() => seeder.stop());
      await playsByMagnet(content, seeder.peer);
      await playsByTransportFile(content, seeder.peer);
    });
  });
}

test("plays a hybrid torrent that libtorrent made and seeds", async () => {
  await withContent({ makeTorrent: makeHybridTorrent }, async (content, cleanup) => {
    const seeder = await libtorrent(content, { mode: "seed" });
    cleanup(() => seeder.stop());
    await playsByMagnet(content, seeder.peer);
  });
});

test("plays from libtorrent in super-seeding mode", async () => {
  await withContent({ filmMib: 1, pieceLengthBytes: 262_144 }, async (content, cleanup) => {
    const seeder = await libtorrent(content, { mode: "seed", superSeeding: true });
    cleanup(() => seeder.stop());
    await playsByMagnet(content, seeder.peer);
  });
});

for (const pieceLengthBytes of [8192, 25_344]) {
  test(`plays pieces of ${pieceLengthBytes} bytes that libtorrent seeds, and libtorrent fetches them from us`, async () => {
    await withContent({ filmMib: 2, pieceLengthBytes }, async (content, cleanup) => {
      const seeder = await libtorrent(content, { mode: "seed" });
      cleanup(() => seeder.stop());
      await playsByMagnet(content, seeder.peer);
      await withOurSeeder(content, {}, async (ours) => {
        const fetcher = await libtorrent(content, { mode: "fetch", peers: [ours.peer] });
        cleanup(() => fetcher.stop());
        await fetcher.done();
        await assertFetched(content, fetcher.directory);
      });
    });
  });
}

test("libtorrent that dials us by uTP first is refused at once and fetches over TCP, when we have no uTP", async () => {
  await withContent({ filmMib: 1 }, async (content, cleanup) => {
    await withOurSeeder(content, { utp: false }, async (ours) => {
      const fetcher = await libtorrent(content, { mode: "fetch", peers: [ours.peer], utp: true });
      cleanup(() => fetcher.stop());
      const dialledMs = performance.now();
      await fetcher.program.line(/^PEERS 1$/, 10_000);
      await fetcher.program.line(/^HAS \d+$/, 10_000);
      // Unanswered, it would repeat its SYN and turn to TCP after four seconds.
      assertLess(performance.now() - dialledMs, 3_500, "from its dial to our pieces, ms");
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    });
  });
});

test("plays from libtorrent that takes encrypted connections only", async () => {
  await withContent({}, async (content, cleanup) => {
    const seeder = await libtorrent(content, { mode: "seed", encrypt: true });
    cleanup(() => seeder.stop());
    await playsByMagnet(content, seeder.peer);
  });
});

// Side by side: transmission-daemon unchokes every ten seconds only.
test("plays what transmission-daemon seeds, by magnet, and with encryption required by transport file", async () => {
  const plain = withContent({}, async (content, cleanup) => {
    const seeder = await transmission(content, { mode: "seed" });
    cleanup(() => seeder.stop());
    await playsByMagnet(content, seeder.peer);
  });
  const encrypted = withContent({}, async (content, cleanup) => {
    const seeder = await transmission(content, { mode: "seed", encrypt: true });
    cleanup(() => seeder.stop());
    await playsByTransportFile(content, seeder.peer);
  });
  await allOf([plain, encrypted]);
});

async function playsByMagnet(content: Content, peer: string): Promise<void> {
  await withPlayer({}, async (player) => {
    await playAll(player, content, { magnet: content.magnet({ peers: [peer] }) });
    const { wastedBytes } = player.engine.swarms.list()[0]!.status();
    assertLess(wastedBytes, content.metainfo.totalBytes * MAX_WASTED_SHARE);
  });
}

/** A transport file names no peer, so the test tells the engine about the peer as discovery would. */
async function playsByTransportFile(content: Content, peer: string): Promise<void> {
  await withPlayer({}, async (player) => {
    const started = startPlayback(player, "getfile", content.transportFile);
    learnPeer(player.engine, content, peer);
    await started;
    await playAll(player, content, content.transportFile);
  });
}

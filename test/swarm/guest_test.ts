/** Swarms of another kind, as broadcasts are, among those of torrents. */
import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { LeasedSwarm } from "../../src/swarm/leases.ts";
import { connectPeer } from "../../src/wire/mod.ts";
import { createPeerId } from "../../src/wire/peer-id.ts";
import { until } from "../support/until.ts";
import { idleHandlers } from "./support/bad-peer.ts";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent } from "./support/torrent.ts";

/** A guest that records the peers it is asked to admit, and admits none. */
function guest(infohashHex: string, peerCount = 0): LeasedSwarm & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    infohashHex,
    asked,
    peers: {
      count: peerCount,
      book: { list: () => [] },
      admit: ({ host }) => (asked.push(host), null),
      pump: () => {},
    },
    lingerMs: () => 0,
    close: () => Promise.resolve(),
  };
}

test("LeasedSwarms.add() ends a torrent swarm of that infohash, whose addresses are known until then", async () => {
  await Lab.run(async (lab) => {
    const torrent = await makeTorrent({ bytes: 65536, pieceLength: 32768 });
    const { infohash, infohashHex } = torrent.metainfo;
    const { manager, join } = await lab.node();
    const magnet = { infohash, infohashHex, name: null, trackers: [], webSeeds: [], selectOnly: null };
    const { swarm } = join({ magnet: { ...magnet, peers: ["127.0.0.1:51413", "198.51.100.1:51414"] } });
    const addresses = swarm.peers.book.list().map(({ address, origin }) => ({ address, origin }));
    assertEquals(addresses, [
      { address: { host: "127.0.0.1", port: 51413 }, origin: "magnet" },
      { address: { host: "198.51.100.1", port: 51414 }, origin: "magnet" },
    ]);
    let left = 0;
    const broadcast = guest(infohashHex);
    manager.swarms.add(broadcast, () => left++);
    const { release } = manager.swarms.lease(broadcast);
    assertEquals(manager.list(), []);
    await swarm.metadata(soon()).then(
      () => assertEquals(true, false),
      (error) => assertEquals(error.code, "closed"),
    );
    assertEquals(assertThrows(() => join({ metainfo: torrent.metainfo }), MillraceError).code, "conflict");
    assertEquals(left, 0);
    release();
    assertEquals(left, 1);
    join({ metainfo: torrent.metainfo });
    assertEquals(manager.list().length, 1);
  });
});

test("SwarmManager offers peers of its infohash to the guest, and counts the guest's connections", async () => {
  await Lab.run(async (lab) => {
    const torrent = await makeTorrent({ bytes: 65536, pieceLength: 32768 });
    const { manager, address } = await lab.node({ maxPeers: 10 });
    const host = guest(torrent.metainfo.infohashHex, 7);
    manager.swarms.add(host, () => {});
    assertEquals(manager.context.globalRoom(), 3);
    const connection = await lab.ports.tcp.connect(address, { signal: soon() });
    let closed = false;
    connectPeer(connection, {
      clock: lab.ports.clock,
      infohash: torrent.metainfo.infohash,
      peerId: createPeerId(),
      handlers: idleHandlers({ close: () => void (closed = true) }),
    });
    await until("the connection is refused", () => closed);
    assertEquals(host.asked, ["127.0.0.1"]);
  });
});

test("SwarmManager dials a peer that leaves before the metadata is known again, after a second", async () => {
  await Lab.run(async (lab) => {
    const torrent = await makeTorrent({ bytes: 65536, pieceLength: 32768 });
    const { infohash, infohashHex } = torrent.metainfo;
    const magnet = { infohash, infohashHex, name: null, trackers: [], webSeeds: [], selectOnly: null };
    const first = await lab.node();
    const { swarm } = first.join({ magnet: { ...magnet, peers: [] } });
    const later = await lab.node();
    const waiting = later.join({ magnet: { ...magnet, peers: [`127.0.0.1:${first.address.port}`] } }).swarm;
    await until(
      "both know only the magnet, and each other",
      () => swarm.peers.count === 1 && waiting.peers.count === 1,
    );
    const host = guest(infohashHex);
    first.manager.swarms.add(host, () => {}); // it found out that this is a broadcast
    await until("the other tries again", () => host.asked.length > 0);
    const [entry] = waiting.peers.book.list();
    assertEquals(entry!.returns, 1);
  });
});

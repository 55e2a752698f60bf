/** Swarms of another kind on the manager's peer port. */
import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { KnownAddress } from "../../src/swarm/address-book.ts";
import type { GuestSwarm } from "../../src/swarm/manager.ts";
import { connectPeer } from "../../src/wire/mod.ts";
import { createPeerId } from "../../src/wire/peer-id.ts";
import { until } from "../support/until.ts";
import { idleHandlers } from "./support/bad-peer.ts";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent } from "./support/torrent.ts";

/** A guest that records the peers it is asked to admit, and admits none. */
function guest(peerCount = 0): GuestSwarm & { readonly asked: string[] } {
  const asked: string[] = [];
  return { asked, peerCount, admit: ({ host }) => (asked.push(host), null), pump: () => {} };
}

test("SwarmManager.host() ends a torrent swarm of that infohash and passes on its addresses", async () => {
  await Lab.run(async (lab) => {
    const torrent = await makeTorrent({ bytes: 65536, pieceLength: 32768 });
    const { infohash, infohashHex } = torrent.metainfo;
    const { manager, join } = await lab.node();
    const magnet = { infohash, infohashHex, name: null, trackers: [], webSeeds: [], selectOnly: null };
    const { swarm } = join({ magnet: { ...magnet, peers: ["127.0.0.1:51413", "198.51.100.1:51414"] } });
    const { addresses, release } = manager.host(infohashHex, guest());
    assertEquals(addresses, [
      { address: { host: "127.0.0.1", port: 51413 }, origin: "magnet" },
      { address: { host: "198.51.100.1", port: 51414 }, origin: "magnet" },
    ]);
    assertEquals(manager.list(), []);
    await swarm.metadata(soon()).then(
      () => assertEquals(true, false),
      (error) => assertEquals(error.code, "closed"),
    );
    for (const again of [() => manager.host(infohashHex, guest()), () => join({ metainfo: torrent.metainfo })]) {
      assertEquals(assertThrows(again, MillraceError).code, "conflict");
    }
    release();
    join({ metainfo: torrent.metainfo });
    assertEquals(manager.list().length, 1);
  });
});

test("SwarmManager offers peers of its infohash to the guest, and counts the guest's connections", async () => {
  await Lab.run(async (lab) => {
    const torrent = await makeTorrent({ bytes: 65536, pieceLength: 32768 });
    const { manager, address } = await lab.node({ maxPeers: 10 });
    const host = guest(7);
    manager.host(torrent.metainfo.infohashHex, host);
    assertEquals(manager.context.globalRoom(), 3);
    const connection = await lab.ports.tcp.connect(address, { signal: soon() });
    let closed = false;
    connectPeer(connection, {
      clock: lab.ports.clock,
      infohash: torrent.metainfo.infohash,
      peerId: createPeerId(),
      handlers: { ...idleHandlers(), close: () => void (closed = true) },
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
    await until("both know only the magnet, and each other", () => swarm.peerCount === 1 && waiting.peerCount === 1);
    const host = guest();
    first.manager.host(infohashHex, host); // it found out that this is a broadcast
    await until("the other tries again", () => host.asked.length > 0);
    const [entry] = waiting.knownAddresses() as readonly KnownAddress[];
    assertEquals(entry!.returns, 1);
  });
});

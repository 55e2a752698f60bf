/** What peers that break the protocol cost themselves, and what they cost others at the same address. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { createPeerId } from "../../src/wire/peer-id.ts";
import { until } from "../support/until.ts";
import { badPeer, honest } from "./support/bad-peer.ts";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent } from "./support/torrent.ts";

// 5 pieces: a bitfield has three spare bits.
const torrent = await makeTorrent({ bytes: 5 * 32_768, pieceLength: 32_768 });

for (
  const [what, bits] of [["spare bits", [0xff]], ["a byte too many", [0xf8, 0]], ["both", [0xff, 0xff]]] as const
) {
  for (const isMagnet of [false, true]) {
    test(`a seed whose bitfield has ${what} serves ${isMagnet ? "a magnet" : "a torrent"}`, async () => {
      await Lab.run(async (lab) => {
        const seed = await badPeer(lab.ports, torrent, (request, answer) => answer(honest(torrent, request)), {
          handlers: (link) => ({
            ready: () => {
              link.setMetadata(torrent.metainfo.infoBytes);
              link.bitfield(Uint8Array.from(bits));
              link.unchoke();
            },
          }),
        });
        try {
          const leecher = await lab.node();
          const magnet = parseMagnet(`magnet:?xt=urn:btih:${torrent.metainfo.infohashHex}`);
          const { swarm } = leecher.join(isMagnet ? { magnet } : { metainfo: torrent.metainfo });
          swarm.addPeer(seed.address);
          await swarm.metadata(soon());
          swarm.setDownloadAll(true);
          await swarm.completed(soon());
          assertEquals(seed.connections, 1);
          assertEquals(leecher.manager.banned(seed.address.host), false);
        } finally {
          await seed.close();
        }
      });
    });
  }
}

test("a liar is banned alone: an honest peer at its address goes on", async () => {
  await Lab.run(async (lab) => {
    const host = "127.0.0.2";
    let isLiarOut = false;
    const liar = await badPeer(lab.ports, torrent, (request, answer) => {
      const bytes = honest(torrent, request);
      bytes[0]! ^= 0xff;
      answer(bytes);
    }, { host, handlers: () => ({ close: () => void (isLiarOut = true) }) });
    const good = await badPeer(lab.ports, torrent, (request, answer) => answer(honest(torrent, request)), {
      host,
      unchoke: false,
    });
    try {
      const leecher = await lab.node();
      const { swarm } = leecher.join({ metainfo: torrent.metainfo });
      swarm.setDownloadAll(true);
      swarm.addPeer(good.address);
      await until("the good peer is there", () => swarm.status().peers === 1);
      swarm.addPeer(liar.address);
      await until("the liar is out", () => isLiarOut);
      assert(leecher.manager.banned(host));
      good.links[0]!.unchoke();
      await swarm.completed(soon());
      assertEquals(good.connections, 1);
    } finally {
      await Promise.all([liar.close(), good.close()]);
    }
  });
});

test("a malformed message costs the connection, the fourth the peer its place, and others at its address nothing", async () => {
  await Lab.run(async (lab) => {
    let ended = 0;
    const clumsy = await badPeer(
      lab.ports,
      torrent,
      // More than there is in any piece.
      (_, answer) => answer(new Uint8Array(40_000)),
      { peerId: createPeerId(), handlers: () => ({ close: () => void ended++ }) },
    );
    const good = await badPeer(lab.ports, torrent, (request, answer) => answer(honest(torrent, request)));
    try {
      const leecher = await lab.node();
      const { swarm } = leecher.join({ metainfo: torrent.metainfo });
      swarm.setDownloadAll(true);
      for (let i = 1; i <= 4; i++) {
        assertEquals(leecher.manager.banned("127.0.0.1"), false);
        swarm.addPeer(clumsy.address);
        await until("the connection ended", () => ended === i);
        await until("the end was noticed", () => swarm.status().peers === 0);
      }
      assertEquals(leecher.manager.banned("127.0.0.1"), true);
      swarm.addPeer(good.address);
      await swarm.completed(soon());
    } finally {
      await Promise.all([clumsy.close(), good.close()]);
    }
  });
});

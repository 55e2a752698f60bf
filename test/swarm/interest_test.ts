import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { Timer } from "../../src/ports.ts";
import { badPeer, type Behaviour, honest } from "./support/bad-peer.ts";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent, type TestTorrent } from "./support/torrent.ts";

/**
 * A seed in super-seeding mode: it offers a piece to a peer that is not interested, and the next one when the peer
 * announces that piece. `says` is how it says at first that it has nothing.
 */
async function superSeed(lab: Lab, torrent: TestTorrent, says: "have none" | "an empty bitfield" | "nothing") {
  const { metainfo } = torrent;
  let next = 0;
  const serve: Behaviour = (request, answer, link) => {
    if (request.piece < next) answer(honest(torrent, request));
    else link.reject(request.piece, request.offset, request.length);
  };
  return await badPeer(lab.ports, torrent, serve, {
    handlers: (link) => {
      let isInterested = false;
      let timer: Timer | null = null;
      const offer = () => {
        if (!isInterested) link.have(next++);
        else timer = lab.ports.clock.setTimeout(offer, 20);
      };
      return {
        ready: () => {
          link.setPieceCount(metainfo.pieceCount, metainfo);
          link.setMetadata(metainfo.infoBytes);
          if (says === "have none") link.haveNone();
          if (says === "an empty bitfield") link.bitfield(new Uint8Array(Math.ceil(metainfo.pieceCount / 8)));
          link.unchoke();
          timer = lab.ports.clock.setTimeout(offer, 20);
        },
        have: (piece) => {
          if (piece === next - 1 && next < metainfo.pieceCount) link.have(next++);
        },
        interested: () => isInterested = true,
        uninterested: () => isInterested = false,
        close: () => timer?.cancel(),
      };
    },
  });
}

for (const says of ["have none", "an empty bitfield", "nothing"] as const) {
  for (const by of ["transport file", "magnet"] as const) {
    test(`TorrentSwarm downloads from a super seed that says ${says}, by ${by}`, async () => {
      const torrent = await makeTorrent({ bytes: 300_000 });
      await Lab.run(async (lab) => {
        const seed = await superSeed(lab, torrent, says);
        try {
          const { infohash, infohashHex } = torrent.metainfo;
          const at = `${seed.address.host}:${seed.address.port}`;
          const magnet = {
            infohash,
            infohashHex,
            name: null,
            trackers: [],
            peers: [at],
            webSeeds: [],
            selectOnly: null,
          };
          const { swarm } = (await lab.node()).join(
            by === "magnet" ? { magnet } : { metainfo: torrent.metainfo, magnet },
          );
          await swarm.metadata(soon());
          const reader = swarm.openReader(0);
          assertEquals(await reader.read(0, 300_000, { signal: soon() }), torrent.data);
        } finally {
          await seed.close();
        }
      });
    });
  }
}

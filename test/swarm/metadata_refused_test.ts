import { createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent, type TestTorrent } from "./support/torrent.ts";

const latin = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

/** A peer over a raw socket that refuses its metadata `refusals` times before it sends it; resolves to its address. */
async function refusingPeer(torrent: TestTorrent, refusals: number) {
  const { infohash, infoBytes } = torrent.metainfo;
  let asked = 0;
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let buffer = Buffer.alloc(0);
    let isShaken = false;
    let theirId = 0;
    const extended = (id: number, body: Buffer) => {
      const head = Buffer.alloc(6);
      head.writeUInt32BE(2 + body.length);
      head[4] = 20;
      head[5] = id;
      socket.write(Buffer.concat([head, body]));
    };
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      buffer = Buffer.concat([buffer, chunk]);
      if (!isShaken) {
        if (buffer.length < 68) return;
        buffer = buffer.subarray(68);
        isShaken = true;
        const reserved = [0, 0, 0, 0, 0, 0x10, 0, 0];
        const protocol = Buffer.from("\u0013BitTorrent protocol", "latin1");
        socket.write(Buffer.concat([protocol, Buffer.from(reserved), infohash, Buffer.alloc(20, 1)]));
        extended(0, Buffer.from(`d1:md11:ut_metadatai1ee13:metadata_sizei${infoBytes.length}ee`));
      }
      while (buffer.length >= 4 && buffer.length >= 4 + buffer.readUInt32BE(0)) {
        const message = buffer.subarray(4, 4 + buffer.readUInt32BE(0));
        buffer = buffer.subarray(4 + message.length);
        if (message[0] !== 20) continue;
        if (message[1] === 0) theirId = Number(/11:ut_metadatai(\d+)e/.exec(latin(message))![1]);
        else if (message[1] === 1) {
          asked++;
          if (asked <= refusals) extended(theirId, Buffer.from("d8:msg_typei2e5:piecei0ee"));
          else {
            const head = Buffer.from(`d8:msg_typei1e5:piecei0e10:total_sizei${infoBytes.length}ee`);
            extended(theirId, Buffer.concat([head, infoBytes]));
          }
        }
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
    connections: () => sockets.length,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test("TorrentSwarm asks the same peer again for metadata that it refused", async () => {
  const torrent = await makeTorrent({ bytes: 100_000 });
  const { infohash, infohashHex } = torrent.metainfo;
  await Lab.run(async (lab) => {
    const peer = await refusingPeer(torrent, 1);
    try {
      const magnet = {
        infohash,
        infohashHex,
        name: null,
        trackers: [],
        peers: [peer.address],
        webSeeds: [],
        selectOnly: null,
      };
      const { swarm } = (await lab.node()).join({ magnet });
      assertEquals((await swarm.metadata(soon())).infohashHex, infohashHex);
      assertEquals([peer.asked(), peer.connections()], [2, 1]);
    } finally {
      peer.close();
    }
  });
});

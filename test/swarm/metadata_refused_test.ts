import { createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent, type TestTorrent } from "./support/torrent.ts";

const latin = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

interface Manner {
  /** How often it refuses its metadata before it sends it. */
  readonly refusals?: number;
  /** Whether its extended handshake says how large its metadata is. Default true. */
  readonly tellsSize?: boolean;
  /** Sent right after that. */
  readonly hello?: Buffer;
}

const message = (id: number, ...numbers: number[]) => {
  const bytes = Buffer.alloc(5 + 4 * numbers.length);
  bytes.writeUInt32BE(bytes.length - 4);
  bytes[4] = id;
  numbers.forEach((number, i) => bytes.writeUInt32BE(number, 5 + 4 * i));
  return bytes;
};

/** A seed over a raw socket, with BEP 6, that chokes forever and serves what it is asked for nevertheless. */
async function stubbornPeer(torrent: TestTorrent, { refusals = 0, tellsSize = true, hello }: Manner) {
  const { infohash, infoBytes } = torrent.metainfo;
  let asked = 0;
  const requested: number[] = [];
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
        const reserved = [0, 0, 0, 0, 0, 0x10, 0, 4];
        const protocol = Buffer.from("\u0013BitTorrent protocol", "latin1");
        socket.write(Buffer.concat([protocol, Buffer.from(reserved), infohash, Buffer.alloc(20, 1)]));
        const size = tellsSize ? `13:metadata_sizei${infoBytes.length}e` : "";
        extended(0, Buffer.from(`d1:md11:ut_metadatai1ee${size}e`));
        if (hello !== undefined) socket.write(hello);
      }
      while (buffer.length >= 4 && buffer.length >= 4 + buffer.readUInt32BE(0)) {
        const message = buffer.subarray(4, 4 + buffer.readUInt32BE(0));
        buffer = buffer.subarray(4 + message.length);
        if (message[0] === 6) {
          requested.push(message.readUInt32BE(1));
          const at = message.readUInt32BE(1) * torrent.metainfo.pieceLengthBytes + message.readUInt32BE(5);
          const block = torrent.data.subarray(at, at + message.readUInt32BE(9));
          const head = Buffer.concat([Buffer.alloc(4), Buffer.from([7]), message.subarray(1, 9)]);
          head.writeUInt32BE(9 + block.length);
          socket.write(Buffer.concat([head, block]));
        }
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
    /** The pieces of its requests, in order. */
    requested: () => requested,
    connections: () => sockets.length,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

const magnetOf = ({ metainfo }: TestTorrent, peer: string) =>
  parseMagnet(`magnet:?xt=urn:btih:${metainfo.infohashHex}&x.pe=${peer}`);

for (const tellsSize of [true, false]) {
  test(`TorrentSwarm asks a peer that ${tellsSize ? "tells" : "does not tell"} its size again for metadata that it refused`, async () => {
    const torrent = await makeTorrent({ bytes: 100_000 });
    await Lab.run(async (lab) => {
      const peer = await stubbornPeer(torrent, { refusals: 1, tellsSize });
      try {
        const { swarm } = (await lab.node()).join({ magnet: magnetOf(torrent, peer.address) });
        assertEquals((await swarm.metadata(soon())).infohashHex, torrent.metainfo.infohashHex);
        assertEquals([peer.asked(), peer.connections()], [2, 1]);
      } finally {
        peer.close();
      }
    });
  });
}

test("TorrentSwarm keeps what a peer allowed and suggested before the metadata", async () => {
  const torrent = await makeTorrent({ bytes: 300_000, pieceLength: 32_768 });
  await Lab.run(async (lab) => {
    const pieces = Array.from({ length: torrent.metainfo.pieceCount }, (_, piece) => piece);
    // Numbers beyond the last piece cannot be recognised before the metadata is known.
    const allowed = [...pieces, 999].map((piece) => message(17, piece));
    const suggested = [7, 999].map((piece) => message(13, piece));
    const peer = await stubbornPeer(torrent, { hello: Buffer.concat([message(14), ...allowed, ...suggested]) });
    try {
      const { swarm } = (await lab.node()).join({ magnet: magnetOf(torrent, peer.address) });
      swarm.setDownloadAll(true);
      await swarm.completed(soon());
      assertEquals(peer.connections(), 1);
      assertEquals(peer.requested()[0], 7);
    } finally {
      peer.close();
    }
  });
});

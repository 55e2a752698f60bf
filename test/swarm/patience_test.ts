import { test } from "node:test";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { assert, assertEquals } from "@std/assert";
import { until } from "../support/until.ts";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent } from "./support/torrent.ts";

const HANDSHAKE_BYTES = 68;

test("TorrentSwarm redials with a bare handshake when the peer ignored data sent with the first one", async () => {
  const torrent = await makeTorrent({ bytes: 100_000 });
  const heard: number[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const index = heard.push(0) - 1;
    sockets.push(socket);
    socket.on("data", (bytes) => heard[index]! += bytes.length).on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await Lab.run(async (lab) => {
      const { swarm } = (await lab.node()).join({ metainfo: torrent.metainfo });
      await swarm.metadata(soon());
      swarm.openReader(0);
      swarm.addPeer({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
      await until("the second dial sent something", () => (heard[1] ?? 0) > 0);
      assert(heard[0]! > HANDSHAKE_BYTES, `the first dial sent ${heard[0]} bytes`);
      assertEquals(heard[1], HANDSHAKE_BYTES);
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});

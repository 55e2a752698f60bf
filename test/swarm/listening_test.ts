/** At which port the engine accepts peers. */
import { test } from "node:test";
import { assertEquals, assertNotEquals } from "@std/assert";
import type { Discovery } from "../../src/discovery/types.ts";
import { Lab } from "./support/lab.ts";

/** An address of this machine at which no other program listens, and from which none dials. */
const HOST = "127.0.31.7";

test("listen() takes the number of the DHT's port when any free one will do, and another when it is taken", async () => {
  await Lab.run(async (lab) => {
    const socket = await lab.ports.udp.bind({ host: HOST });
    const discovery = { dhtPort: socket.address.port, peerDatagrams: socket } as unknown as Discovery;
    const first = await lab.node({ discovery, peerHost: HOST, peerPort: 0 });
    assertEquals(first.address.port, socket.address.port);
    const second = await lab.node({ discovery, peerHost: HOST, peerPort: 0 });
    assertNotEquals(second.address.port, socket.address.port);
    socket.close();
  });
});

/** Strangers that flood the port with SYNs of uTP, and with connections on which nothing comes. */
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { assert, assertLess } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { decodePacket, encodePacket, PACKET } from "../../src/utp/packet.ts";
import { UtpEndpoint } from "../../src/utp/utp-endpoint.ts";
import { until } from "../support/until.ts";
import { costOf, MAX_GROWTH_MIB, withTarget } from "./support/target.ts";

/** How long they come, ms, from how many addresses, and how many SYNs in each turn of 20 ms. */
const FLOOD_MS = 1_000;
const ADDRESSES = 20;
const SYNS = 60;

test("SYNs without end, and silent connections, get few bytes and little memory; others connect afterwards", async () => {
  await withTarget(async (target) => {
    const port = Number(target.peer.split(":")[1]);
    const sockets = Array.from({ length: ADDRESSES }, () => createSocket("udp4"));
    await Promise.all(
      sockets.map((socket, i) => new Promise<void>((done) => socket.bind(0, `127.0.9.${i + 1}`, done))),
    );
    const empty = { timestampUs: 1, timestampDifferenceUs: 0, windowBytes: 100_000, selectiveAck: null };
    const payload = new Uint8Array(0);
    let received = 0;
    let sent = 0;
    for (const socket of sockets) {
      socket.on("message", (data) => {
        received += data.length;
        const reply = decodePacket(new Uint8Array(data));
        if (reply?.type !== PACKET.state) return;
        // It shows that it exists, and says nothing.
        const [connectionId, ack] = [(reply.connectionId + 1) & 0xffff, (reply.seq - 1) & 0xffff];
        const proof = { ...empty, type: PACKET.state, connectionId, seq: 2, ack, payload };
        socket.send(encodePacket(proof), port, "127.0.0.1");
      });
    }
    const { growthMib } = await costOf(target, async () => {
      const untilMs = performance.now() + FLOOD_MS;
      while (performance.now() < untilMs) {
        for (let i = 0; i < SYNS; i++) {
          const syn = { ...empty, type: PACKET.syn, connectionId: sent & 0xffff, seq: 1, ack: 0, payload };
          sockets[sent++ % ADDRESSES]!.send(encodePacket(syn), port, "127.0.0.1");
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    assert(sent > 500 && received > 0, `${sent} SYNs were sent, ${received} bytes came back`);
    assertLess(growthMib, MAX_GROWTH_MIB, "memory on top of what the engine had, MiB");
    // 200 replies at once and 100 a second; a connection that is refused ends with a packet more.
    assertLess(received, (200 + 100 * (FLOOD_MS / 1_000 + 2)) * 2 * 20, "bytes answered");
    for (const socket of sockets) socket.close();
    const { clock, udp } = await loadPorts({ log: { level: "error" } });
    const guest = new UtpEndpoint({ clock, random: Math.random, open: () => udp.bind({ host: "127.0.9.200" }) });
    const ending = new AbortController();
    await until(
      "a guest is connected",
      () => guest.connect({ host: "127.0.0.1", port }, ending).then(() => true, () => false),
    );
    guest.close();
  });
});

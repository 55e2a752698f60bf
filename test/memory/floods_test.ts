/**
 * Floods at the peer port. Apart from the others: it measures the memory of its process, which other tests would share.
 */
import { connect, type Socket } from "node:net";
import process from "node:process";
import { before, test } from "node:test";
import { assert, assertLess } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import type { Ports } from "../../src/ports.ts";
import { assertSameBytes, bytesOf, magnetOf, MIB, startSession } from "../loopback/support.ts";
import { serveEngine } from "../support/engine.ts";
import { noise } from "../support/random.ts";
import { badPeer, honest } from "../swarm/support/bad-peer.ts";
import { makeTorrent, type TestTorrent } from "../swarm/support/torrent.ts";
import { ownMs } from "../support/held-up.ts";

let ports: Ports;
let torrent: TestTorrent;
before(async () => {
  ports = await loadPorts();
  torrent = await makeTorrent({ bytes: 6 * MIB });
});

test("floods and half handshakes at the peer port do not stop playback or new peers", async () => {
  const good = await badPeer(ports, torrent, (request, answer) => answer(honest(torrent, request)));
  const served = await serveEngine({ downloadLimitBytesPerSecond: 3 * MIB });
  const sockets: Socket[] = [];
  const handshake = new Uint8Array(68);
  handshake.set([19, ...new TextEncoder().encode("BitTorrent protocol")]);
  handshake.set(torrent.metainfo.infohash, 28);
  const attack = (bytes: () => Uint8Array | null, everyMs: number) => {
    const socket = connect({
      host: "127.0.0.1",
      port: Number(served.peer.split(":")[1]),
      localAddress: "127.0.0.9",
    });
    sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", () => {});
    socket.on("connect", () => {
      const send = () => {
        const next = socket.destroyed ? null : bytes();
        if (next === null) return;
        socket.write(next);
        setTimeout(send, everyMs).unref();
      };
      send();
    });
  };
  const rss = process.memoryUsage().rss;
  try {
    const started = await startSession(served, "getfile", {
      magnet: magnetOf(torrent.metainfo, good.address),
      _idx: "0",
    });
    for (let n = 0; n < 100; n++) {
      let at = 0;
      attack(() => at < 40 ? handshake.slice(at, ++at) : null, 200);
    }
    for (let n = 0; n < 20; n++) attack(() => noise(50_000, n + 3), 10);
    for (let n = 0; n < 10; n++) {
      let first = true;
      // Requests by the thousand, and a message that announces 1 GiB.
      const request = [0, 0, 0, 13, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0];
      const flood = new Uint8Array(17 * 2_000);
      for (let i = 0; i < 2_000; i++) flood.set(request, 17 * i);
      attack(() => {
        if (!first) return n % 2 === 0 ? flood : new Uint8Array([0x40, 0, 0, 0, 7, ...new Uint8Array(60_000)]);
        first = false;
        const own = handshake.slice();
        own.set(noise(20, 90 + n), 48);
        return own;
      }, 20);
    }
    assertLess(await ownMs(async () => assertSameBytes(await bytesOf(started.playback_url), torrent.data)), 10_000);
    assert(sockets.some((socket) => socket.bytesWritten > 0));
    assertLess(process.memoryUsage().rss - rss, 250 * MIB);
    const joining = await serveEngine({ startTimeoutMs: 8_000 });
    try {
      const other = await startSession(joining, "getfile", {
        magnet: `magnet:?xt=urn:btih:${torrent.metainfo.infohashHex}&x.pe=${served.peer}`,
        _idx: "0",
      });
      assertSameBytes(await bytesOf(other.playback_url, 0, MIB), torrent.data.slice(0, MIB));
    } finally {
      await joining.close();
    }
  } finally {
    for (const socket of sockets) socket.destroy();
    await Promise.all([served.close(), good.close()]);
  }
});

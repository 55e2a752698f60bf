/** Peers that flood the engine with messages, hold its places, or send it garbage by UDP. */
import { createSocket } from "node:dgram";
import type { Socket } from "node:net";
import { test } from "node:test";
import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { startSession } from "../loopback/support.ts";
import { badPeer, honest } from "../swarm/support/bad-peer.ts";
import { makeTorrent, type TestTorrent } from "../swarm/support/torrent.ts";
import { floods } from "./support/floods.ts";
import { dial, flood, greeted, handshake, listen } from "./support/peers.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

const PIECE_BYTES = 16_384;

/** A block of the honest peer takes this long, ms: the torrent is not complete before the test is over. */
const BLOCK_MS = 300;

/** A flood ends earlier when the engine hangs up, ms. */
const MOST_FLOOD_MS = 20_000;

/** Datagrams cannot be hung up on: they come for this long, ms. */
const DATAGRAMS_MS = 2_000;

/** Runs `body` against an engine that downloads `torrent` slowly from an honest peer. */
async function withSwarm(
  body: (target: Target, torrent: TestTorrent) => Promise<void>,
  flags: readonly string[] = [],
  without: readonly string[] = [],
) {
  const ports = await loadPorts({ log: { level: "error" } });
  const torrent = await makeTorrent({ bytes: 2_048 * PIECE_BYTES, pieceLength: PIECE_BYTES });
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const good = await badPeer(ports, torrent, (request, answer) => {
    timers.add(setTimeout(() => answer(honest(torrent, request)), BLOCK_MS));
  });
  try {
    await withTarget(
      async (target) => {
        const magnet =
          `magnet:?xt=urn:btih:${torrent.metainfo.infohashHex}&x.pe=${good.address.host}:${good.address.port}`;
        await startSession(target as never, "getfile", { magnet, _idx: "0" });
        await body(target, torrent);
      },
      flags,
      undefined,
      without,
    );
  } finally {
    for (const timer of timers) clearTimeout(timer);
    await good.close();
  }
}

async function freePort(): Promise<number> {
  const listening = await listen("127.0.0.1");
  await listening.close();
  return listening.address.port;
}

async function join(target: Target, torrent: TestTorrent, host: string): Promise<Socket> {
  const socket = await dial(target.peer, host);
  const answer = greeted(socket);
  socket.write(handshake(torrent.metainfo.infohashHex));
  assert(await answer !== null, `${host} was refused`);
  return socket;
}

test("eighteen peers that flood us with messages delay nobody and are banned", async () => {
  await withSwarm(async (target, torrent) => {
    const kinds = Object.entries(floods(torrent.metainfo.pieceCount));
    const sockets = await Promise.all(kinds.map((_, i) => join(target, torrent, `127.0.4.${i + 1}`)));
    await assertHarmless(target, async () => {
      await Promise.all(kinds.map(([, bytes], i) => flood(sockets[i]!, bytes, MOST_FLOOD_MS)));
    });
    assertEquals(kinds.filter((_, i) => !sockets[i]!.destroyed).map(([name]) => name), []);
    // A flood costs only its peer, known by its id; the third from one address, under whatever id, costs the address.
    for (let i = 0; i < 2; i++) await flood(await join(target, torrent, "127.0.4.1"), kinds[0]![1], MOST_FLOOD_MS);
    await assertRejects(() => join(target, torrent, "127.0.4.1"));
    for (const socket of sockets) socket.destroy();
  });
});

test("five hosts that connect and say nothing keep no other peer out", async () => {
  await withSwarm(async (target, torrent) => {
    const silent: Socket[] = [];
    for (let host = 1; host <= 5; host++) {
      // Beyond its share a host is turned away.
      for (let i = 0; i < 20; i++) await dial(target.peer, `127.0.2.${host}`).then((s) => silent.push(s), () => {});
    }
    assert(silent.length >= 64, `${silent.length} silent connections`);
    const startedMs = performance.now();
    const peer = await join(target, torrent, "127.0.3.1");
    assertLess(performance.now() - startedMs, 2_000, "an honest peer got in after, ms");
    for (const socket of [...silent, peer]) socket.destroy();
  });
});

test("a hundred encrypted handshakes a second delay nobody", async () => {
  await withSwarm(async (target) => {
    const key = new Uint8Array(200).fill(2);
    await assertHarmless(target, async () => {
      for (let round = 0; round < 20; round++) {
        const sockets = await Promise.all(
          Array.from({ length: 10 }, (_, i) => dial(target.peer, `127.0.5.${10 * (round % 20) + i + 1}`)),
        );
        for (const socket of sockets) socket.write(key);
        await new Promise((resolve) => setTimeout(resolve, 50));
        for (const socket of sockets) socket.destroy();
      }
    });
  });
});

test("datagrams to the DHT port, real queries or garbage, delay nobody and are answered at a limited rate", async () => {
  // The DHT takes the number of the peer port.
  const port = await freePort();
  await withSwarm(
    async (target) => {
      const id = () => crypto.getRandomValues(new Uint8Array(20));
      const query = (q: string, more: Record<string, unknown>) =>
        encodeBencode({ t: "aa", y: "q", q, a: { id: id(), ...more } } as never);
      const make = [
        () => query("ping", {}),
        () => query("find_node", { target: id() }),
        () => query("get_peers", { info_hash: id() }),
        () => query("get", { target: id() }),
        () => query("put", { v: "x".repeat(900), token: "x" }),
        () =>
          encodeBencode(
            { t: "aa", y: "r", r: { id: id(), nodes: crypto.getRandomValues(new Uint8Array(208)) } } as never,
          ),
        () => crypto.getRandomValues(new Uint8Array(200)),
        () => new TextEncoder().encode("l".repeat(1_000)),
      ];
      // 5000 a second.
      const datagrams = Array.from({ length: 100 }, (_, i) => make[i % make.length]!());
      const sockets = Array.from({ length: 4 }, () => createSocket("udp4"));
      await Promise.all(
        sockets.map((socket, i) => new Promise<void>((done) => socket.bind(0, `127.0.8.${i + 1}`, done))),
      );
      let received = 0;
      let sent = 0;
      for (const socket of sockets) socket.on("message", (data) => received += data.length);
      await assertHarmless(target, async () => {
        const untilMs = performance.now() + DATAGRAMS_MS;
        while (performance.now() < untilMs) {
          for (const datagram of datagrams) {
            sockets[sent % sockets.length]!.send(datagram, port, "127.0.0.1");
            sent++;
          }
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      });
      for (const socket of sockets) socket.close();
      assert(sent > 3_000, `${sent} datagrams were sent`);
      // 200 answers at once and 200 a second, of 500 bytes at most on the mean.
      assertLess(received, (200 + 200 * (DATAGRAMS_MS / 1_000 + 2)) * 500, "bytes answered");
      assert(received > 0, "the DHT node was not reached");
    },
    ["--peer-port", String(port), "--dht-bootstrap", "127.0.0.1:1"],
    ["--no-dht"],
  );
});

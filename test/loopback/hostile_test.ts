/** Peers, metadata and web seeds that mean harm: playback goes on, or fails with a reason. */
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { before, test } from "node:test";
import { assert, assertEquals, assertLess, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import type { Ports } from "../../src/ports.ts";
import type { TorrentSwarmManager } from "../../src/swarm/manager.ts";
import type { Metainfo } from "../../src/transport/types.ts";
import { serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { badPeer, honest } from "../swarm/support/bad-peer.ts";
import { makeTorrent, noise, type TestTorrent } from "../swarm/support/torrent.ts";
import { ask, assertSameBytes, bytesOf, MIB, startSession } from "./support.ts";

let ports: Ports;
let torrent: TestTorrent;
before(async () => {
  ports = await loadPorts();
  torrent = await makeTorrent({ bytes: 6 * MIB });
});

const magnetOf = (metainfo: Pick<Metainfo, "infohashHex">, ...peers: { host: string; port: number }[]) =>
  `magnet:?xt=urn:btih:${metainfo.infohashHex}${peers.map(({ host, port }) => `&x.pe=${host}:${port}`).join("")}`;

test("a peer that corrupts blocks is banned while playback completes", async () => {
  const liar = await badPeer(ports, torrent, (request, answer) => {
    const bytes = honest(torrent, request);
    if (request.piece % 3 === 0) bytes.fill(0x55, 100, 200);
    answer(bytes);
  }, { host: "127.0.0.2" });
  const good = await badPeer(ports, torrent, (request, answer) => answer(honest(torrent, request)));
  const served = await serveEngine();
  try {
    const started = await startSession(served, "getfile", {
      magnet: magnetOf(torrent.metainfo, liar.address, good.address),
      _idx: "0",
    });
    assertSameBytes(await bytesOf(started.playback_url), torrent.data);
    await until("the liar is banned", () => (served.engine.swarms as TorrentSwarmManager).banned("127.0.0.2"));
    assert(!(served.engine.swarms as TorrentSwarmManager).banned("127.0.0.1"));
    assertLess(served.engine.swarms.list()[0]!.status().wastedBytes, 6 * MIB);
  } finally {
    await Promise.all([served.close(), liar.close(), good.close()]);
  }
});

test("peers that answer slowly or not at all delay nothing beside a good one", async () => {
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const slow = await badPeer(ports, torrent, (request, answer) => {
    timers.add(setTimeout(() => answer(honest(torrent, request)), 2_500));
  }, { host: "127.0.0.3" });
  const mute = await badPeer(ports, torrent, () => {}, { host: "127.0.0.4" });
  const good = await badPeer(ports, torrent, (request, answer) => answer(honest(torrent, request)));
  const served = await serveEngine();
  try {
    const before = performance.now();
    const started = await startSession(served, "getfile", {
      magnet: magnetOf(torrent.metainfo, slow.address, mute.address, good.address),
      _idx: "0",
    });
    assertSameBytes(await bytesOf(started.playback_url), torrent.data);
    assertLess(performance.now() - before, 5_000);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    await Promise.all([served.close(), slow.close(), mute.close(), good.close()]);
  }
});

test("floods and half handshakes at the peer port keep nobody from playing or from joining", async () => {
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
    const before = performance.now();
    assertSameBytes(await bytesOf(started.playback_url), torrent.data);
    assertLess(performance.now() - before, 10_000);
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

const HOSTILE: Record<string, Record<string, unknown>> = {
  "a path that climbs": { files: [{ length: 65_536, path: ["..", "..", "evil.mkv"] }] },
  "a path with a separator": { files: [{ length: 65_536, path: ["/etc/passwd.mkv"] }] },
  "too few hashes": { length: 10 * MIB },
  "a negative length": { length: -1 },
};

for (const [what, fields] of Object.entries(HOSTILE)) {
  test(`metadata with ${what} from peers fails the start at once or is made harmless`, async () => {
    const info = { name: "x.mkv", "piece length": 65_536, pieces: noise(20), ...fields };
    const infoBytes = encodeBencode(info as never);
    const infohash = new Uint8Array(await crypto.subtle.digest("SHA-1", infoBytes as Uint8Array<ArrayBuffer>));
    const infohashHex = Array.from(infohash, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const fake: TestTorrent = { ...torrent, metainfo: { ...torrent.metainfo, infoBytes, infohash, infohashHex } };
    const peer = await badPeer(ports, fake, () => {});
    const served = await serveEngine({ startTimeoutMs: 6_000 });
    try {
      const before = performance.now();
      const { response, error } = await ask(served, "getfile", { magnet: magnetOf({ infohashHex }, peer.address) });
      assertEquals(response, null, "refused");
      assert(!/start timeout/.test(String(error)), String(error));
      assertMatch(String(error), /path|piece|length|hash|transport file/);
      assertLess(performance.now() - before, 3_000);
    } finally {
      await Promise.all([served.close(), peer.close()]);
    }
  });
}

test("a web seed that lies is given up and playback completes from peers", async () => {
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    const range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "");
    const from = Number(range?.[1] ?? 0), to = Number(range?.[2] ?? torrent.data.length - 1);
    response.writeHead(206, {
      "content-length": to - from + 1,
      "content-range": `bytes ${from}-${to}/${torrent.data.length}`,
    });
    response.end(new Uint8Array(to - from + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const good = await badPeer(ports, torrent, (request, answer) => answer(honest(torrent, request)));
  const served = await serveEngine();
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/file.mkv`;
    const started = await startSession(served, "getfile", {
      magnet: `${magnetOf(torrent.metainfo, good.address)}&ws=${encodeURIComponent(url)}`,
      _idx: "0",
    });
    assertSameBytes(await bytesOf(started.playback_url), torrent.data);
    assertLess(asked, 20);
    assert(!(served.engine.swarms as TorrentSwarmManager).banned("127.0.0.1"), "peers of that host are not to blame");
  } finally {
    await Promise.all([served.close(), good.close()]);
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});

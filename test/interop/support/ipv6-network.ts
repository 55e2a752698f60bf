/**
 * libtorrent and our engine in a network of their own: `unshare -n deno run -A ipv6-network.ts v6|both`. "v6": there is no
 * IPv4 at all, not even on loopback. "both": a seed of each family, one socket of ours. Exits with 0 when everything has come.
 */
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../../platform/detect.ts";
import { createEngine, type EngineOptions } from "../../../src/engine.ts";
import { libtorrent, startDht } from "../peers/clients.ts";
import { assertFetched, type Content, withContent } from "../peers/content.ts";
import { playAll, withOurSeeder } from "../peers/ours.ts";

/** Of both: a reply by UDP comes from the address that the kernel prefers, and must be the one that was asked. */
const HOST = "fd00:9::1";
const HOST_V4 = "10.9.0.1";

function ip(...args: readonly string[]): void {
  execFileSync("ip", args, { stdio: "inherit" });
}

/** Plays everything over HTTP at ::1, and at 127.0.0.1 where there is one. */
async function plays(content: Content, magnet: string, options: EngineOptions): Promise<void> {
  const ports = await loadPorts();
  const engine = await createEngine(ports, {
    peerHost: "::",
    peerPort: 0,
    dht: false,
    lsd: false,
    playerDiscovery: false,
    cache: "ram",
    startTimeoutMs: 25_000,
    ...options,
  });
  const server = await ports.http.serve({ host: "::", port: 0 }, (request, info) => engine.fetch(request, info));
  const hosts = isDual ? ["[::1]", "127.0.0.1"] : ["[::1]"];
  for (const host of hosts) {
    const url = `http://${host}:${server.address.port}`;
    const player = { engine, url, peer: "", close: () => engine.close() };
    await playAll(player, content, { magnet });
  }
  await engine.close();
  await server.close(0);
}

/** A tracker on IPv6 that names one peer in `peers6` (BEP 7). */
async function trackerOf(peer: { host: string; port: number }): Promise<{ url: string; close(): Promise<void> }> {
  const groups = peer.host.split("::").map((part) => part.split(":").map((group) => parseInt(group, 16)));
  const address = new Uint8Array(18);
  const view = new DataView(address.buffer);
  groups[0]!.forEach((group, i) => view.setUint16(2 * i, group));
  groups[1]!.forEach((group, i) => view.setUint16(16 - 2 * (groups[1]!.length - i), group));
  view.setUint16(16, peer.port);
  const answer = Buffer.concat([Buffer.from("d8:intervali1800e5:peers0:6:peers618:"), address, Buffer.from("e")]);
  const server = createServer((_request, response) => void response.end(answer));
  await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
  return {
    url: `http://[::1]:${(server.address() as AddressInfo).port}/announce`,
    close: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  };
}

const isDual = process.argv[2] === "both";
ip("link", "set", "lo", "up");
// With multicast, which loopback does not have.
ip("link", "add", "lan", "type", "veth", "peer", "name", "far");
for (const end of ["lan", "far"]) ip("link", "set", end, "up");
ip("addr", "add", `${HOST}/64`, "dev", "lan", "nodad");
if (isDual) ip("addr", "add", `${HOST_V4}/32`, "dev", "lo");
else ip("addr", "del", "127.0.0.1/8", "dev", "lo");
assertEquals(execFileSync("ip", ["-4", "addr"], { encoding: "utf8" }).includes("inet"), isDual);

await withContent({ filmMib: 1 }, async (content, cleanup) => {
  const v6 = await libtorrent(content, { mode: "seed", host: `[${HOST}]`, utp: true });
  cleanup(() => v6.stop());
  // The user names the peer.
  await plays(content, content.magnet({ peers: [v6.peer] }), {});
  // A tracker does.
  const tracker = await trackerOf({ host: HOST, port: Number(v6.peer.split(":").at(-1)) });
  cleanup(() => tracker.close());
  await plays(content, content.magnet({ trackers: [tracker.url] }), {});
  // They tell each other in the local network.
  const local = await libtorrent(content, { mode: "seed", host: `[${HOST}]`, lsd: true });
  cleanup(() => local.stop());
  await plays(content, content.magnet(), { lsd: true });
  // One who has nothing tells by PEX of one who has everything (`added6`).
  const known = await libtorrent(content, { mode: "seed", host: `[${HOST}]`, pex: true });
  cleanup(() => known.stop());
  const between = await libtorrent(content, { mode: "idle", host: `[${HOST}]`, pex: true, peers: [known.peer] });
  cleanup(() => between.stop());
  await between.program.line(/^PEERS 1$/);
  await plays(content, content.magnet({ peers: [between.peer] }), {});
  // TCP is taken and hung up: what comes, comes over uTP.
  const hosts = isDual ? [`[${HOST}]`, HOST_V4] : [`[${HOST}]`];
  for (const host of hosts) {
    const seed = await libtorrent(content, { mode: "seed", host, utp: "only" });
    await plays(content, content.magnet({ peers: [seed.peer] }), {});
    await seed.stop();
  }
  // The DHT does (BEP 32), in both directions. What only the DHT of the other family knows does not help.
  for (const host of hosts) {
    const dht = await startDht(3, host);
    cleanup(() => dht.stop());
    const found = await libtorrent(content, { mode: "seed", host, dhtNode: dht.nodes[0]! });
    await plays(content, content.magnet(), { dht: true, dhtBootstrap: [dht.nodes[1]!] });
    await found.stop();
    await withOurSeeder(content, { peerHost: "::", dht: true, dhtBootstrap: [dht.nodes[2]!] }, async () => {
      const fetcher = await libtorrent(content, {
        mode: "fetch",
        magnet: content.magnet(),
        host,
        dhtNode: dht.nodes[0]!,
      });
      cleanup(() => fetcher.stop());
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    });
    await dht.stop();
  }
  // They fetch from us, by TCP and by uTP, and hear of each other by PEX.
  await withOurSeeder(content, { peerHost: "::" }, async (ours) => {
    const peer = `[${HOST}]:${ours.engine.peerAddress!.port}`;
    for (const utp of [false, "only"] as const) {
      const fetcher = await libtorrent(content, { mode: "fetch", host: `[${HOST}]`, peers: [peer], utp });
      cleanup(() => fetcher.stop());
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    }
  });
});
process.exit(0);

/**
 * libtorrent and our engine in a network of their own: `unshare -n deno run -A ipv6-network.ts v4|v6|both`. "v4" and "v6": the
 * other family is missing, even on loopback. "both": a seed of each family, one socket of ours. The engine is told no address
 * to listen at. Exits with 0 when everything has come.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../../platform/detect.ts";
import { encodeAddress } from "../../../src/egress/socks-address.ts";
import { createEngine, type EngineOptions } from "../../../src/engine.ts";
import type { SocketAddress } from "../../../src/ports.ts";
import { libtorrent, startDht } from "../peers/clients.ts";
import { assertFetched, type Content, withContent } from "../peers/content.ts";
import { playAll, withOurSeeder } from "../peers/ours.ts";

const FAMILIES = { hasIpv4: process.argv[2] !== "v6", hasIpv6: process.argv[2] !== "v4" };
/** Of both: a reply by UDP comes from the address that the kernel prefers, and must be the one that was asked. */
const HOST = "fd00:9::1";
const HOST_V4 = "10.9.0.1";
/** As programs are told them, by family. */
const HOSTS = [...FAMILIES.hasIpv6 ? [`[${HOST}]`] : [], ...FAMILIES.hasIpv4 ? [HOST_V4] : []];
const LOOPBACK = [...FAMILIES.hasIpv6 ? ["[::1]"] : [], ...FAMILIES.hasIpv4 ? ["127.0.0.1"] : []];

function ip(...args: readonly string[]): void {
  execFileSync("ip", args, { stdio: "inherit" });
}

/** Plays everything over HTTP at ::1, and at 127.0.0.1 where there is one. */
async function plays(content: Content, magnet: string, options: EngineOptions): Promise<void> {
  const ports = await loadPorts();
  const engine = await createEngine(ports, {
    peerPort: 0,
    dht: false,
    lsd: false,
    playerDiscovery: false,
    cache: "ram",
    startTimeoutMs: 25_000,
    ...options,
  });
  const server = await ports.http.serve({ host: "::", port: 0 }, (request, info) => engine.fetch(request, info));
  for (const host of LOOPBACK) {
    const url = `http://${host}:${server.address.port}`;
    const player = { engine, url, peer: "", close: () => engine.close() };
    await playAll(player, content, { magnet });
  }
  await engine.close();
  await server.close(0);
}

/** A tracker that names one peer: in `peers6` (BEP 7) on IPv6, in `peers` (BEP 23) on IPv4. */
async function trackerOf(peer: SocketAddress): Promise<{ url: string; close(): Promise<void> }> {
  // As SOCKS writes it, without the byte that tells the family.
  const compact = encodeAddress(peer).subarray(1);
  const lists = compact.length === 18 ? ["5:peers0:6:peers618:", compact] : ["5:peers6:", compact];
  const answer = Buffer.concat(["d8:intervali1800e", ...lists, "e"].map((part) => Buffer.from(part as string)));
  const server = createServer((_request, response) => void response.end(answer));
  await new Promise<void>((resolve) => server.listen(0, LOOPBACK[0]!.replace(/[[\]]/g, ""), resolve));
  return {
    url: `http://${LOOPBACK[0]}:${(server.address() as AddressInfo).port}/announce`,
    close: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  };
}

ip("link", "set", "lo", "up");
// With multicast, which loopback does not have.
ip("link", "add", "lan", "type", "veth", "peer", "name", "far");
for (const end of ["lan", "far"]) ip("link", "set", end, "up");
const { hasIpv4, hasIpv6 } = FAMILIES;
if (hasIpv6) ip("addr", "add", `${HOST}/64`, "dev", "lan", "nodad");
else writeFileSync("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
if (hasIpv4) ip("addr", "add", `${HOST_V4}/24`, "dev", hasIpv6 ? "lo" : "lan");
else ip("addr", "del", "127.0.0.1/8", "dev", "lo");
// Multicast of IPv4 leaves by a route.
if (!hasIpv6) ip("route", "add", "default", "dev", "lan");
assertEquals(execFileSync("ip", ["-4", "addr"], { encoding: "utf8" }).includes("inet "), hasIpv4);
assertEquals(execFileSync("ip", ["-6", "addr"], { encoding: "utf8" }).includes("inet6"), hasIpv6);

await withContent({ filmMib: 1 }, async (content, cleanup) => {
  const first = HOSTS[0]!;
  const named = await libtorrent(content, { mode: "seed", host: first, utp: true });
  cleanup(() => named.stop());
  // The user names the peer.
  await plays(content, content.magnet({ peers: [named.peer] }), {});
  // A tracker does.
  const tracker = await trackerOf({
    host: FAMILIES.hasIpv6 ? HOST : HOST_V4,
    port: Number(named.peer.split(":").at(-1)),
  });
  cleanup(() => tracker.close());
  await plays(content, content.magnet({ trackers: [tracker.url] }), {});
  // They tell each other in the local network.
  const local = await libtorrent(content, { mode: "seed", host: first, lsd: true });
  cleanup(() => local.stop());
  await plays(content, content.magnet(), { lsd: true });
  // One who has nothing tells by PEX of one who has everything (`added6`).
  const known = await libtorrent(content, { mode: "seed", host: first, pex: true });
  cleanup(() => known.stop());
  const between = await libtorrent(content, { mode: "idle", host: first, pex: true, peers: [known.peer] });
  cleanup(() => between.stop());
  await between.program.line(/^PEERS 1$/);
  await plays(content, content.magnet({ peers: [between.peer] }), {});
  // TCP is taken and hung up: what comes, comes over uTP.
  for (const host of HOSTS) {
    const seed = await libtorrent(content, { mode: "seed", host, utp: "only" });
    await plays(content, content.magnet({ peers: [seed.peer] }), {});
    await seed.stop();
  }
  // The DHT does (BEP 32), in both directions. What only the DHT of the other family knows does not help.
  for (const host of HOSTS) {
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
    const peer = `${first}:${ours.engine.peerAddress!.port}`;
    for (const utp of [false, "only"] as const) {
      const fetcher = await libtorrent(content, { mode: "fetch", host: first, peers: [peer], utp });
      cleanup(() => fetcher.stop());
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    }
  });
});
process.exit(0);

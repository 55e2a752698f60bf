import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { NetworkSurroundings } from "../../src/discovery/nearness.ts";
import type { PeerOrigin, ServerScope } from "../../src/discovery/types.ts";
import type { SocketAddress } from "../../src/ports.ts";
import { DialRule, SwarmDialRule } from "../../src/swarm/neighbours/dial-rule.ts";
import { learnNamedPeers } from "../../src/swarm/neighbours/named-peers.ts";
import { Lab, soon } from "./support/lab.ts";
import { makeTorrent } from "./support/torrent.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";

const OWN = "8.9.10.11";
const NEIGHBOUR = "8.9.10.99";
const PUBLIC = "1.2.3.4";
const PRIVATE = "192.168.1.7";
const interfaces = () => [
  { name: "lo", host: "127.0.0.1", prefixLength: 8, family: 4 as const, loopback: true },
  { name: "eth0", host: OWN, prefixLength: 24, family: 4 as const, loopback: false },
  { name: "eth1", host: "192.168.1.5", prefixLength: 24, family: 4 as const, loopback: false },
];
const rule = new DialRule(new NetworkSurroundings({ interfaces }, () => 0));

function allows(host: string, origin: PeerOrigin, source: string | null, scope: ServerScope, port = 51413): boolean {
  return rule.allows({ address: { host, port }, origin, source, scope });
}

test("DialRule.allows() lets nobody name a peer nearer to us than the one who names it", () => {
  const loopback = "127.0.0.1";
  // Address, origin, source, allowed in a swarm of a foreign caller, allowed in one of a caller on this machine.
  const table: [string, PeerOrigin, string | null, boolean, boolean][] = [
    [loopback, "magnet", null, false, true],
    [OWN, "magnet", null, false, true],
    ["::1", "magnet", null, false, true],
    ["::7f00:1", "magnet", null, false, true],
    ["64:ff9b::7f00:1", "magnet", null, false, true],
    [PRIVATE, "magnet", null, false, true],
    ["169.254.169.254", "magnet", null, false, true],
    ["::c0a8:107", "magnet", null, false, true],
    [NEIGHBOUR, "magnet", null, false, true],
    [PUBLIC, "magnet", null, true, true],
    ["localhost", "magnet", null, false, false],

    [loopback, "tracker", PUBLIC, false, false],
    [loopback, "tracker", null, false, false],
    [loopback, "tracker", PRIVATE, false, false],
    [loopback, "tracker", loopback, false, true],
    [OWN, "tracker", PUBLIC, false, false],
    [OWN, "tracker", loopback, false, true],
    [PRIVATE, "tracker", PUBLIC, false, false],
    [PRIVATE, "tracker", null, false, false],
    [PRIVATE, "tracker", "10.0.0.1", true, true],
    [PRIVATE, "tracker", loopback, true, true],
    [NEIGHBOUR, "tracker", PUBLIC, true, true],
    [PUBLIC, "tracker", null, true, true],

    [loopback, "dht", PUBLIC, false, false],
    [PRIVATE, "dht", PUBLIC, false, false],
    [loopback, "dht", loopback, false, true],
    [PUBLIC, "dht", PUBLIC, true, true],

    [loopback, "pex", PUBLIC, false, false],
    [PRIVATE, "pex", PUBLIC, false, false],
    [loopback, "pex", PRIVATE, false, false],
    [PRIVATE, "pex", PRIVATE, true, true],
    [loopback, "pex", "::1", false, true],
    [PUBLIC, "pex", PUBLIC, true, true],

    [loopback, "lsd", null, false, true],
    [PRIVATE, "lsd", null, true, true],
    [loopback, "incoming", null, false, true],
    [PRIVATE, "incoming", null, true, true],
    [PUBLIC, "incoming", null, true, true],
  ];
  for (const [host, origin, source, foreign, local] of table) {
    const what = `${host} by ${origin} ${source}`;
    assertEquals(allows(host, origin, source, "public"), foreign, `${what}, foreign caller`);
    assertEquals(allows(host, origin, source, "any"), local, `${what}, caller on this machine`);
  }
});

test("DialRule.allows() refuses service ports in the local network, and mail ports everywhere", () => {
  for (const port of [22, 80, 443, 1023, 6379, 11211, 5432, 8080, 27017, 9100]) {
    for (const host of ["127.0.0.1", OWN, PRIVATE, NEIGHBOUR]) {
      assertEquals(allows(host, "magnet", null, "any", port), false, `${host}:${port}`);
    }
    assertEquals(allows(PUBLIC, "tracker", null, "any", port), true, `${PUBLIC}:${port}`);
  }
  for (const port of [25, 110, 587]) assertEquals(allows(PUBLIC, "dht", null, "any", port), false, `mail ${port}`);
  for (const port of [6881, 6999, 8621, 32768, 49152, 51413, 65535]) {
    assertEquals(allows("127.0.0.1", "magnet", null, "any", port), true, `${port}`);
  }
});

test("SwarmDialRule.allows() widens when a caller on this machine joins, but judges each caller's magnet separately", () => {
  const swarm = new SwarmDialRule(rule);
  const peer = { host: "127.0.0.1", port: 51413 };
  swarm.joinedBy("public");
  assertEquals(swarm.allows(peer, "pex", "127.0.0.1"), false);
  swarm.joinedBy("any");
  swarm.joinedBy("public");
  assertEquals(swarm.allows(peer, "pex", "127.0.0.1"), true);
  assertEquals(swarm.allows(peer, "magnet", null, "public"), false);
});

test("SwarmDialRule.joinedBy() returns the newest peers that only its caller may use, once", () => {
  const swarm = new SwarmDialRule(rule);
  const told = (host: string, port: number, source: string | null) =>
    ({ address: { host, port }, origin: "tracker", source }) as const;
  for (let port = 20_000; port < 20_300; port++) swarm.keep(told("127.0.0.1", port, "127.0.0.1"));
  swarm.keep(told("127.0.0.1", 51413, PUBLIC));
  swarm.keep(told("127.0.0.1", 22, "127.0.0.1"));
  assertEquals(swarm.joinedBy("public"), []);
  const kept = swarm.joinedBy("any");
  assertEquals([kept.length, kept[0]!.address.port, kept.at(-1)!.address.port], [200, 20_100, 20_299]);
  swarm.keep(told("127.0.0.1", 51413, "127.0.0.1"));
  assertEquals(swarm.joinedBy("any"), []);
});

test("TorrentSwarm dials what a tracker told a foreign caller when one on this machine joins", async () => {
  const torrent = await makeTorrent({ bytes: 65536, pieceLength: 32768 });
  const { infohash, infohashHex } = torrent.metainfo;
  const magnet = { infohash, infohashHex, name: null, trackers: [], peers: [], webSeeds: [], selectOnly: null };
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent);
    const { join } = await lab.node();
    const { swarm } = join({ magnet, servers: "public" });
    swarm.peers.learn(seeder.address, "tracker", "127.0.0.1");
    join({ magnet, servers: "public" });
    assertEquals(swarm.peers.book.size, 0);
    join({ magnet });
    assertEquals(swarm.peers.book.list().map(({ address }) => address), [seeder.address]);
    assertEquals((await swarm.metadata(soon())).infohashHex, infohashHex);
  });
});

test("learnNamedPeers() reports literal addresses at once, names only after resolving them", async () => {
  const looked: string[] = [];
  const network = {
    interfaces,
    resolve: (host: string) => {
      looked.push(host);
      return host === "two.example" ? Promise.resolve(["127.0.0.1", "::ffff:1.2.3.4"]) : Promise.reject(new Error());
    },
  };
  const learnt: SocketAddress[] = [];
  const texts = ["10.0.0.1:7", "[::1]:8", "two.example:9", "none.example:9", "nonsense"];
  learnNamedPeers(
    { clock: new FakeClock(), network },
    { infohashHex: "ab", texts },
    new AbortController().signal,
    (peer) => learnt.push(peer),
  );
  assertEquals(learnt, [{ host: "10.0.0.1", port: 7 }, { host: "::1", port: 8 }]);
  await settle();
  assertEquals(looked, ["two.example", "none.example"]);
  assertEquals(learnt.slice(2), [{ host: "127.0.0.1", port: 9 }, { host: "1.2.3.4", port: 9 }]);
});

test("learnNamedPeers() resolves only a few names per magnet", async () => {
  let looked = 0;
  const network = { interfaces, resolve: () => (looked++, Promise.resolve(["1.2.3.4"])) };
  const texts = Array.from({ length: 100 }, (_, n) => `host${n}.example:9`);
  learnNamedPeers(
    { clock: new FakeClock(), network },
    { infohashHex: "ab", texts },
    new AbortController().signal,
    () => {},
  );
  await settle();
  assertEquals(looked, 16);
});

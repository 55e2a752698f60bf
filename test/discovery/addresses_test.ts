import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import {
  canonicalHost,
  embeddedIpv4,
  isLocalName,
  isPublicHost,
  isUsable,
  parseCompact,
  parseHostPort,
} from "../../src/discovery/addresses.ts";
import { nearnessOf, NetworkSurroundings } from "../../src/discovery/nearness.ts";
import { decodeTable, encodeTable } from "../../src/discovery/dht-table-file.ts";
import { PeerSink } from "../../src/discovery/peer-sink.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("canonicalHost() normalises addresses and rejects names and odd IPv4 forms", () => {
  const table: [string, string | null][] = [
    ["10.0.0.1", "10.0.0.1"],
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["fe80::1%eth0", "fe80::1"],
    ["127.1", null],
    ["0x7f000001", null],
    ["example.org", null],
    ["", null],
  ];
  for (const [host, expected] of table) assertEquals(canonicalHost(host), expected);
});

test("isUsable() rejects addresses where no peer can listen", () => {
  const bad = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "name"];
  for (const host of bad) assert(!isUsable({ host, port: 1 }), host);
  for (const port of [0, -1, 65536]) assert(!isUsable({ host: "10.0.0.1", port }));
  for (const host of ["10.0.0.1", "127.0.0.1", "2001:db8::1"]) assert(isUsable({ host, port: 65535 }));
});

test("isLocalName() distinguishes this machine and private networks from public hosts", () => {
  for (const name of ["localhost", "a.localhost", "127.0.0.1", "[::1]", "192.168.0.1", "169.254.1.1", "[fe80::1]"]) {
    assert(isLocalName(name), name);
  }
  for (const name of ["example.org", "8.8.8.8", "[2606:4700::1]"]) assert(!isLocalName(name), name);
});

test("isPublicHost() is false for private IPv4 addresses in every IPv6 notation", () => {
  const notPublic = [
    "127.0.0.1",
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "198.18.0.1",
    "::1",
    "::",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "::10.0.0.1",
    "::a00:1",
    "::7f00:1",
    "::ffff:0:192.168.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2002:c0a8:1::1",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "fc00::1",
    "fe80::1",
    "fec0::1",
    "4000::1",
    "localhost",
  ];
  for (const host of notPublic) assert(!isPublicHost(host), host);
  for (const host of ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]) {
    assert(isPublicHost(host), host);
  }
});

test("embeddedIpv4() finds the IPv4 address that a gateway would translate to", () => {
  const table: [string, string | null][] = [
    ["::a00:1", "10.0.0.1"],
    ["::ffff:0:10.0.0.1", "10.0.0.1"],
    ["64:ff9b::10.0.0.1", "10.0.0.1"],
    ["2002:a00:1::5", "10.0.0.1"],
    ["2001:0:4136:e378:8000:63bf:f5ff:fffe", "10.0.0.1"],
    ["::1", null],
    ["::", null],
    ["2606:4700::1111", null],
    ["10.0.0.1", null],
  ];
  for (const [host, expected] of table) assertEquals(embeddedIpv4(host), expected, host);
});

test("nearnessOf() distinguishes this machine, its subnets and private networks from the public network", () => {
  const interfaces = [
    { name: "lo", host: "127.0.0.1", prefixLength: 8, family: 4, loopback: true },
    { name: "eth0", host: "93.184.216.34", prefixLength: 24, family: 4, loopback: false },
    { name: "eth1", host: "192.168.1.5", prefixLength: 24, family: 4, loopback: false },
    { name: "eth0", host: "2606:4700:1::5", prefixLength: 64, family: 6, loopback: false },
    { name: "tun0", host: "8.8.4.4", prefixLength: 0, family: 4, loopback: false },
  ] as const;
  const table: [string, ReturnType<typeof nearnessOf>][] = [
    ["127.0.0.9", "own"],
    ["::1", "own"],
    ["0.0.0.0", "own"],
    ["93.184.216.34", "own"],
    ["::ffff:93.184.216.34", "own"],
    ["64:ff9b::93.184.216.34", "own"],
    ["::7f00:1", "own"],
    ["192.168.1.5", "own"],
    ["2606:4700:1:0:0:0:0:5", "own"],
    ["192.168.1.6", "private"],
    ["10.0.0.1", "private"],
    ["fe80::1%eth0", "private"],
    ["64:ff9b::10.0.0.1", "private"],
    ["93.184.216.99", "neighbour"],
    ["2606:4700:1::99", "neighbour"],
    ["93.184.217.1", "public"],
    ["2606:4700:2::1", "public"],
    ["example.org", null],
  ];
  for (const [host, expected] of table) assertEquals(nearnessOf(host, interfaces), expected, host);
});

test("Surroundings.nearness() notices an address that this machine acquires later", () => {
  const clock = new FakeClock();
  let host = "10.0.0.1";
  const network = {
    interfaces: () => [{ name: "eth0", host, prefixLength: 24, family: 4 as const, loopback: false }],
  };
  const surroundings = new NetworkSurroundings(network, () => clock.monotonic());
  assertEquals(surroundings.nearness("10.0.0.1"), "own");
  host = "10.0.0.2";
  clock.advance(5_000);
  assertEquals(surroundings.nearness("10.0.0.1"), "private");
  assertEquals(surroundings.nearness("10.0.0.2"), "own");
});

test("parseHostPort() reads names, IPv4 and bracketed IPv6", () => {
  assertEquals(parseHostPort("dht.example:6881"), { host: "dht.example", port: 6881 });
  assertEquals(parseHostPort("[::1]:1"), { host: "::1", port: 1 });
  for (const text of ["", "a", "a:0", "a:65536", "::1:5", "a b:1", "a/b:1"]) assertEquals(parseHostPort(text), null);
});

test("parseCompact() returns IPv6 in the runtimes' notation, and IPv4 within IPv6 as IPv4", () => {
  const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1, 0, 80];
  const peers = parseCompact(new Uint8Array([...mapped, 0x20, 1, 0xd, 0xb8, ...new Array(11).fill(0), 9, 1, 0, 7]), 18);
  assertEquals(peers, [{ host: "10.0.0.1", port: 80 }, { host: "2001:db8::9", port: 256 }]);
});

test("decodeTable() reads what encodeTable() wrote, skips bad nodes and survives damage", () => {
  const id = new Uint8Array(20).fill(5);
  const nodes = Array.from({ length: 400 }, (_, n) => ({ id, host: "10.0.0.1", port: n + 1 }));
  const bytes = encodeTable({ id, nodes });
  assertEquals(decodeTable(bytes), { id, nodes: nodes.slice(0, 300) });
  const odd = JSON.parse(new TextDecoder().decode(bytes));
  odd.nodes = [null, 5, { id: "x", host: "10.0.0.1", port: 1 }, { ...odd.nodes[0], host: "name" }, odd.nodes[1]];
  assertEquals(decodeTable(new TextEncoder().encode(JSON.stringify(odd)))?.nodes, [nodes[1]!]);
  for (const text of ["", "{", "null", "[]", '{"version":1}', '{"version":2,"id":"","nodes":[]}']) {
    assertEquals(decodeTable(new TextEncoder().encode(text)), null);
  }
  for (let cut = 0; cut < 200; cut++) assertEquals(decodeTable(bytes.slice(0, cut)), null);
});

test("PeerSink.add() passes on an address once in 30 s, in any notation, and nothing after close()", () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  const sink = new PeerSink(clock, (peer, origin) => seen.push(`${peer.host}:${peer.port} ${origin}`));
  sink.add({ host: "8.0.0.1", port: 5 }, "tracker", null);
  sink.add({ host: "::ffff:8.0.0.1", port: 5 }, "dht", "8.8.8.8");
  sink.add({ host: "0.0.0.0", port: 5 }, "dht", "8.8.8.8");
  clock.advance(30_000);
  sink.add({ host: "8.0.0.1", port: 5 }, "lsd", null);
  assertEquals(seen, ["8.0.0.1:5 tracker", "8.0.0.1:5 lsd"]);
  for (let n = 1; n <= 2_001; n++) sink.add({ host: "8.0.0.2", port: n }, "dht", null);
  sink.add({ host: "8.0.0.2", port: 1 }, "dht", null);
  sink.add({ host: "8.0.0.2", port: 2_001 }, "dht", null);
  assertEquals(seen.length, 2 + 2_001 + 1);
  sink.close();
  sink.add({ host: "8.0.0.3", port: 1 }, "dht", null);
  assertEquals(seen.length, 2_004);
});

test("PeerSink.add() passes on a private address once per source", () => {
  const seen: string[] = [];
  const sink = new PeerSink(new FakeClock(), (_, origin, source) => seen.push(`${origin} ${source}`));
  const peer = { host: "10.0.0.1", port: 5 };
  sink.add(peer, "dht", "8.8.8.8");
  sink.add(peer, "dht", "8.8.8.8");
  sink.add(peer, "lsd", "10.0.0.1");
  assertEquals(seen, ["dht 8.8.8.8", "lsd 10.0.0.1"]);
});

test("isPublicHost() recognises private, loopback, link-local and mapped ranges", () => {
  for (
    const host of [
      "10.0.0.1",
      "127.0.0.1",
      "169.254.1.1",
      "192.168.0.1",
      "172.16.0.1",
      "100.64.0.1",
      "::1",
      "::",
      "fe80::1",
      "fd00::1",
      "::ffff:10.0.0.1",
      "64:ff9b::7f00:1",
      "0.0.0.0",
      "224.0.0.1",
      "255.255.255.255",
      "x",
    ]
  ) {
    assertEquals(isPublicHost(host), false, host);
  }
  for (const host of ["8.8.8.8", "2606:4700::1111"]) assertEquals(isPublicHost(host), true, host);
});

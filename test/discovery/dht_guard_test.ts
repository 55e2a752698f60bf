/** A DHT node that strangers flood, fill and mislead. */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { decodeBencode, encodeBencode } from "../../src/bytes/bencode.ts";
import { QueryRates, TablePlaces, withoutNearer } from "../../src/discovery/dht-guard.ts";
import { nearnessOf } from "../../src/discovery/nearness.ts";
import type { SocketAddress } from "../../src/ports.ts";
import { settle } from "../support/fake-clock.ts";
import { id, publicHost, text, withNode } from "./support/dht-network.ts";

const nearness = (host: string) => nearnessOf(host, []);
const never = new AbortController().signal;

test("a node that only sends queries enters the table once it replied to a ping", async () => {
  await withNode((node, network) => {
    network.query(1, "8.8.8.8");
    assertEquals(node.nodeCount, 0);
    network.answerAll();
    assertEquals(node.nodeCount, 1);
  });
});

test("unsolicited replies, and replies from another address, are dropped", async () => {
  await withNode((node, network) => {
    network.deliver({ t: "aa", y: "r", r: { id: id(1) } }, "8.8.8.8");
    node.addNode({ host: "9.9.9.9", port: 6881 });
    const { t } = network.sent.at(-1)!.message;
    network.deliver({ t, y: "r", r: { id: id(2) } }, "8.8.4.4");
    network.deliver({ t, y: "r", r: { id: id(2) } }, "9.9.9.9", 6882);
    assertEquals(node.nodeCount, 0);
    network.deliver({ t, y: "r", r: { id: id(2) } }, "9.9.9.9");
    assertEquals(node.nodeCount, 1);
  });
});

test("one address gets one place in the table, and one network a few", async () => {
  await withNode((node, network, clock) => {
    for (let n = 1; n <= 200; n++) {
      network.query(n, "8.8.8.8");
      network.answerAll();
      clock.advance(5_000);
    }
    assertEquals(node.nodeCount, 1);
    for (let n = 1; n <= 200; n++) {
      network.query(n, `9.9.9.${n}`);
      network.answerAll();
      clock.advance(5_000);
    }
    assertEquals(node.nodeCount, 5);
    for (let n = 1; n <= 10; n++) {
      network.query(100 + n, publicHost(n));
      network.answerAll();
      clock.advance(5_000);
    }
    assertEquals(node.nodeCount, 15);
  });
});

test("a flood of queries from many addresses causes few pings, and few replies per address", async () => {
  await withNode((_node, network) => {
    for (let n = 1; n <= 1_000; n++) network.query(n, publicHost(n));
    const pings = network.sent.filter(({ message }) => text(message["q"]) === "ping");
    assertLess(pings.length, 17);
    network.sent.length = 0;
    // Even while the node awaits a reply from there.
    for (let n = 0; n < 1_000; n++) network.query(1, "7.7.7.7");
    for (let n = 0; n < 1_000; n++) network.query(1, publicHost(1));
    assertLess(network.sent.length, 110);
  });
});

test("a reply is at most a few times longer than its query, however much is known", async () => {
  await withNode((node, network, clock) => {
    for (let n = 1; n <= 60; n++) {
      network.query(n, publicHost(n));
      network.answerAll();
      clock.advance(5_000);
    }
    assert(node.nodeCount >= 20, `${node.nodeCount} nodes`);
    network.sent.length = 0;
    const infohash = new Uint8Array(20).fill(3);
    network.query(200, "8.100.1.1", "find_node", { target: infohash });
    const nodes = network.sent.find(({ message }) => text(message["y"]) === "r")!;
    assertLess(nodes.bytes, 300);
    // Many peers of one torrent, each announced by a different host.
    for (let n = 1; n <= 300; n++) {
      const host = publicHost(1_000 + n);
      clock.advance(20);
      network.query(201, host, "get_peers", { info_hash: infohash });
      const told = network.sent.find(({ message, to }) => to.host === host && text(message["y"]) === "r")!;
      const { token } = told.message["r"] as { token: Uint8Array };
      network.query(201, host, "announce_peer", { info_hash: infohash, port: 6881, token });
    }
    network.sent.length = 0;
    network.query(202, "8.100.1.2", "get_peers", { info_hash: infohash });
    const peers = network.sent.find(({ message }) => text(message["y"]) === "r")!;
    assertEquals((peers.message["r"] as { values: unknown[] }).values.length, 50);
    assertLess(peers.bytes, 600);
  });
});

test("a lookup neither contacts nor reports addresses that are nearer than the node that named them", async () => {
  await withNode(async (node, network) => {
    node.addNode({ host: "8.8.8.8", port: 6881 });
    network.answerAll();
    network.sent.length = 0;
    const found: string[] = [];
    const infohash = new Uint8Array(20).fill(9);
    const lookup = node.lookup(infohash, 0, ({ host }) => found.push(host), never);
    await settle();
    const compact = (n: number, ...address: number[]) => [...id(n), ...address, 0x1a, 0xe1];
    const nodes = new Uint8Array([
      ...compact(5, 127, 0, 0, 1),
      ...compact(6, 192, 168, 1, 1),
      ...compact(7, 9, 9, 9, 9),
    ]);
    const values = [[10, 0, 0, 1, 26, 225], [127, 0, 0, 1, 26, 225], [1, 2, 3, 4, 26, 225]].map((v) =>
      new Uint8Array(v)
    );
    const asked = network.sent.find(({ message, to }) => to.host === "8.8.8.8" && text(message["q"]) === "get_peers")!;
    network.sent.length = 0;
    network.deliver({ t: asked.message["t"], y: "r", r: { id: id(1), nodes, values, token: "x" } }, "8.8.8.8");
    await settle();
    const hosts = network.sent.filter(({ message }) => text(message["q"]) === "get_peers").map(({ to }) => to.host);
    assertEquals([...new Set(hosts)], ["9.9.9.9"]);
    assertEquals(found, ["1.2.3.4"]);
    for (const { message, to } of network.sent) {
      network.deliver({ t: message["t"], y: "r", r: { id: id(7) } }, to.host);
    }
    await lookup;
  });
});

test("a lookup neither contacts nor reports addresses without a port, or in networks that nobody has", async () => {
  await withNode(async (node, network) => {
    node.addNode({ host: "8.8.8.8", port: 6881 });
    network.answerAll();
    network.sent.length = 0;
    const found: SocketAddress[] = [];
    const lookup = node.lookup(new Uint8Array(20).fill(9), 0, (peer) => found.push(peer), never);
    await settle();
    const at = (...bytes: number[]) => new Uint8Array(bytes);
    const nodes = new Uint8Array([
      ...[...id(5), 9, 9, 9, 8, 0, 0],
      ...[...id(6), 0, 1, 2, 3, 0x1a, 0xe1],
      ...[...id(7), 240, 0, 0, 1, 0x1a, 0xe1],
      ...[...id(8), 9, 9, 9, 9, 0x1a, 0xe1],
      // Cut short.
      ...id(9),
    ]);
    const values = [at(1, 2, 3, 4, 0, 0), at(0, 1, 2, 3, 26, 225), at(1, 2, 3), at(1, 2, 3, 5, 26, 225), "x", 7];
    const asked = network.sent.find(({ message }) => text(message["q"]) === "get_peers")!;
    network.sent.length = 0;
    network.deliver({ t: asked.message["t"], y: "r", r: { id: id(1), nodes, values, token: "x" } }, "8.8.8.8");
    await settle();
    assertEquals([...new Set(network.sent.map(({ to }) => to.host))], ["9.9.9.9"]);
    assertEquals(found, [{ host: "1.2.3.5", port: 6881 }]);
    network.answerAll();
    await lookup;
  });
});

test("a node tells nobody of a peer that announced port 0", async () => {
  await withNode((_node, network) => {
    const infohash = new Uint8Array(20).fill(3);
    const told = (host: string) => {
      network.sent.length = 0;
      network.query(1, host, "get_peers", { info_hash: infohash });
      return network.sent.find(({ message }) => text(message["y"]) === "r")!.message["r"] as Record<string, unknown>;
    };
    for (const [host, port] of [["8.1.1.1", 0], ["8.2.1.1", 70_000], ["8.3.1.1", 6881]] as const) {
      const { token } = told(host);
      network.query(1, host, "announce_peer", { info_hash: infohash, port, token });
    }
    assertEquals(told("8.4.1.1")["values"], [new Uint8Array([8, 3, 1, 1, 0x1a, 0xe1])]);
  });
});

test("withoutNearer() lets a node on this machine name any address, and leaves other messages unchanged", () => {
  const data = encodeBencode(
    { r: { id: id(1), values: [new Uint8Array([127, 0, 0, 1, 1, 2])] }, t: "aa", y: "r" } as never,
  );
  assertEquals(withoutNearer(data, { host: "127.0.0.1", port: 1 }, nearness), data);
  const clean = withoutNearer(data, { host: "10.0.0.1", port: 1 }, nearness);
  assertEquals((decodeBencode(clean) as { r: { values: unknown[] } }).r.values, []);
  const query = encodeBencode({ q: "ping", t: "aa", y: "q" } as never);
  assertEquals(withoutNearer(query, { host: "8.8.8.8", port: 1 }, nearness), query);
});

test("QueryRates.allows() limits each address and the total; for this machine only the total", () => {
  const rates = new QueryRates(() => 0, nearness);
  let local = 0;
  for (let i = 0; i < 100; i++) if (rates.allows("8.8.8.8")) local++;
  assertEquals(local, 50);
  let all = 0;
  for (let i = 0; i < 2_000; i++) if (rates.allows("127.0.0.1")) all++;
  assertEquals(all, 150);
  assert(!rates.allows("9.9.9.9"));
});

test("TablePlaces frees the places of nodes that left", () => {
  const places = new TablePlaces(nearness);
  places.entered("a", "8.8.8.8");
  assert(!places.allows("b", "8.8.8.8"));
  assert(places.allows("a", "8.8.8.8"));
  assert(!places.allows("a", "8.8.4.4"));
  places.left("a");
  assert(places.allows("b", "8.8.8.8"));
});

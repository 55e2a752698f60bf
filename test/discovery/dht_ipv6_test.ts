/** Our node in the DHT of IPv6, and in both (BEP 32). */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { encodeNodes, encodePeer, familyOf, namedNodes } from "../../src/discovery/dht-contacts.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { decodeTable, encodeTable } from "../../src/discovery/dht-table-file.ts";
import type { SocketAddress } from "../../src/ports.ts";
import { settle } from "../support/fake-clock.ts";
import { id, text, withNode } from "./support/dht-network.ts";
import { testPorts, until } from "./support/ports.ts";

const never = new AbortController().signal;
const infohash = new Uint8Array(20).fill(7);
const host6 = (network: number, machine: number) => `2001:db9:${network.toString(16)}:0:${machine.toString(16)}::1`;
const node6 = (n: number, host: string) => ({ id: id(n), host, port: 6881 });

/** Nodes at `host`; each knows the first. */
async function withNetwork(size: number, host: string, run: (nodes: DhtNode[], entry: string) => Promise<void>) {
  const first = await DhtNode.open(testPorts(), { host, bootstrap: [], statePath: null });
  const entry = `[::1]:${first.port}`;
  const nodes = [first];
  try {
    for (let i = 1; i < size; i++) {
      nodes.push(await DhtNode.open(testPorts(), { host, bootstrap: [entry], statePath: null }));
    }
    await until(() => nodes.every((node) => node.nodeCount >= 2), "the nodes know each other");
    await run(nodes, entry);
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
  }
}

test("DhtNode.lookup() finds over IPv6 what another node announced there", async () => {
  await withNetwork(7, "::1", async (nodes) => {
    assert(await nodes[2]!.lookup(infohash, 7001, () => {}, never) > 0);
    const found: SocketAddress[] = [];
    const from = new Set<string>();
    await nodes[5]!.lookup(infohash, 0, (peer, node) => (found.push(peer), from.add(node)), never);
    assertEquals([...new Set(found.map(({ host, port }) => `${host} ${port}`))], ["::1 7001"]);
    assertEquals([...from], ["::1"]);
  });
});

test("DhtNode.getImmutable() returns over IPv6 what putImmutable() stored there", async () => {
  await withNetwork(5, "::1", async (nodes) => {
    const record = encodeBencode({ ih: infohash, v: 1 });
    const target = await nodes[1]!.putImmutable(record, never);
    assertEquals(await nodes[4]!.getImmutable(target, never), record);
    assertEquals(await nodes[4]!.getImmutable(new Uint8Array(20).fill(1), never), null);
  });
});

test("DhtNode at :: takes part in both DHTs, and learns from one of the nodes of the other", async () => {
  await withNetwork(3, "::", async (nodes, entry) => {
    // The nodes of IPv6 alone know nobody over IPv4, and the other way round.
    const [six, four] = await Promise.all([
      DhtNode.open(testPorts(), { host: "::1", bootstrap: [entry], statePath: null }),
      DhtNode.open(testPorts(), { host: "127.0.0.1", bootstrap: [`127.0.0.1:${nodes[0]!.port}`], statePath: null }),
    ]);
    try {
      await until(() => six.nodeCount > 0 && four.nodeCount > 0, "they know somebody");
      assert(await six.lookup(infohash, 7006, () => {}, never) > 0);
      assert(await four.lookup(infohash, 7004, () => {}, never) > 0);
      // It asks by IPv6 whom it knows, and the replies name nodes of IPv4.
      const before = nodes[2]!.nodeCount;
      await nodes[2]!.lookup(new Uint8Array(20), 0, () => {}, never);
      await until(() => nodes[2]!.nodeCount > before, "it knows one of IPv4");
      const found = new Set<string>();
      await nodes[2]!.lookup(infohash, 0, ({ host, port }) => found.add(`${host} ${port}`), never);
      assertEquals([...found].sort(), ["127.0.0.1 7004", "::1 7006"]);
    } finally {
      await Promise.all([six.close(), four.close()]);
    }
  });
});

test("a node replies with the nodes of the DHTs that a query wants", async () => {
  await withNode((node, network) => {
    const six = host6(1, 1);
    for (const [n, host] of [[1, "8.8.8.8"], [2, six]] as const) {
      network.query(n, host);
      network.answerAll();
    }
    assertEquals(node.nodeCount, 2);
    const named = (want?: readonly string[], from = "9.9.9.9") => {
      network.sent.length = 0;
      network.query(3, from, "find_node", { target: infohash, ...(want === undefined ? {} : { want }) });
      const { r } = network.sent.find(({ message }) => text(message["y"]) === "r")!.message;
      return ([4, 6] as const).map((family) => namedNodes(r, family).map(({ host }) => host).join());
    };
    assertEquals(named(), ["8.8.8.8", ""]);
    assertEquals(named(["n4", "n6"]), ["8.8.8.8", six]);
    assertEquals(named(["n6"]), ["", six]);
    assertEquals(named(["n4"], host6(2, 1)), ["8.8.8.8", ""]);
    assertEquals(named(undefined, host6(2, 2)), ["", six]);
    assertEquals(named(["x", 7 as never]), ["", ""]);
  }, "::");
});

test("a node that knows nobody over IPv6 tries those that replies over IPv4 name", async () => {
  await withNode(async (node, network) => {
    node.addNode({ host: "8.8.8.8", port: 6881 });
    network.answerAll();
    network.sent.length = 0;
    const lookup = node.lookup(infohash, 0, () => {}, never);
    await settle();
    const { message } = network.sent.find(({ message }) => text(message["q"]) === "get_peers")!;
    assertEquals((message["a"] as { want: unknown[] }).want.map(text), ["n4", "n6"]);
    const named = [node6(5, host6(1, 1)), node6(6, "::1"), node6(7, "fd00::9")];
    network.sent.length = 0;
    network.deliver({ t: message["t"], y: "r", r: { id: id(1), nodes6: encodeNodes(named), token: "x" } }, "8.8.8.8");
    await lookup;
    const asked = network.sent.map(({ to }) => to.host).filter((host) => familyOf(host) === 6);
    assertEquals(asked, [host6(1, 1)]);
    network.answerAll();
    assertEquals(node.nodeCount, 2);
  }, "::");
});

test("a lookup over IPv6 ends when its nodes name ever nearer ones, and reports no address nearer than theirs", async () => {
  await withNode(async (node, network, clock) => {
    const known = host6(1, 1);
    node.addNode({ host: known, port: 6881 });
    network.answerAll();
    network.sent.length = 0;
    const found: string[] = [];
    let isOver = false;
    const lookup = node.lookup(infohash, 0, ({ host }) => found.push(host), never).finally(() => isOver = true);
    let count = 0;
    const values = [encodePeer({ host: "::1", port: 1 }), encodePeer({ host: host6(9, 9), port: 2 })];
    for (let round = 0; round < 1_000 && !isOver; round++) {
      await settle();
      for (const { message, to } of network.sent.splice(0)) {
        count++;
        // Each names two that are nearer than all before.
        const nodes6 = encodeNodes([2 * count, 2 * count + 1].map((n) => ({
          ...node6(0, host6(n, 1)),
          id: infohash.map((byte, i) => i === 17 ? byte ^ (255 - n >> 8) : i === 18 ? byte ^ (255 - n & 255) : byte),
        })));
        network.deliver({ t: message["t"], y: "r", r: { id: id(count), nodes6, values } }, to.host, to.port);
      }
      clock.advance(1);
    }
    assert(isOver, `${count} queries`);
    assertLess(count, 300);
    await lookup;
    assertEquals([...new Set(found)], [host6(9, 9)]);
  }, "::1");
});

test("the addresses of one /64 get one place in the table, those of one /48 a few, and one share of replies", async () => {
  await withNode((node, network, clock) => {
    const enter = (n: number, host: string) => {
      network.query(n, host);
      network.answerAll();
      clock.advance(5_000);
    };
    for (let n = 1; n <= 100; n++) enter(n, `2001:db9::${n.toString(16)}`);
    assertEquals(node.nodeCount, 1);
    for (let n = 1; n <= 100; n++) enter(100 + n, `2001:db9:1:${n.toString(16)}::1`);
    assertEquals(node.nodeCount, 5);
    // A network of the user's own has no /48 to spare, and still counts by its /64.
    for (let n = 1; n <= 100; n++) enter(200 + n, `fd00:9::${n.toString(16)}`);
    assertEquals(node.nodeCount, 6);
    network.sent.length = 0;
    for (let n = 1; n <= 1_000; n++) network.query(n, `2001:db9:2:2::${n.toString(16)}`);
    assertLess(network.sent.filter(({ message }) => text(message["y"]) === "r").length, 60);
  }, "::");
});

test("decodeTable() reads the nodes of both families, and at most 300 of each", () => {
  const four = Array.from({ length: 400 }, (_, n) => ({ id: id(n), host: `8.8.${n >> 8}.${n & 255}`, port: 1 }));
  const six = [node6(1, "2001:db9::1")];
  const { nodes } = decodeTable(encodeTable({ id: id(1), nodes: [...four, ...six] }))!;
  assertEquals([nodes.length, nodes.at(-1)], [301, six[0]]);
});

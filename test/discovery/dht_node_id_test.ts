/** Ids of DHT nodes that fit an address (BEP 42). */
import { test } from "node:test";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { fromHex, toHex } from "../../src/bytes/hex.ts";
import { encodePeer } from "../../src/discovery/dht-contacts.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { fitsAddress, nodeIdFor, OwnNodeId } from "../../src/discovery/dht-node-id.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { id, Network, publicHost, withNode } from "./support/dht-network.ts";
import { testPorts } from "./support/ports.ts";

/** BEP 42's own table. */
const TABLE = [
  ["124.31.75.21", "5fbfbff10c5d6a4ec8a88e4c6ab4c28b95eee401"],
  ["21.75.31.124", "5a3ce9c14e7a08645677bbd1cfe7d8f956d53256"],
  ["65.23.51.170", "a5d43220bc8f112a3d426c84764f8c2a1150e616"],
  ["84.124.73.14", "1b0321dd1bb1fe518101ceef99462b947a01ff41"],
  ["43.213.53.83", "e56f6cbf5b7c4be0237986d5243b87aa6d51305a"],
] as const;
const HOUR_MS = 60 * 60_000;

/** The id with which the node asks. */
const askedWith = (network: Network) => {
  const query = network.sent.findLast(({ message }) => "a" in message)!;
  return (query.message["a"] as { id: Uint8Array }).id;
};

test("fitsAddress() agrees with the table of BEP 42, and with no address beside it", () => {
  for (const [n, [host, hex]] of TABLE.entries()) {
    assert(fitsAddress(fromHex(hex), host), host);
    assert(!fitsAddress(fromHex(hex), TABLE[(n + 1) % TABLE.length]![0]), host);
    for (const bit of [0, 20]) {
      assert(!fitsAddress(fromHex(hex).map((byte, i) => i === bit >> 3 ? byte ^ (0x80 >> bit % 8) : byte), host));
    }
  }
});

test("nodeIdFor() makes ids that fit, of which only the first 21 bits and three of the last follow from the address", () => {
  for (const host of [...TABLE.map(([host]) => host), "2a02:26f7:77:1::2"]) {
    const ids = Array.from({ length: 64 }, () => nodeIdFor(host));
    assert(ids.every((id) => fitsAddress(id, host)), host);
    assertEquals(new Set(ids.map(toHex)).size, 64);
    assertEquals(new Set(ids.map((id) => id[0]! << 13 | id[1]! << 5 | id[2]! >> 3)).size, 8);
  }
  // Of IPv6 the /64 counts.
  assert(fitsAddress(nodeIdFor("2a02:26f7:77:1::2"), "2a02:26f7:77:1:ffff::9"));
  assert(!fitsAddress(nodeIdFor("2a02:26f7:77:1::2"), "2a02:26f7:77:2::2"));
});

test("OwnNodeId follows what three networks say, once an hour at most", () => {
  let nowMs = 0;
  const own = new OwnNodeId(4, id(1), () => nowMs);
  const seenAt = (host: string, ...networks: readonly number[]) =>
    networks.map((network) => own.seenAt(host, `8.${network}.1.1`)).includes(true);
  assert(!seenAt("52.9.0.1", 1, 2));
  // One network may have many voices, and addresses of homes or of the other DHT say nothing.
  for (let n = 0; n < 100; n++) assert(!own.seenAt("52.9.0.1", `8.1.${n}.1`));
  assert(!seenAt("192.168.1.1", 1, 2, 3) && !seenAt("2a02::1", 1, 2, 3));
  assertEquals(own.value, id(1));
  assert(seenAt("52.9.0.1", 3));
  assert(fitsAddress(own.value, "52.9.0.1"));
  assert(!seenAt("53.9.0.1", 1, 2, 3));
  nowMs += HOUR_MS;
  assert(seenAt("53.9.0.1", 1));
  assert(fitsAddress(own.value, "53.9.0.1"));
  // The old address needs new witnesses.
  nowMs += HOUR_MS;
  assert(!seenAt("52.9.0.1", 1, 2));
  assert(seenAt("52.9.0.1", 3));
});

test("DhtNode takes an id that fits the address at which others see it, and keeps its table", async () => {
  await withNode((node, network) => {
    for (let n = 1; n <= 12; n++) {
      node.addNode({ host: publicHost(n << 8), port: 6881 });
      const { message, to } = network.sent.at(-1)!;
      assertEquals(to.host, publicHost(n << 8));
      if (n <= 3) assert(!fitsAddress(askedWith(network), "52.9.0.1"));
      const ip = encodePeer({ host: "52.9.0.1", port: 6881 });
      network.deliver({ t: message["t"], y: "r", r: { id: id(n) }, ip }, to.host, to.port);
      if (n >= 3) assert(fitsAddress(askedWith(network), "52.9.0.1"), `asks with ${toHex(askedWith(network))}`);
      assertEquals(node.nodeCount, n);
    }
  });
});

test("DhtNode believes an address neither without a question of its own, nor in a field of another length", async () => {
  await withNode((node, network) => {
    for (let n = 1; n <= 6; n++) {
      const ip = encodePeer({ host: "52.9.0.1", port: 6881 });
      network.deliver({ t: "aa", y: "r", r: { id: id(n) }, ip }, publicHost(n << 8));
      network.deliver({ t: "aa", y: "q", q: "ping", a: { id: id(n) }, ip }, publicHost(n << 8));
      const { message, to } = network.sent.findLast(({ message }) => "a" in message)!;
      const wrong = n % 2 === 0 ? ip.subarray(0, 4) : new Uint8Array(200);
      network.deliver({ t: message["t"], y: "r", r: { id: id(n) }, ip: wrong }, to.host, to.port);
      assert(!fitsAddress(askedWith(network), "52.9.0.1"));
    }
    assertEquals(node.nodeCount, 6);
  });
});

test("DhtNode tells the address of whom it replies to, over IPv4 and IPv6", async () => {
  await withNode((_node, network) => {
    for (const host of ["8.8.8.8", "2a02:26f7:77::2"]) {
      network.sent.length = 0;
      network.query(1, host);
      const reply = network.sent.find(({ message }) => "r" in message)!;
      assertEquals(reply.message["ip"], encodePeer({ host, port: 6881 }));
    }
  }, "::");
});

test("DhtNode keeps the ids of both DHTs for the next run", async () => {
  const network = new Network();
  const clock = new FakeClock();
  const ports = testPorts({ clock, udp: network.udp, files: new MemoryFiles(clock) });
  const options = { host: "::", bootstrap: [], statePath: "/dht.json" };
  const [four, six] = ["52.9.0.1", "2a02:26f7:77::2"] as const;
  const first = await DhtNode.open(ports, options);
  for (let n = 1; n <= 3; n++) {
    for (const [host, ip] of [[publicHost(n << 8), four], [`2a0${n}::1`, six]] as const) {
      first.addNode({ host, port: 6881 });
      const { message, to } = network.sent.findLast(({ to }) => to.host === host)!;
      const reply = { t: message["t"], y: "r", r: { id: id(n) }, ip: encodePeer({ host: ip, port: 6881 }) };
      network.deliver(reply, to.host, to.port);
    }
  }
  await first.close();
  const second = await DhtNode.open(ports, options);
  network.sent.length = 0;
  second.addNode({ host: "8.200.1.1", port: 6881 });
  const id4 = askedWith(network);
  second.addNode({ host: "2a09::1", port: 6881 });
  const id6 = askedWith(network);
  await second.close();
  assert(fitsAddress(id4, four), toHex(id4));
  assert(fitsAddress(id6, six), toHex(id6));
  assertNotEquals(id4, id6);
});

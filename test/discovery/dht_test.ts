import { test } from "node:test";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { encodeTable } from "../../src/discovery/dht-table-file.ts";
import { MillraceError } from "../../src/errors.ts";
import type { SocketAddress, UdpPort } from "../../src/ports.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { testPorts, udp, until } from "./support/ports.ts";

const never = new AbortController().signal;
const infohash = new Uint8Array(20).fill(7);

/** A network of nodes on loopback; each knows the first. */
async function withNetwork(size: number, run: (nodes: DhtNode[], entry: string) => Promise<void>): Promise<void> {
  const first = await DhtNode.open(testPorts(), { host: "127.0.0.1", bootstrap: [], statePath: null });
  const entry = `127.0.0.1:${first.port}`;
  const nodes = [first];
  try {
    for (let i = 1; i < size; i++) {
      nodes.push(await DhtNode.open(testPorts(), { host: "127.0.0.1", bootstrap: [entry], statePath: null }));
    }
    await until(() => nodes.every((node) => node.nodeCount >= 2), "the nodes know each other");
    await run(nodes, entry);
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
  }
}

test("DhtNode.lookup() finds peers that another node announced", async () => {
  await withNetwork(7, async (nodes) => {
    await nodes[2]!.lookup(infohash, 7001, () => {}, never);
    const found: SocketAddress[] = [];
    const replies = await nodes[5]!.lookup(infohash, 0, (peer) => found.push(peer), never);
    assert(replies > 0);
    assert(found.some((peer) => peer.host === "127.0.0.1" && peer.port === 7001), JSON.stringify(found));
  });
});

test("DhtNode.lookup() works on a socket of both families", async () => {
  await withNetwork(4, async (nodes, entry) => {
    await nodes[2]!.lookup(infohash, 7001, () => {}, never);
    const both = await DhtNode.open(testPorts(), { host: "::", bootstrap: [entry], statePath: null });
    try {
      await until(() => both.nodeCount >= 2, "it knows others");
      const found: SocketAddress[] = [];
      assert(await both.lookup(infohash, 7002, (peer) => found.push(peer), never) > 0);
      assert(found.some((peer) => peer.host === "127.0.0.1" && peer.port === 7001), JSON.stringify(found));
    } finally {
      await both.close();
    }
  });
});

test("DhtNode.getImmutable() returns what putImmutable() stored, and null for an unknown item", async () => {
  await withNetwork(6, async (nodes) => {
    const record = encodeBencode({ ih: infohash, nm: "clip é.mp4", tr: ["http://127.0.0.1/announce"], v: 1 });
    const target = await nodes[1]!.putImmutable(record, never);
    assertEquals(target, new Uint8Array(await crypto.subtle.digest("SHA-1", new Uint8Array(record))));
    assertEquals(await nodes[4]!.getImmutable(target, never), record);
    assertEquals(await nodes[4]!.getImmutable(new Uint8Array(20).fill(1), never), null);
  });
});

test("DhtNode.putImmutable() rejects values that are too long or not canonical", async () => {
  const node = await DhtNode.open(testPorts(), { host: "127.0.0.1", bootstrap: [], statePath: null });
  const encode = (text: string) => new TextEncoder().encode(text);
  try {
    for (const value of [encode(`997:${"x".repeat(997)}`), encode("d1:bi1e1:ai2ee"), encode("i01e"), encode("5:ab")]) {
      const error = await assertRejects(() => node.putImmutable(value, never), MillraceError);
      assertEquals(error.code, "invalid_argument");
    }
    const error = await assertRejects(() => node.putImmutable(encode("2:hi"), never), MillraceError);
    assertEquals(error.code, "unavailable");
  } finally {
    await node.close();
  }
});

test("DhtNode.open() sends nothing with an empty bootstrap list and no table", async () => {
  let sent = 0;
  const counting: UdpPort = {
    async bind(options) {
      const socket = await udp.bind(options);
      return { ...socket, send: (data, to) => (sent++, socket.send(data, to)) };
    },
  };
  const node = await DhtNode.open(testPorts({ udp: counting }), { host: "127.0.0.1", bootstrap: [], statePath: null });
  assertEquals(await node.lookup(infohash, 7001, () => {}, never), 0);
  assertEquals(await node.getImmutable(infohash, never), null);
  await node.close();
  assertEquals(sent, 0);
});

test("DhtNode.open() restores the node table that close() saved", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-dht-"));
  const statePath = join(folder, "dht.json");
  try {
    await withNetwork(5, async (_nodes, entry) => {
      const options = { host: "127.0.0.1", statePath };
      const before = await DhtNode.open(testPorts(), { ...options, bootstrap: [entry] });
      await until(() => before.nodeCount >= 3, "the node knows others");
      await before.close();
      const saved = JSON.parse(await readFile(statePath, "utf8"));
      const after = await DhtNode.open(testPorts(), { ...options, bootstrap: [] });
      assertEquals(after.nodeCount, saved.nodes.length);
      assert(await after.lookup(infohash, 0, () => {}, never) > 0);
      await after.close();
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("DhtNode.close() waits for a running write of the table, and then writes the newest one", async () => {
  const clock = new FakeClock();
  const files = new MemoryFiles(clock);
  const nodes = [{ id: new Uint8Array(20).fill(2), host: "192.0.2.1", port: 6881 }];
  await files.writeFile("/dht.json", encodeTable({ id: new Uint8Array(20).fill(1), nodes }));
  const options = { host: "127.0.0.1", bootstrap: [], statePath: "/dht.json" };
  const node = await DhtNode.open(testPorts({ clock, files }), options);
  let writes = 0;
  let proceed = () => {};
  const gate = new Promise<void>((resolve) => proceed = resolve);
  files.hook = (operation) => {
    if (operation === "replace" && ++writes === 1) return gate;
  };
  clock.advance(10 * 60_000);
  await settle();
  let closed = false;
  const closing = node.close().then(() => closed = true);
  await settle();
  assertEquals([writes, closed], [1, false]);
  proceed();
  await closing;
  assertEquals([writes, clock.pendingTimers], [2, 0]);
});

test("DhtNode.addNode() adds a node to the table when it replies", async () => {
  const options = { host: "127.0.0.1", bootstrap: [], statePath: null };
  const [a, b] = await Promise.all([DhtNode.open(testPorts(), options), DhtNode.open(testPorts(), options)]);
  a.addNode({ host: "::1", port: b.port });
  a.addNode({ host: "127.0.0.1", port: b.port });
  await until(() => a.nodeCount === 1, "the node answered");
  await Promise.all([a.close(), b.close()]);
});

test("DhtNode keeps working after hostile datagrams", async () => {
  const options = { host: "127.0.0.1", bootstrap: [], statePath: null };
  const [a, b] = await Promise.all([DhtNode.open(testPorts(), options), DhtNode.open(testPorts(), options)]);
  const attacker = await udp.bind({ host: "127.0.0.1" });
  const id = "i".repeat(20);
  const hostile = [
    "",
    "d",
    "l".repeat(3000),
    "d1:ad2:id-1:x",
    "d1:q4:ping1:t2:aa1:y1:qe",
    `d1:ad2:id20:${id}9:info_hashi5ee1:q9:get_peers1:t2:aa1:y1:qe`,
    `d1:ad2:id20:${id}6:targetle1:q9:find_node1:t2:aa1:y1:qe`,
    `d1:ad2:id20:${id}9:info_hash20:${id}4:porti1e5:tokeni9ee1:q13:announce_peer1:t2:aa1:y1:qe`,
    `d1:ad2:id20:${id}5:tokenle1:v1:xe1:q3:put1:t2:aa1:y1:qe`,
    `d1:ai7e1:q4:ping1:t2:aa1:y1:qe`,
    "d1:rle1:t2:aa1:y1:re",
    "d1:eli201e1:xe1:t2:aa1:y1:ee",
    "d9:__proto__d1:qi1ee1:t2:aa1:y1:qe",
  ];
  for (const text of hostile) {
    await attacker.send(new TextEncoder().encode(text), { host: "127.0.0.1", port: a.port });
  }
  b.addNode({ host: "127.0.0.1", port: a.port });
  await until(() => b.nodeCount >= 1, "the node still answers");
  attacker.close();
  await Promise.all([a.close(), b.close()]);
});

test("DhtNode.lookup() rejects with the signal's reason, and with `closed` when the node closes meanwhile", async () => {
  const options = { host: "127.0.0.1", bootstrap: [], statePath: null };
  const [a, b] = await Promise.all([DhtNode.open(testPorts(), options), DhtNode.open(testPorts(), options)]);
  a.addNode({ host: "127.0.0.1", port: b.port });
  await until(() => a.nodeCount === 1, "the node answered");
  await b.close();
  const aborted = await assertRejects(() => a.lookup(infohash, 0, () => {}, AbortSignal.abort()), MillraceError);
  assertEquals(aborted.code, "aborted");
  const lookup = assertRejects(() => a.lookup(infohash, 0, () => {}, never), MillraceError);
  await a.close();
  assertEquals((await lookup).code, "closed");
});

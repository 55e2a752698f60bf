/** Queries of programs that survey the DHT, and of nodes that reply to none. */
import { test } from "node:test";
import { assertEquals, assertLess } from "@std/assert";
import { toHex } from "../../src/bytes/hex.ts";
import { type Network, publicHost, text, withNode } from "./support/dht-network.ts";

const target = new Uint8Array(20).fill(9);
const infohash = (n: number) => new Uint8Array(20).fill(1).with(0, n);

function ask(network: Network, from: string, q: string, more: Record<string, unknown>): Record<string, unknown> {
  network.sent.length = 0;
  network.query(1, from, q, more);
  return network.sent.find(({ message }) => text(message["y"]) === "r")!.message["r"] as Record<string, unknown>;
}

test("a node names at most twenty of the swarms that announced themselves to it (BEP 51), the same ones for a minute", async () => {
  await withNode((_node, network, clock) => {
    const sampled = () => {
      const { interval, num, samples } = ask(network, publicHost(1_000), "sample_infohashes", { target });
      assertLess(network.sent[0]!.bytes, 1_000);
      const bytes = samples as Uint8Array;
      const hashes = Array.from({ length: bytes.length / 20 }, (_, n) => toHex(bytes.subarray(20 * n, 20 * n + 20)));
      return { interval, num, hashes: new Set(hashes) };
    };
    assertEquals(sampled(), { interval: 60, num: 0, hashes: new Set<string>() });
    for (let n = 0; n < 50; n++) {
      const host = publicHost(n);
      const { token } = ask(network, host, "get_peers", { info_hash: infohash(n) });
      ask(network, host, "announce_peer", { info_hash: infohash(n), port: 6881, token });
      clock.advance(100);
    }
    assertEquals(sampled().num, 0);
    clock.advance(60_000);
    const first = sampled();
    assertEquals([first.num, first.hashes.size], [50, 20]);
    assertEquals(sampled(), first);
  });
});

test("a node that says that it replies to nobody (BEP 43) gets a reply, and no place in the table", async () => {
  await withNode((node, network) => {
    network.deliver({ t: "aa", y: "q", q: "ping", ro: 1, a: { id: target } }, "8.8.8.8");
    assertEquals(network.sent.map(({ message }) => text(message["y"])), ["r"]);
    network.query(1, "8.8.4.4");
    network.answerAll();
    assertEquals(node.nodeCount, 1);
  });
});

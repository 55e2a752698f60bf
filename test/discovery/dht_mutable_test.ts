import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { mutableQuery } from "../../src/discovery/dht-mutable.ts";
import { MillraceError } from "../../src/errors.ts";
import { startMutableItems } from "../support/mutable-items.ts";
import { testPorts } from "./support/ports.ts";

const NONE = new Uint8Array();
const text = (value: string) => new TextEncoder().encode(value);

test("DhtNode.getMutable() returns the newest value that the key signed, by its salt, and null for other keys", async () => {
  const items = await startMutableItems();
  const node = await DhtNode.open(testPorts(), { host: "127.0.0.1", bootstrap: [items.node], statePath: null });
  try {
    const signal = AbortSignal.timeout(60_000);
    // On a busy machine a node may not answer within the library's 2 s.
    const found = async (salt: Uint8Array) => {
      for (;;) {
        const value = await node.getMutable({ publicKey, salt }, signal);
        if (value !== null) return value;
      }
    };
    const { publicKey } = items;
    const value = (n: number) => ({ ih: new Uint8Array(20).fill(n) });
    await items.put(value(1), 1);
    await items.put(value(3), 1, "film");
    assertEquals(await found(NONE), encodeBencode(value(1)));
    await items.put(value(2), 2);
    assertEquals(await found(NONE), encodeBencode(value(2)));
    assertEquals(await found(text("film")), encodeBencode(value(3)));
    assertEquals(await node.getMutable({ publicKey, salt: text("other") }, signal), null);
    const other = await startMutableItems();
    await other.close();
    assertEquals(await node.getMutable({ publicKey: other.publicKey, salt: NONE }, signal), null);
  } finally {
    await node.close();
    await items.close();
  }
});

test("mutableQuery() takes nothing that another key signed, or that has no signature of 64 bytes", async () => {
  const publicKey = new Uint8Array(32).fill(1);
  const asked: number[] = [];
  const verifierOf = (key: Uint8Array) => (signature: Uint8Array) => (asked.push(key[0]!, signature.length), true);
  const { options: { verify, ...options } } = await mutableQuery({ publicKey, salt: NONE }, verifierOf);
  assertEquals(verify(new Uint8Array(64), NONE, publicKey.slice()), true);
  assertEquals(verify(new Uint8Array(64), NONE, publicKey.subarray(16)), false);
  assertEquals(verify(new Uint8Array(63), NONE, publicKey), false);
  assertEquals([asked, options], [[1, 64], { cache: false }]);
});

test("mutableQuery() rejects 32 bytes that are no key", async () => {
  const verifierOf = () => {
    throw new TypeError("invalid public key");
  };
  const query = mutableQuery({ publicKey: new Uint8Array(32), salt: NONE }, verifierOf);
  assertEquals((await assertRejects(() => query, MillraceError)).code, "invalid_argument");
});

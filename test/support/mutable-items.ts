/** DHT nodes of other people that keep a mutable item (BEP 44), which ours only read. */
import { createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
// The library ships no types.
import DHT from "bittorrent-dht";
import { until } from "./until.ts";

/** Longest that storing an item may take, ms. */
const STORE_TIMEOUT_MS = 60_000;

/** A small DHT on loopback. */
export interface MutableItems {
  /** `host:port` of one of its nodes. */
  readonly node: string;
  /** Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Stores a value of the key with all nodes. */
  put(value: Record<string, unknown>, seq: number, salt?: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts two nodes, which know each other. */
export async function startMutableItems(): Promise<MutableItems> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = rawOf(publicKey.export({ format: "jwk" }).x!);
  const nodes = [newNode(), newNode()];
  await Promise.all(nodes.map((node) => new Promise<void>((resolve) => node.listen(0, "127.0.0.1", () => resolve()))));
  const [first, second] = nodes.map((node) => node.address().port as number);
  nodes[0].addNode({ host: "127.0.0.1", port: second });
  nodes[1].addNode({ host: "127.0.0.1", port: first });
  await Promise.all(nodes.map((node) => new Promise<void>((resolve) => node.once("node", () => resolve()))));
  return {
    node: `127.0.0.1:${first}`,
    publicKey: raw,
    async put(v, seq, salt) {
      const item = { k: Buffer.from(raw), seq, v, ...(salt === undefined ? {} : { salt: Buffer.from(salt) }) };
      const signed = { ...item, sign: (data: Uint8Array) => sign(null, data, privateKey) };
      // Each stores what the other puts. On a busy machine a node may not answer within the library's 2 s.
      for (const node of nodes) {
        const store = () => new Promise((resolve) => node.put(signed, (error: unknown) => resolve(!error)));
        await until("the item is stored", async () => await store() === true, STORE_TIMEOUT_MS);
      }
    },
    close: async () => {
      await Promise.all(nodes.map((node) => new Promise<void>((resolve) => node.destroy(() => resolve()))));
    },
  };
}

function rawOf(x: string): Uint8Array {
  return new Uint8Array(Buffer.from(x, "base64url"));
}

// deno-lint-ignore no-explicit-any -- the library ships no types
function newNode(): any {
  const isSigned = (signature: Uint8Array, data: Uint8Array, key: Uint8Array) => {
    const jwk = { kty: "OKP", crv: "Ed25519", x: Buffer.from(key).toString("base64url") };
    return verify(null, data, createPublicKey({ key: jwk, format: "jwk" }), signature);
  };
  return new DHT({ bootstrap: false, verify: isSigned });
}

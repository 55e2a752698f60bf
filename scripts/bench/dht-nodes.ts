/** A DHT (BEP 5) on loopback, half of whose nodes never answer, each at its own distance. */
import { createHash } from "node:crypto";
import dgram from "node:dgram";
import { decodeBencode, encodeBencode, isDictionary } from "../../src/bytes/bencode.ts";
import type { SocketAddress } from "../../src/ports.ts";

const NODES = 50;
/** Nodes in a reply, and those that store a swarm's peers (BEP 5). */
const CLOSEST = 8;

/** An address as BEP 5 writes it. */
function compact({ host, port }: SocketAddress): Uint8Array {
  return Uint8Array.of(...host.split(".").map(Number), port >> 8, port & 255);
}

interface Node {
  readonly id: Uint8Array;
  readonly socket: dgram.Socket;
  readonly port: number;
  isAlive: boolean;
}

/** A small DHT that knows one swarm. */
export class DhtNodes {
  /** A node that answers, `host:port`: the first contact of everybody. */
  entry = "";
  readonly #nodes: readonly Node[];
  #closed = false;

  private constructor(nodes: readonly Node[]) {
    this.#nodes = nodes;
  }

  /** Opens 50 nodes of which every other one answers, by distance, each after its own `rttMs`; `peers` are stored where BEP 5 puts them. */
  static async open(infohash: string, peers: readonly SocketAddress[], rttMs: () => number): Promise<DhtNodes> {
    const nodes: Node[] = [];
    for (let i = 0; i < NODES; i++) {
      const socket = dgram.createSocket("udp4");
      await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
      const id = createHash("sha1").update(crypto.getRandomValues(new Uint8Array(20))).digest();
      nodes.push({ id, socket, port: socket.address().port, isAlive: false });
    }
    const dht = new DhtNodes(nodes);
    const target = Buffer.from(infohash, "hex");
    // Drawn by chance, all that hold the peers would be dead one time in five hundred.
    const living = dht.#closest(target, NODES).filter((_, i) => i % 2 === 0);
    for (const node of living) node.isAlive = true;
    dht.entry = `127.0.0.1:${living.at(-1)!.port}`;
    const holders = new Set(dht.#closest(target));
    const values = peers.map((peer) => compact(peer));
    for (const node of nodes) {
      const delayMs = rttMs();
      if (!node.isAlive) continue;
      node.socket.on("message", (data, from) => {
        const answer = dht.#answer(node, data, holders.has(node) ? values : []);
        if (answer === null) return;
        setTimeout(() => {
          if (!dht.#closed) node.socket.send(answer, from.port, from.address);
        }, delayMs);
      });
    }
    return dht;
  }

  close(): void {
    this.#closed = true;
    for (const { socket } of this.#nodes) socket.close();
  }

  #closest(target: Uint8Array, count = CLOSEST): readonly Node[] {
    const distance = (node: Node) => Buffer.from(node.id.map((byte, i) => byte ^ target[i]!)).toString("hex");
    return [...this.#nodes].sort((a, b) => (distance(a) < distance(b) ? -1 : 1)).slice(0, count);
  }

  #answer(node: Node, data: Uint8Array, values: readonly Uint8Array[]): Uint8Array | null {
    const message = decodeBencode(data);
    const query = isDictionary(message) ? message : {};
    const { a, t } = query;
    if (!isDictionary(a) || !(t instanceof Uint8Array)) return null;
    const target = a["info_hash"] ?? a["target"];
    const r: Record<string, unknown> = { id: node.id };
    if (target instanceof Uint8Array) {
      r["nodes"] = Buffer.concat(
        this.#closest(target).flatMap(({ id, port }) => [id, compact({ host: "127.0.0.1", port })]),
      );
      r["token"] = Buffer.from("token");
      if (values.length > 0 && a["info_hash"] instanceof Uint8Array) r["values"] = values;
    }
    return encodeBencode({ r, t, y: Buffer.from("r") });
  }
}

/** A node of the DHT in a network that a test controls. */
import { decodeBencode, encodeBencode } from "../../../src/bytes/bencode.ts";
import { DhtNode } from "../../../src/discovery/dht-node.ts";
import type { SocketAddress, UdpPort } from "../../../src/ports.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { testPorts } from "./ports.ts";

/** Id of the node `n`. */
export const id = (n: number) => new Uint8Array(20).map((_, i) => i === 0 ? n & 255 : i === 19 ? n >> 8 : 7);
/** An address of a network of its own. */
export const publicHost = (n: number) => `8.${n >> 8}.${n & 255}.1`;

/** A network controlled by the test: it sees what the node sends, and sends to the node. */
export class Network {
  readonly sent: { message: Record<string, unknown>; bytes: number; to: SocketAddress }[] = [];
  /** The node of each host that asked last. */
  readonly #nodes = new Map<string, number>();
  readonly #receivers: ((data: Uint8Array, from: SocketAddress) => void)[] = [];
  readonly udp: UdpPort = {
    bind: () =>
      Promise.resolve({
        address: { host: "0.0.0.0", port: 6881 },
        onMessage: (listener: (data: Uint8Array, from: SocketAddress) => void) => void this.#receivers.push(listener),
        send: (data: Uint8Array, to: SocketAddress) => {
          this.sent.push({ message: decodeBencode(data) as Record<string, unknown>, bytes: data.length, to });
          return Promise.resolve();
        },
        close: () => {},
      } as never),
  };

  deliver(message: Record<string, unknown>, host: string, port = 6881): void {
    for (const receive of this.#receivers) receive(encodeBencode(message as never), { host, port });
  }

  /** A query from a node that claims to be `n`. */
  query(n: number, host: string, q = "ping", more: Record<string, unknown> = {}): void {
    this.#nodes.set(host, n);
    this.deliver({ t: "aa", y: "q", q, a: { id: id(n), ...more } }, host);
  }

  /** Replies to every query of the node, as the last node that asked from that host: few are under way at once. */
  answerAll(): void {
    for (const { message, to } of this.sent.splice(0)) {
      if (text(message["y"]) !== "q") continue;
      this.deliver({ t: message["t"], y: "r", r: { id: id(this.#nodes.get(to.host) ?? 1) } }, to.host, to.port);
    }
  }
}

/** A byte string as Latin-1; "" for anything else. */
export function text(value: unknown): string {
  return value instanceof Uint8Array ? new TextDecoder("latin1").decode(value) : "";
}

/** Runs a node at `host` in such a network. */
export async function withNode(
  run: (node: DhtNode, network: Network, clock: FakeClock) => Promise<void> | void,
  host = "0.0.0.0",
): Promise<void> {
  const network = new Network();
  const clock = new FakeClock();
  const ports = testPorts({ clock, udp: network.udp });
  const node = await DhtNode.open(ports, { host, bootstrap: [], statePath: null });
  try {
    await run(node, network, clock);
  } finally {
    await node.close();
  }
}

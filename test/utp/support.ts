/** Two ends of a uTP connection on a simulated network. */
import type { SocketAddress, UdpPort } from "../../src/ports.ts";
import type { UtpConnection } from "../../src/utp/utp-connection.ts";
import { newToken, UtpEndpoint } from "../../src/utp/utp-endpoint.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { seeded } from "../support/random.ts";
import { type Nat, NatNetwork, type PathOptions } from "./nat-network.ts";

/** One machine. */
export interface End {
  readonly endpoint: UtpEndpoint;
  readonly udp: UdpPort;
}

/** Some machines and their clock. */
export class UtpLab {
  readonly clock = new FakeClock();
  readonly network: NatNetwork;
  #seed = 1;

  constructor(path: PathOptions = {}) {
    this.network = new NatNetwork(this.clock, path);
  }

  end(host: string, nat: Nat = "none"): End {
    const udp = this.network.machine(host, nat);
    const options = { clock: this.clock, random: seeded(this.#seed++), open: () => udp.bind({}) };
    return { endpoint: new UtpEndpoint(options), udp };
  }

  /** Where `observer` sees `end`, as a common neighbour finds out. */
  async seenBy(observer: End, end: End, host: string): Promise<SocketAddress> {
    const token = newToken();
    let seen: SocketAddress | null = null;
    const stop = observer.endpoint.expect(token, (from) => seen = from)!;
    await end.endpoint.show(token, { host, port: await observer.endpoint.bind() });
    await this.clock.advanceAsync(1_000);
    stop();
    return seen ?? Promise.reject(new Error("no datagram came"));
  }

  /** Both ends try to connect; the result of each. */
  async punch(
    [a, seenA]: [End, SocketAddress],
    [b, seenB]: [End, SocketAddress],
  ): Promise<PromiseSettledResult<UtpConnection>[]> {
    const token = newToken();
    const { signal } = new AbortController();
    const both = Promise.allSettled([
      a.endpoint.punch({ token, isInitiator: true, address: seenB, signal }),
      b.endpoint.punch({ token, isInitiator: false, address: seenA, signal }),
    ]);
    await this.clock.advanceAsync(5_000);
    return await both;
  }

  /** A connection between two machines that can reach each other. */
  async pair(): Promise<[UtpConnection, UtpConnection]> {
    const [a, b] = [this.end("203.0.113.1"), this.end("203.0.113.2")];
    const [portA, portB] = [await a.endpoint.bind(), await b.endpoint.bind()];
    const results = await this.punch([a, { host: "203.0.113.1", port: portA }], [b, {
      host: "203.0.113.2",
      port: portB,
    }]);
    const connections = results.map((result) => {
      if (result.status === "rejected") throw result.reason;
      return result.value;
    });
    return [connections[0]!, connections[1]!];
  }
}

/** What one end received and was told. */
export class Received {
  readonly chunks: Uint8Array[] = [];
  bytes = 0;
  ends = 0;
  drains = 0;
  readonly closes: (Error | undefined)[] = [];

  constructor(connection: UtpConnection) {
    connection.open({
      data: (chunk) => {
        this.chunks.push(chunk.slice());
        this.bytes += chunk.length;
      },
      end: () => this.ends++,
      drain: () => this.drains++,
      close: (error) => this.closes.push(error),
    });
  }

  get all(): Uint8Array {
    const all = new Uint8Array(this.bytes);
    let at = 0;
    for (const chunk of this.chunks) {
      all.set(chunk, at);
      at += chunk.length;
    }
    return all;
  }
}

import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { TcpConnection, TcpPort } from "../../src/ports.ts";
import { until } from "../support/until.ts";
import { LiveLab } from "./live-lab.ts";

/** TCP over a line that can be cut: then nothing comes, what is sent is lost, and nobody reaches anybody, in either direction. */
class CutLine implements TcpPort {
  isAway = false;
  readonly #tcp: TcpPort;

  constructor(tcp: TcpPort) {
    this.#tcp = tcp;
  }

  listen: TcpPort["listen"] = (at, onConnection) =>
    this.#tcp.listen(at, (connection) => {
      if (this.isAway) connection.abort();
      else onConnection(this.#overLine(connection));
    });

  connect: TcpPort["connect"] = async (target, options) => {
    if (this.isAway) throw new MillraceError("connection_failed", "no route");
    return this.#overLine(await this.#tcp.connect(target, options));
  };

  #overLine(connection: TcpConnection): TcpConnection {
    let isCut = false;
    const isLost = () => isCut ||= this.isAway;
    return new Proxy(connection, {
      get: (inner, name: keyof TcpConnection) => {
        if (name === "write") return (chunk: Uint8Array) => isLost() || inner.write(chunk);
        if (name === "open") {
          return (handlers: Parameters<TcpConnection["open"]>[0]) =>
            inner.open({
              data: (chunk) => isLost() || handlers.data(chunk),
              end: () => isLost() || handlers.end(),
              drain: () => handlers.drain(),
              close: (error) => handlers.close(error),
            });
        }
        const value = inner[name];
        return typeof value === "function" ? value.bind(inner) : value;
      },
    });
  }
}

test("LivePeers dials a broadcaster again that was lost with the line", () =>
  LiveLab.run(async (lab) => {
    const home = await lab.node();
    const { broadcast } = await lab.broadcast(home);
    const line = new CutLine(lab.ports.tcp);
    const viewer = await lab.viewer(broadcast.metainfo, [home.address], { ports: { ...lab.ports, tcp: line } });
    await until("the viewer plays", () => viewer.got.size > 2);
    line.isAway = true;
    await until("the viewer gives the connection up", () => viewer.swarm.peers.memberCount === 0, 45_000);
    const before = viewer.got.size;
    line.isAway = false;
    await until("the viewer plays on", () => viewer.got.size > before + 2);
    assertEquals(viewer.swarm.peers.memberCount, 1);
  }));

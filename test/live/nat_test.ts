/** Members that nobody can connect to, over real TCP on this machine: a NAT is a port to which connections hang. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { NetworkSurroundings } from "../../src/discovery/nearness.ts";
import type { Discovery, DiscoveryRequest } from "../../src/discovery/types.ts";
import { abortError } from "../../src/errors.ts";
import type { Ports } from "../../src/ports.ts";
import { until } from "../support/until.ts";
import { LiveLab, type LiveNodeLab } from "./live-lab.ts";

/** This machine's own addresses are strangers' here. */
class Strangers extends NetworkSurroundings {
  override nearness(): "public" {
    return "public";
  }
}

/** A network in which some ports are behind NAT, and a tracker. */
class NatWorld {
  readonly hidden = new Set<number>();
  readonly #lab: LiveLab;
  readonly #listed: { port: number; request: DiscoveryRequest }[] = [];

  constructor(lab: LiveLab) {
    this.#lab = lab;
  }

  /** A member; `isHidden`: behind NAT. */
  async node(options: { isHidden?: boolean; usesTracker?: boolean } = {}): Promise<LiveNodeLab> {
    const { network, tcp, clock } = this.#lab.ports;
    const ports: Ports = {
      ...this.#lab.ports,
      tcp: {
        listen: tcp.listen,
        connect: (target, { signal }) => {
          if (!this.hidden.has(target.port)) return tcp.connect(target, { signal });
          return new Promise((_, reject) => signal.addEventListener("abort", () => reject(abortError(signal))));
        },
      },
    };
    let port = 0;
    const node = await this.#lab.node({
      ports,
      surroundings: new Strangers(network, () => clock.monotonic()),
      discovery: options.usesTracker === true ? this.#tracker(() => port) : null,
    });
    port = node.address.port;
    if (options.isHidden === true) this.hidden.add(port);
    return node;
  }

  /** Gives all others at the first announce, and again only to who asks urgently: a real one would have them wait. */
  #tracker(port: () => number): Discovery {
    const unused = () => Promise.reject(new Error("unused"));
    return {
      start: (request) => {
        const own = { port: port(), request };
        this.#listed.push(own);
        const answer = () => {
          for (const other of this.#listed) {
            if (other !== own) request.onPeer({ host: "127.0.0.1", port: other.port }, "tracker", "127.0.0.1");
          }
        };
        answer();
        return {
          setPrivate: () => {},
          addTrackers: () => {},
          addName: () => {},
          needPeers: (isUrgent) => {
            if (isUrgent === true) answer();
          },
          completed: () => {},
          status: () => [],
          close: () => Promise.resolve(),
        };
      },
      addDhtNode: () => {},
      dhtPort: null,
      getImmutable: unused,
      getMutable: unused,
      putImmutable: unused,
      close: () => Promise.resolve(),
    };
  }
}

function portsOf(node: LiveNodeLab): number[] {
  return node.live.list().flatMap((swarm) => swarm.peers.memberAddresses().map(({ port }) => port));
}

test("LiveSwarm: a broadcaster behind NAT finds its viewers by the tracker and dials them", () =>
  LiveLab.run(async (lab) => {
    const world = new NatWorld(lab);
    const source = await world.node({ isHidden: true, usesTracker: true });
    const { broadcast } = await lab.broadcast(source);
    const viewer = lab.watch(await world.node({ usesTracker: true }), broadcast.metainfo, []);
    await until("the viewer plays", () => viewer.got.size > 0, 10_000);
    assert(viewer.startMs()! < 8_000, `${viewer.startMs()} ms`);
    const second = lab.watch(await world.node({ usesTracker: true }), broadcast.metainfo, []);
    await until("the second viewer plays", () => second.got.size > 0, 10_000);
  }));

test("LiveSwarm: a viewer behind NAT hears at once of newcomers, and dials them", () =>
  LiveLab.run(async (lab) => {
    const world = new NatWorld(lab);
    const source = await world.node();
    const { broadcast } = await lab.broadcast(source);
    const hidden = await world.node({ isHidden: true });
    lab.watch(hidden, broadcast.metainfo, [source.address]);
    await until("the viewer behind NAT is in", () => portsOf(hidden).length === 1, 10_000);
    for (let count = 2; count <= 3; count++) {
      const newcomer = await world.node();
      lab.watch(newcomer, broadcast.metainfo, [source.address]);
      await until("it dials the newcomer", () => portsOf(hidden).includes(newcomer.address.port), 10_000);
      assertEquals(portsOf(hidden).length, count);
    }
  }));

test("LiveSwarm: a viewer learns whether strangers can connect to it, with a neighbour's help", () =>
  LiveLab.run(async (lab) => {
    const world = new NatWorld(lab);
    const source = await world.node();
    const { broadcast } = await lab.broadcast(source);
    const [open, hidden] = [await world.node(), await world.node({ isHidden: true })];
    lab.watch(open, broadcast.metainfo, [source.address]);
    await until("a stranger got in", () => open.manager.context.reachability.state === "open", 10_000);
    lab.watch(hidden, broadcast.metainfo, [source.address]);
    const members = () => source.live.list()[0]!.peers.members();
    await until("both are in", () => [...members()].length === 2, 10_000);
    await until(
      "the source saw that one can be dialled",
      () => [...members()].some(({ reach }) => reach === "open"),
      10_000,
    );
    assertEquals(hidden.manager.context.reachability.state, "unknown");
  }));

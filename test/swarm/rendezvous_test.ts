import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { SocketAddress } from "../../src/ports.ts";
import { addressKey } from "../../src/swarm/neighbours/address.ts";
import type { Neighbour } from "../../src/swarm/neighbours/neighbour.ts";
import { Rendezvous } from "../../src/swarm/neighbours/rendezvous.ts";
import { HOLE_PUNCH_ERROR, type HolePunchMessage } from "../../src/wire/hole-punch.ts";

const at = (n: number, port = 6881): SocketAddress => ({ host: `10.0.${n >> 8}.${n & 255}`, port });
const entry = (address: SocketAddress) => ({ key: addressKey(address), address });

class World {
  nowMs = 0;
  readonly neighbours: Neighbour[] = [];
  /** What was sent, as `to type address error`, and who is dialled. */
  readonly log: string[] = [];
  readonly rendezvous = new Rendezvous({
    now: () => this.nowMs,
    members: () => this.neighbours,
    meet: ({ host }) => this.log.push(`dial ${host}`),
  });

  neighbour(n: number, offers = true): Neighbour {
    const sendHolePunch = ({ type, address, error }: HolePunchMessage) =>
      this.log.push(`${n} ${type} ${address.host}:${address.port} ${error}`);
    const neighbour = {
      isReady: true,
      // A NAT's port; it listens at another one.
      link: { remote: at(n, 40_000), sendHolePunch },
      address: entry(at(n)),
      extensions: { extensions: offers ? ["ut_pex", "ut_holepunch"] : [] },
    } as unknown as Neighbour;
    this.neighbours.push(neighbour);
    return neighbour;
  }

  take(): string[] {
    return this.log.splice(0);
  }
}

test("Rendezvous asks who named an address when it cannot be dialled, once a minute", () => {
  const world = new World();
  const [named, silent] = [world.neighbour(1), world.neighbour(2, false)];
  world.rendezvous.unreached(entry(at(9)));
  world.rendezvous.named(silent, at(9));
  world.rendezvous.unreached(entry(at(9)));
  assertEquals(world.take(), []);
  world.rendezvous.named(named, at(9));
  for (const nowMs of [0, 1_000, 59_999]) {
    world.nowMs = nowMs;
    world.rendezvous.named(named, at(9));
    world.rendezvous.unreached(entry(at(9)));
  }
  assertEquals(world.take(), ["1 rendezvous 10.0.0.9:6881 0"]);
  world.nowMs = 60_000;
  Object.assign(named, { isReady: false });
  world.rendezvous.unreached(entry(at(9)));
  assertEquals(world.take(), []);
});

test("Rendezvous has two neighbours dial each other at the addresses that we see, or says why not", () => {
  const world = new World();
  const [one] = [world.neighbour(1), world.neighbour(2), world.neighbour(3, false)];
  const asks = (address: SocketAddress) => {
    world.rendezvous.message(one!, { type: "rendezvous", address, error: 0 });
    return world.take();
  };
  const met = ["2 connect 10.0.0.1:40000 0", "1 connect 10.0.0.2:40000 0"];
  assertEquals(asks(at(2)), met);
  assertEquals(asks(at(2, 40_000)), met);
  assertEquals(asks(at(1)), [`1 error 10.0.0.1:6881 ${HOLE_PUNCH_ERROR.noSelf}`]);
  assertEquals(asks(at(3)), [`1 error 10.0.0.3:6881 ${HOLE_PUNCH_ERROR.noSupport}`]);
  assertEquals(asks(at(4)), [`1 error 10.0.0.4:6881 ${HOLE_PUNCH_ERROR.notConnected}`]);
});

test("Rendezvous dials whom a neighbour says, and brings others together, at a limited rate", () => {
  const world = new World();
  const [one] = [world.neighbour(1), world.neighbour(2)];
  for (let n = 0; n < 1_000; n++) world.rendezvous.message(one!, { type: "connect", address: at(n), error: 0 });
  assertEquals(world.take().length, 20);
  world.rendezvous.message(one!, { type: "rendezvous", address: at(2), error: 0 });
  assertEquals(world.take(), []);
  world.nowMs = 1_000;
  world.rendezvous.message(one!, { type: "error", address: at(2), error: 2 });
  world.rendezvous.message(one!, { type: "rendezvous", address: at(2), error: 0 });
  assertEquals(world.take().length, 2);
});

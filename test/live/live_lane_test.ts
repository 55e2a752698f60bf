import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { decodeLiveMessage } from "../../src/live/messages.ts";
import { Flight } from "../../src/live/node/line/flight.ts";
import { LiveLane } from "../../src/live/node/neighbour/live-lane.ts";
import { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { BLOCK_BYTES } from "../../src/wire/types.ts";
import { ScriptedLink } from "./support.ts";

/** A neighbour with two connections, and the nonces of the PINGs that each of them was given. */
function twice() {
  const flight = new Flight({
    guessBytesPerS: () => 1_000_000,
    isTold: true,
    isProbed: false,
    limitBytesPerS: Infinity,
    random: Math.random,
  });
  const nonces: [bigint[], bigint[]] = [[], []];
  const link = (at: 0 | 1) =>
    Object.assign(new ScriptedLink(), {
      send(bytes: Uint8Array) {
        const message = decodeLiveMessage(bytes);
        if (message?.type === "ping") nonces[at].push(message.nonce);
      },
    });
  const peer = new LivePeer(link(0), { role: "viewer", upBytesPerS: null }, 0);
  peer.spares.push(new LiveLane(link(1), peer.flight.times));
  return { flight, peer, nonces, lanes: peer.lanes };
}

test("Flight.laneTo() gives the connection with less under way, and null once both are full", () => {
  const { flight, peer, lanes } = twice();
  const taken: number[] = [];
  for (let lane = flight.laneTo(peer); lane !== null && taken.length < 10; lane = flight.laneTo(peer)) {
    taken.push(lanes.indexOf(lane));
    flight.handed(peer, BLOCK_BYTES, 0, lane);
  }
  // A connection may always have two blocks under way.
  assertEquals([taken, flight.isFull(peer)], [[0, 1, 0, 1], true]);
});

test("Flight takes a PONG for the connection that its PING took, and a neighbour stalls only if both connections do", () => {
  const { flight, peer, nonces, lanes } = twice();
  for (const lane of lanes) flight.handed(peer, BLOCK_BYTES, 0, lane);
  assertEquals(flight.echoed(peer, nonces[1].at(-1)!, null, 100), true);
  assertEquals(lanes.map((lane) => lane.flight.unackedBytes), [BLOCK_BYTES, 0]);
  assertEquals(flight.laneTo(peer), lanes[1]);
  flight.handed(peer, BLOCK_BYTES, 3000, lanes[1]!);
  assertEquals(flight.stalledMs(peer, 3500), 500);
  flight.tick([peer], 3500);
  assertEquals(lanes.map((lane) => lane.flight.isAside), [true, false]);
  assertEquals(flight.inFlightBytes, BLOCK_BYTES);
  flight.dropLane(lanes[1]!);
  peer.spares.length = 0;
  assertEquals([flight.inFlightBytes, flight.stalledMs(peer, 3500), flight.isFull(peer)], [0, 3500, true]);
});

test("LivePeer.needsHeader() has a header go before the blocks of its piece on each connection, once", () => {
  const { peer, lanes } = twice();
  const [first, second] = lanes as [LiveLane, LiveLane];
  const needs = (seq: number, lane: LiveLane) => peer.needsHeader(seq, lane);
  assertEquals([needs(7, first), needs(7, first), needs(7, second), needs(7, second)], [true, false, true, false]);
  // The neighbour sent that one itself.
  peer.knowsHeader(8);
  assertEquals([needs(8, first), needs(8, second)], [false, false]);
  peer.spares.length = 0;
  assertEquals([needs(9, first), needs(9, first)], [true, false]);
});

import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { redundantOf } from "../../src/swarm/neighbours/link-ends.ts";

type Connected = Parameters<typeof redundantOf>[0];

const OWN = new Uint8Array(20).fill(5);
/** A connection whose peer id is above or below ours. */
const connection = (incoming: boolean, first: number, host = "10.0.0.1") =>
  ({ link: { incoming, remote: { host, port: 1 } }, info: { peerId: new Uint8Array(20).fill(first) } }) as Connected;

test("redundantOf() keeps one of two crossing connections, the same at both ends", () => {
  for (const first of [4, 6]) {
    const [dialled, accepted] = [connection(false, first), connection(true, first)];
    const loser = first > 5 ? dialled : accepted;
    assertEquals(redundantOf(dialled, accepted, OWN) === loser, true);
    assertEquals(redundantOf(accepted, dialled, OWN) === loser, true);
  }
});

test("redundantOf() keeps the older of two in one direction", () => {
  for (const incoming of [true, false]) {
    const newer = connection(incoming, 6);
    assertEquals(redundantOf(connection(incoming, 6), newer, OWN) === newer, true);
  }
});

test("redundantOf() keeps both when another host presents the peer id", () => {
  for (const incoming of [true, false]) {
    const older = connection(true, 6, "::ffff:10.0.0.1");
    assertEquals(redundantOf(older, connection(incoming, 6, "10.0.0.2"), OWN), null);
  }
});

test("redundantOf() keeps the older of two to a machine with addresses of IPv6", () => {
  for (const hosts of [["10.0.0.1", "2001:db8::1"], ["2001:db8::1", "10.0.0.1"], ["2001:db8::1", "2001:db8::2"]]) {
    for (const first of [4, 6]) {
      for (const incoming of [true, false]) {
        const newer = connection(incoming, first, hosts[1]);
        assertEquals(redundantOf(connection(!incoming, first, hosts[0]), newer, OWN) === newer, true);
      }
    }
  }
});

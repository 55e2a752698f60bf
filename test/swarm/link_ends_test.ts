import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { redundantOf } from "../../src/swarm/link-ends.ts";

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

test("redundantOf() keeps the older when another host presents its peer id", () => {
  for (const first of [4, 6]) {
    for (const incoming of [true, false]) {
      const newer = connection(incoming, first, "10.0.0.2");
      assertEquals(redundantOf(connection(!incoming, first), newer, OWN) === newer, true);
    }
  }
});

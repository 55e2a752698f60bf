import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { subnetOf } from "../../src/live/node/neighbour/subnet.ts";
import { PeerAdmission } from "../../src/live/swarm/admission.ts";

test("subnetOf() is the /24 or /48 of public addresses", () => {
  const table: [string, string | null][] = [
    ["203.0.113.9", "203.0.113"],
    ["::ffff:203.0.113.77", "203.0.113"],
    ["127.0.0.1", null],
    ["10.1.2.3", null],
    ["172.20.0.1", null],
    ["172.32.0.1", "172.32.0"],
    ["192.168.1.1", null],
    ["2001:db8:1:2::5", "2001:db8:1"],
    ["2001:0db8:0001::", "2001:db8:1"],
    ["2001:db8::9", "2001:db8:0"],
    ["::1", null],
    ["fe80::1", null],
    ["fd00::1", null],
  ];
  for (const [host, subnet] of table) assertEquals(subnetOf(host), subnet, host);
});

test("PeerAdmission leaves half of its places to other networks than the largest, and gives places back", () => {
  const admission = new PeerAdmission(40);
  const taken = Array.from({ length: 30 }, (_, i) => admission.take(`203.0.113.${i}`, i % 3 !== 0));
  assertEquals(taken.filter(Boolean).length, 20);
  assertEquals(admission.take("203.0.114.1", true), true);
  admission.release("203.0.113.1", true);
  assertEquals([admission.take("203.0.113.40", true), admission.take("203.0.113.41", true)], [true, false]);
  for (let i = 0; i < 5; i++) assertEquals(admission.take("127.0.0.1", true), true);
});

test("PeerAdmission lets twenty viewers of one household be neighbours of a viewer", () => {
  const admission = new PeerAdmission(40);
  for (let i = 1; i <= 20; i++) assertEquals(admission.take(`203.0.113.${i}`, true), true);
});

test("PeerAdmission has half of the neighbours that we look for be of other networks", () => {
  const admission = new PeerAdmission(40);
  const dialled = Array.from({ length: 20 }, (_, i) => admission.take(`203.0.113.${i}`, false));
  assertEquals(dialled.filter(Boolean).length, 10);
  assertEquals(admission.take("203.0.114.1", false), true);
});

test("PeerAdmission keeps four places for connections that we make", () => {
  const admission = new PeerAdmission(10);
  const incoming = Array.from({ length: 10 }, (_, i) => admission.take(`203.0.${i}.1`, true));
  assertEquals(incoming.filter(Boolean).length, 6);
  const outgoing = Array.from({ length: 10 }, (_, i) => admission.take(`198.51.${i}.1`, false));
  assertEquals(outgoing.filter(Boolean).length, 4);
});

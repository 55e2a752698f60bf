import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { displacedBy, type Holder } from "../../src/swarm/neighbours/places.ts";

interface Place extends Holder {
  readonly name: string;
}

function places(...groups: readonly [prefix: string, count: number, isProven?: boolean][]): Place[] {
  return groups.flatMap(([prefix, count, isProven = false]) => {
    return Array.from(
      { length: count },
      (_, i) => ({ name: `${prefix}${i + 1}`, host: `${prefix}${i + 1}`, isProven }),
    );
  });
}

const nameOf = (place: Place | null) => place?.name ?? null;

test("displacedBy() takes the oldest place of the network with the most unproven holders", () => {
  const full = places(["8.1.1.", 3], ["8.2.2.", 10], ["8.3.3.", 30, true]);
  assertEquals(nameOf(displacedBy(full, "9.9.9.9")), "8.2.2.1");
  assertEquals(nameOf(displacedBy(full, "8.1.1.200")), "8.2.2.1");
  assertEquals(nameOf(displacedBy(full, "2606:4700::1")), "8.2.2.1");
});

test("displacedBy() lets a network displace nobody once it holds as many as any other", () => {
  const full = places(["8.1.1.", 9], ["8.2.2.", 10]);
  assertEquals(displacedBy(full, "8.1.1.200"), null);
  assertEquals(displacedBy(full, "8.2.2.200"), null);
});

test("displacedBy() never displaces proven holders, or single hosts of many networks", () => {
  assertEquals(displacedBy(places(["8.1.1.", 20, true]), "9.9.9.9"), null);
  const apart = Array.from({ length: 20 }, (_, i) => ({ name: `${i}`, host: `8.${i}.1.1`, isProven: false }));
  assertEquals(displacedBy(apart, "9.9.9.9"), null);
  assertEquals(displacedBy([], "9.9.9.9"), null);
});

test("displacedBy() counts each host of a private network separately", () => {
  const full = [
    ...places(["192.168.1.", 20]),
    ...places(["10.0.0.", 1]),
    ...places(["10.0.0.", 1]),
    ...places(["10.0.0.", 1]),
  ];
  assertEquals(nameOf(displacedBy(full, "192.168.1.50")), "10.0.0.1");
  assertEquals(displacedBy(places(["192.168.1.", 20]), "192.168.1.50"), null);
});

import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { NetworkSurroundings } from "../../src/discovery/nearness.ts";

const EXTERNAL = "93.184.216.34";

const home = () => new NetworkSurroundings({ interfaces: () => [] }, () => 0);

test("Surroundings.nearness() treats an external address as own once three networks report it", () => {
  const here = home();
  for (let i = 0; i < 200; i++) here.external.report(EXTERNAL, `5.5.${i}.1`);
  here.external.report(EXTERNAL, "6.6.6.6");
  // Hosts of our own network and invalid addresses don't count.
  for (const reporter of ["192.168.7.7", "127.0.0.1", "tracker.example", "", "fe80::1"]) {
    here.external.report(EXTERNAL, reporter);
  }
  assertEquals(here.nearness(EXTERNAL), "public");
  here.external.report(`::ffff:${EXTERNAL}`, "7.7.7.7");
  for (const host of [EXTERNAL, `::ffff:${EXTERNAL}`, "64:ff9b::5db8:d822"]) {
    assertEquals(here.nearness(host), "own", host);
  }
  assertEquals(here.nearness("93.184.216.35"), "public");
});

test("ExternalAddresses.report() ignores private addresses and counts IPv6 reporters by provider", () => {
  const here = home();
  for (const reporter of ["5.5.5.5", "6.6.6.6", "7.7.7.7"]) here.external.report("192.168.9.9", reporter);
  assertEquals(here.nearness("192.168.9.9"), "private");
  for (const reporter of ["2a01:4f8::1", "2a01:4f8:1::1", "2a01:4f8:2::1", "2a02::1"]) {
    here.external.report("2620:fe::9", reporter);
  }
  assertEquals(here.nearness("2620:fe::9"), "public");
  here.external.report("2620:fe::9", "2a03::1");
  assertEquals(here.nearness("2620:fe::9"), "own");
});

test("ExternalAddresses.report() keeps the believed address while a liar reports thousands of others", () => {
  const here = home();
  for (const reporter of ["5.5.5.5", "6.6.6.6", "7.7.7.7"]) here.external.report(EXTERNAL, reporter);
  for (let i = 0; i < 5000; i++) here.external.report(`44.${i >> 8}.${i & 255}.1`, "8.8.8.8");
  assertEquals([here.nearness(EXTERNAL), here.nearness("44.19.135.1")], ["own", "public"]);
});

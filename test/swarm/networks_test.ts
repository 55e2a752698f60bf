/** A machine with IPv6 has a whole /64 of addresses: what is limited by machine counts them as one. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { AddressBook } from "../../src/swarm/neighbours/address-book.ts";
import { BanList } from "../../src/swarm/neighbours/bans.ts";

test("AddressBook keeps 16 addresses of a /64, as of one IPv4 address, and others of the next /64", () => {
  const book = new AddressBook();
  for (let i = 1; i < 100; i++) book.add({ host: `2a00:1:2:3::${i.toString(16)}`, port: 6881 }, "pex");
  assertEquals(book.size, 16);
  assertEquals(book.add({ host: "2a00:1:2:4::1", port: 6881 }, "pex"), true);
});

test("BanList bans a /64 for what its addresses did together", () => {
  const bans = new BanList();
  assertEquals(bans.note("2a00:1:2:3::1", "aa", "lie", 0), "peer");
  assertEquals(bans.note("2a00:1:2:3:ffff::2", "bb", "lie", 0), "address");
  assertEquals([bans.hasAddress("2a00:1:2:3::77", 0), bans.hasAddress("2a00:1:2:4::77", 0)], [true, false]);
});

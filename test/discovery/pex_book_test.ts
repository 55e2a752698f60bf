import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { PEX_REACHABLE, PEX_SEED, PexBook } from "../../src/discovery/pex-book.ts";

const peer = (n: number) => ({ host: `10.0.${n >> 8}.${n & 255}`, port: 6881 });

test("PexBook.messageFor() tells each peer what changed since its last message, but not about itself", () => {
  const book = new PexBook();
  book.add(peer(1), PEX_SEED | PEX_REACHABLE);
  book.add(peer(2), 0);
  assertEquals(book.messageFor("a", peer(1), 0), { added: [{ ...peer(2), flags: 0 }], dropped: [] });
  assertEquals(book.messageFor("b", peer(2), 5), { added: [{ ...peer(1), flags: 0x12 }], dropped: [] });
  assertEquals(book.messageFor("a", peer(1), 60_000), null);
  book.remove(peer(2));
  book.add(peer(3), 0);
  assertEquals(book.messageFor("a", peer(1), 60_000), { added: [{ ...peer(3), flags: 0 }], dropped: [peer(2)] });
});

test("PexBook.messageFor() sends at most one message per minute to a peer", () => {
  const book = new PexBook();
  book.add(peer(1), 0);
  book.messageFor("a", null, 0);
  book.add(peer(2), 0);
  assertEquals(book.messageFor("a", null, 59_999), null);
  assertEquals(book.messageFor("a", null, 60_000)?.added.length, 1);
});

test("PexBook.messageFor() leaves out a peer that came and went between two messages", () => {
  const book = new PexBook();
  book.add(peer(1), 0);
  book.messageFor("a", null, 0);
  book.add(peer(2), 0);
  book.remove(peer(2));
  assertEquals(book.messageFor("a", null, 60_000), null);
});

test("PexBook.messageFor() sends at most 50 added and 50 dropped peers, the rest a minute later", () => {
  const book = new PexBook();
  for (let n = 0; n < 120; n++) book.add(peer(n), 0);
  const counts = [0, 1, 2].map((minute) => book.messageFor("a", null, minute * 60_000)?.added.length);
  assertEquals(counts, [50, 50, 20]);
  for (let n = 0; n < 120; n++) book.remove(peer(n));
  const dropped = [3, 4, 5].map((minute) => book.messageFor("a", null, minute * 60_000)?.dropped.length);
  assertEquals(dropped, [50, 50, 20]);
});

test("PexBook tracks at most 500 peers and recipients, and forgets recipients", () => {
  const book = new PexBook();
  for (let n = 0; n < 700; n++) book.add(peer(n), 0);
  let told = 0;
  for (let minute = 0; minute < 20; minute++) told += book.messageFor("a", null, minute * 60_000)?.added.length ?? 0;
  assertEquals(told, 500);
  for (let n = 0; n < 499; n++) book.messageFor(`r${n}`, null, 0);
  assertEquals(book.messageFor("late", null, 0), null);
  book.forget("r0");
  assertEquals(book.messageFor("late", null, 0)?.added.length, 50);
});

test("PexBook.accept() accepts 50 peers per message and one message per minute", () => {
  const book = new PexBook();
  const added = Array.from({ length: 80 }, (_, n) => ({ ...peer(n), flags: 0 }));
  assertEquals(book.accept("a", added, 0).length, 50);
  assertEquals(book.accept("a", added, 44_000).length, 0);
  assertEquals(book.accept("a", added, 45_000).length, 50);
  assertEquals(book.accept("b", added, 45_000).length, 50);
});

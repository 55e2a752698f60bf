import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { AddressBook } from "../../src/swarm/neighbours/address-book.ts";
import { Comeback } from "../../src/swarm/neighbours/comeback.ts";
import { FakeClock } from "../support/fake-clock.ts";

const HOME = { host: "198.51.100.1", port: 1 };

/** A swarm with a neighbour at `HOME`, which has been there for a minute. */
function stage({ isEager = true } = {}) {
  const clock = new FakeClock();
  const book = new AddressBook();
  book.add(HOME, "tracker");
  const entry = book.get(HOME)!;
  Object.assign(entry, { state: "connected", hasWorked: true });
  const dialledMs: number[] = [];
  let searches = 0;
  let dropped = 0;
  const startedMs = clock.monotonic();
  const neighbour = { isReady: true, startedMs, link: { lastReceivedMs: 0 }, drop: () => void dropped++ };
  const sessions = [neighbour];
  const comeback = new Comeback({
    clock,
    book,
    sessions,
    isEager,
    pump: () => {
      if (book.next(clock.monotonic(), () => false) === null) return;
      dialledMs.push(clock.monotonic());
      book.failed(entry, clock.monotonic());
    },
    search: () => void searches++,
  });
  clock.advance(60_000);
  const lose = (lost = neighbour) => {
    sessions.length = 0;
    book.ended(entry, clock.monotonic());
    comeback.lost(lost);
  };
  return {
    clock,
    book,
    comeback,
    neighbour,
    sessions,
    dialledMs,
    lose,
    searches: () => searches,
    dropped: () => dropped,
  };
}

test("Comeback dials at once, after 1 s, 2 s and so on while no neighbour is left, and forgets none that worked", () => {
  const { clock, book, comeback, dialledMs, lose } = stage();
  lose();
  clock.advance(200_000);
  const pauses = dialledMs.map((ms, i) => ms - (dialledMs[i - 1] ?? 60_000));
  assertEquals(pauses, [250, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000, 30_000]);
  assertEquals(book.size, 1);
  comeback.joined();
  clock.advance(600_000);
  assertEquals(dialledMs.length, pauses.length);
});

test("Comeback dials ever less often while nobody waits for bytes", () => {
  const { clock, dialledMs, lose } = stage({ isEager: false });
  lose();
  clock.advance(3_600_000);
  assertEquals(dialledMs.at(-1)! - dialledMs.at(-2)!, 600_000);
});

test("Comeback keeps waiting longer for a neighbour that takes each connection and hangs up", () => {
  const { clock, comeback, dialledMs, lose, neighbour } = stage();
  lose();
  for (let i = 0; i < 5; i++) {
    clock.advance(dialledMs.length === 0 ? 250 : 2 ** (dialledMs.length - 1) * 1_000);
    comeback.joined();
    lose({ ...neighbour, startedMs: clock.monotonic() });
  }
  const pauses = dialledMs.map((ms, i) => ms - (dialledMs[i - 1] ?? 60_000));
  assertEquals(pauses, [250, 1_000, 2_000, 4_000, 8_000]);
});

test("Comeback does nothing while another neighbour is left", () => {
  const { clock, comeback, neighbour, sessions, dialledMs } = stage();
  sessions.push({ ...neighbour });
  comeback.lost(neighbour);
  clock.advance(60_000);
  assertEquals(dialledMs, []);
});

test("Comeback.round() asks for peers once after we stood still, and gives up neighbours that say nothing for 5 s", () => {
  const { clock, comeback, neighbour, sessions, searches, dropped } = stage();
  const alive = {
    ...neighbour,
    link: { lastReceivedMs: 0 },
    drop: () => {
      throw new Error("this one is still there");
    },
  };
  sessions.push(alive);
  const rounds = (count: number) => {
    for (let i = 0; i < count; i++) {
      clock.advance(1_000);
      comeback.round(clock.monotonic());
    }
  };
  rounds(100);
  assertEquals([searches(), dropped()], [0, 0]);
  clock.standStill(80_000);
  rounds(3);
  alive.link.lastReceivedMs = clock.monotonic();
  assertEquals([searches(), dropped()], [1, 0]);
  rounds(20);
  assertEquals([searches(), dropped()], [1, 1]);
});

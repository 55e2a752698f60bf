/** Floods of control messages: a peer may send as many as any client does, and must not delay others with them. */
import { test } from "node:test";
import { assert, assertEquals, assertLess, assertThrows } from "@std/assert";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { MessageAllowance, unitsOf } from "../../src/wire/message-allowance.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { againstRaw, frame } from "./support/links.ts";
import { until } from "./support/memory-connection.ts";

const HAVE = unitsOf(4, null);

test("MessageAllowance lets a client announce 400,000 pieces one by one", () => {
  const allowance = new MessageAllowance(new FakeClock());
  allowance.setPieceCount(400_000);
  for (let piece = 0; piece < 400_000; piece++) allowance.spend(HAVE);
});

test("MessageAllowance lets a client announce 2000 pieces per second for an hour, and choke at the normal rate", () => {
  const clock = new FakeClock();
  const allowance = new MessageAllowance(clock);
  const choke = unitsOf(0, Uint8Array.of(0));
  for (let second = 0; second < 3_600; second++) {
    for (let i = 0; i < 2_000; i++) allowance.spend(HAVE);
    for (let i = 0; i < 10; i++) allowance.spend(choke);
    clock.advance(1_000);
  }
});

test("MessageAllowance ends a peer that changes its mind thousands of times a second", () => {
  const clock = new FakeClock();
  const allowance = new MessageAllowance(clock);
  const interested = unitsOf(2, Uint8Array.of(2));
  let second = 0;
  const error = assertThrows(() => {
    for (; second < 600; second++) {
      for (let i = 0; i < 2_000; i++) allowance.spend(interested);
      clock.advance(1_000);
    }
  }, MillraceError);
  assertEquals(error.code, "protocol_violation");
  assertLess(second, 30);
});

test("a link reads a burst of 20,000 haves completely, in order, over several turns", async () => {
  const { raw, events } = await againstRaw();
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns++;
    if (!isOver) setTimeout(turn, 0);
  };
  setTimeout(turn, 0);
  raw.send(Array.from({ length: 20_000 }, (_, piece) => frame(4, piece)).flat());
  for (let i = 0; i < 50 && events.of("have").length < 20_000; i++) {
    await until(() => events.of("have").length === 20_000);
  }
  isOver = true;
  assertEquals(events.of("have").map(([, piece]) => piece), Array.from({ length: 20_000 }, (_, piece) => piece));
  assert(turns >= 2, `${turns} turns of the event loop`);
});

test("a link stays paused by its owner after a waiting burst has been read", async () => {
  const { raw, link, events } = await againstRaw();
  raw.send(Array.from({ length: 20_000 }, (_, piece) => frame(4, piece)).flat());
  await until(() => events.of("have").length > 0);
  // The burst is far larger than one portion, however fast the machine.
  assertLess(events.of("have").length, 20_000);
  link.pause();
  await until(() => events.of("have").length === 20_000);
  raw.send(frame(4, 20_000));
  await until(() => events.of("have").length === 20_001);
  assertEquals(events.of("have").length, 20_000);
  link.resume();
  await until(() => events.of("have").length === 20_001);
  assertEquals(events.of("have").length, 20_001);
});

test("a link ends on a flood of expensive messages after reading a fraction of them", async () => {
  const { raw, events } = await againstRaw();
  for (let i = 0; i < 100; i++) raw.send(Array.from({ length: 2_500 }, (_, n) => frame(2 + n % 2)).flat());
  // Reading takes many turns.
  for (let i = 0; i < 50 && events.closeError === undefined; i++) await until(() => events.closeError !== undefined);
  assert(hasCode(events.closeError, "protocol_violation"), String(events.closeError));
  assertLess(events.of("interested").length, 5_100);
});

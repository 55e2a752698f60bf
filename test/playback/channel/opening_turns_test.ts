/** When upstreams of channels are opened for players who change fast. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../../src/errors.ts";
import { OpeningTurns } from "../../../src/playback/channel/opening-turns.ts";
import { FakeClock } from "../../support/fake-clock.ts";

function setUp(hasRoom: (client: string) => boolean = () => true) {
  const clock = new FakeClock();
  const turns = new OpeningTurns(clock, hasRoom);
  const begun: string[] = [];
  const refused: string[] = [];
  const change = (client: string, name: string, signal = new AbortController().signal) => {
    const turn = turns.take(client, signal);
    return turn.then(() => void begun.push(name), (error) => void refused.push(`${name}: ${error.code}`));
  };
  return { clock, turns, begun, refused, change };
}

test("OpeningTurns.take() lets a player's first changes begin at once, and later its newest twice a second", async () => {
  const { clock, begun, refused, change } = setUp();
  for (let at = 1; at <= 20; at++) void change("a", `a${at}`);
  await clock.advanceAsync(0);
  assertEquals(begun, ["a1", "a2", "a3", "a4", "a5", "a6"]);
  assertEquals(refused.length, 10, "only the newest four wait");
  await clock.advanceAsync(1100);
  assertEquals(begun.slice(6), ["a20", "a19"]);
  await clock.advanceAsync(1000);
  assertEquals(begun.slice(8), ["a18", "a17"]);
  assertEquals(clock.pendingTimers, 0);
});

test("OpeningTurns.take() serves one player after the other when all together have used what there is", async () => {
  const { clock, begun, change } = setUp();
  for (const client of ["a", "b", "c"]) for (let at = 1; at <= 6; at++) void change(client, `${client}${at}`);
  await clock.advanceAsync(0);
  assertEquals(begun.length, 16, "of all together");
  void change("d", "d1");
  await clock.advanceAsync(400);
  assertEquals(begun.slice(16), ["c6", "d1", "c5"]);
});

test("OpeningTurns.take() forgets a change that was left, and does not charge it", async () => {
  const { clock, begun, refused, change } = setUp();
  for (let at = 1; at <= 6; at++) void change("a", `a${at}`);
  const leaving = new AbortController();
  const left = change("a", "left", leaving.signal);
  leaving.abort(new MillraceError("aborted", "the player left"));
  await left;
  assertEquals(refused, ["left: aborted"]);
  assertEquals(clock.pendingTimers, 0);
  void change("a", "next");
  await clock.advanceAsync(600);
  assertEquals(begun.slice(6), ["next"]);
});

test("OpeningTurns.take() waits while a player's upstreams hang, and refuses the 65th player who waits", async () => {
  let hangs = true;
  const { clock, turns, begun, change } = setUp(() => !hangs);
  for (let at = 0; at < 64; at++) void change(`player ${at}`, String(at));
  await assertRejects(() => turns.take("one more", new AbortController().signal), MillraceError, "try again");
  await clock.advanceAsync(5000);
  assertEquals(begun, []);
  hangs = false;
  await clock.advanceAsync(1000);
  assertEquals(begun.length, 39, "saved up before and after the pause, and those of a second");
});

/** Accounts at providers that allow so many connections at once, whoever wants how many. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../../src/errors.ts";
import { RANKS } from "../../../src/playback/channel/account-connections.ts";
import { RECORDER } from "../../../src/playback/channel/channel-sources.ts";
import type { LiveSession } from "../../../src/playback/live/live-session.ts";
import { setUpChannels } from "./upstream.ts";

const at = (name: string) => `http://${name}.example/live`;
const [A, B, C] = [at("a"), at("b"), at("c")];
const account = (maxConnections: number, list = 1) => ({ list, name: `Provider ${list}`, maxConnections });
const of = (address: string, maxConnections: number, list = 1) => ({
  address,
  named: address,
  account: account(maxConnections, list),
});

/** A viewer that reads until it leaves. */
function view(session: LiveSession) {
  const reader = session.openStream().getReader();
  const viewer = { bytes: 0, leave: () => reader.cancel() };
  void (async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) viewer.bytes += next.value.length;
  })().catch(() => {});
  return viewer;
}

test("Sessions.start() opens no more connections of an account than it allows, and says what they are used for", async () => {
  const { asked, begin, run } = setUpChannels({ [A]: "sends", [B]: "sends", [C]: "sends" });
  const one = await begin([of(A, 2)], { pid: "one" });
  const two = await begin([of(B, 2)], { pid: "two", owner: RECORDER });
  const same = await begin([of(A, 2)], { pid: "three" });
  for (const session of [one, two, same]) view(session);
  await run(3000);
  const refused = await assertRejects(() => begin([of(C, 2)]), MillraceError);
  assertEquals([refused.code, asked], ["too_busy", [A, B]]);
  assertMatch(refused.message, /"Provider 1" allows 2 connections at once.*\(1 recorded, 1 watched\)/);
  const other = await begin([of(C, 2, 2)], { pid: "four" });
  assertEquals(asked, [A, B, C], "of another account");
  for (const session of [one, two, same, other]) session.stop("done");
});

test("Sessions.start() takes an address of another account at once where one has no connection left", async () => {
  const { clock, asked, begin, run } = setUpChannels({ [A]: "sends", [B]: "sends", [C]: "sends" });
  const one = await begin([of(A, 1)], { pid: "one" });
  view(one);
  await run(1000);
  const sinceMs = clock.monotonic();
  const two = await begin([of(B, 1), of(C, 1, 2)], { pid: "two" });
  assert(clock.monotonic() - sinceMs < 2000);
  assertEquals(asked, [A, C]);
  assertMatch(two.stream.source.channel!.reason!, /allows 1 connection at once/);
  for (const session of [one, two]) session.stop("done");
});

test("Sessions.start() takes the connection of a viewer who has left, after its upstream is closed", async () => {
  const { open, begin, run } = setUpChannels({ [A]: "sends", [B]: "sends" });
  const viewer = view(await begin([of(A, 1)], { pid: "box" }));
  await run(2000);
  await viewer.leave();
  const next = await begin([of(B, 1)], { pid: "box" });
  assertEquals(open.map(({ isLeft }) => isLeft), [true, false]);
  next.stop("done");
});

test("Sessions.start() of a recording takes a viewer's connection, who goes on elsewhere or once it is free again", async () => {
  const { open, begin, run } = setUpChannels({ [A]: "sends", [B]: "sends", [C]: "sends" });
  const viewer = await begin([of(A, 1), of(C, 1, 2)], { pid: "viewer" });
  const watched = view(viewer);
  await run(2000);
  const recording = await begin([of(B, 1)], { pid: "recording", owner: RECORDER });
  assertEquals(open.map(({ isLeft }) => isLeft), [true, false, false]);
  const before = watched.bytes;
  await run(3000);
  assert(watched.bytes > before + 30_000);
  assertMatch(viewer.stream.source.channel!.reason!, /something else needed this one/);
  const second = await begin([of(A, 1, 2)], { pid: "second", owner: RECORDER });
  await run(1000);
  const paused = watched.bytes;
  await run(8000);
  assertEquals(watched.bytes, paused, "both connections are recorded from");
  recording.stop("done");
  await run(30_000);
  assert(watched.bytes > paused + 30_000, "the first one is free again");
  for (const session of [viewer, second]) session.stop("done");
});

test("AccountConnections.take() has a check give way to a viewer, and not the other way round", async () => {
  const { channels: { accounts }, begin, run } = setUpChannels({ [A]: "sends" });
  const { signal } = new AbortController();
  const reasons: Error[] = [];
  const giveBack = await accounts.take(
    account(1),
    {
      rank: () => RANKS.idle,
      giveUp: (reason) => {
        reasons.push(reason);
        giveBack();
      },
    },
    0,
    signal,
  );
  const session = await begin([of(A, 1)]);
  assertEquals(reasons.length, 1);
  const check = { rank: () => RANKS.idle, giveUp: () => {} };
  await assertRejects(() => accounts.take(account(1), check, 0, signal), MillraceError, "all are in use");
  session.stop("done");
  const taking = accounts.take(account(1), check, 1000, signal);
  await run(500);
  (await taking)();
});

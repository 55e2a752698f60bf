import { test } from "node:test";
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { tsBody } from "../../src/playback/output.ts";
import type { CushionSetting } from "../../src/playback/cushion.ts";
import type { PlaybackSession } from "../../src/playback/session.ts";
import type { StartRequest } from "../../src/playback/start-request.ts";
import { statOf } from "../../src/playback/stat.ts";
import { repeatTs } from "../media/ts-input-support.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { clip } from "../support/fixtures.ts";
import { readHls, readTs, Screen, SlowSwarm } from "./slow-swarm.ts";
import { FakeSwarms, makeSessions, startRequest } from "./support.ts";

const FILM_S = 60;
const FILM = repeatTs(clip("ts-188.ts"), FILM_S / 6, 6 * 90_000);
const FILM_RATE = FILM.length / FILM_S;

/** A film in a swarm of `ratio` times its bitrate, and a session of it. */
async function setUp(ratio: number, request: Partial<StartRequest> = {}) {
  const clock = new FakeClock();
  // The start, which a slow swarm would make last, is not what is looked at.
  const swarm = new SlowSwarm("film.ts", FILM, 10 * FILM_RATE, clock);
  const setting: CushionSetting = { choice: "auto" };
  const sessions = makeSessions(clock, new FakeSwarms(swarm), { cushion: setting });
  const starting = sessions.start(startRequest(swarm.infohashHex, { output: "ts", ...request }));
  let isOver = false;
  starting.finally(() => isOver = true).catch(() => {});
  const nobody = new Screen(FILM_S, 0);
  while (!isOver) await nobody.watch(clock, 0.5);
  swarm.bytesPerSecond = ratio * FILM_RATE;
  return { clock, swarm, setting, session: await starting as PlaybackSession };
}

/** As `setUp`, watched by a player with five seconds ahead until it is held up. */
async function setUpHeld(ratio: number, prepare: (swarm: SlowSwarm) => void = () => {}) {
  const film = await setUp(ratio);
  prepare(film.swarm);
  const screen = new Screen(FILM_S, 5);
  readTs(film.session, screen, FILM_S).catch(() => {});
  while (film.session.cushion.filling === null) await screen.watch(film.clock, 1);
  return { ...film, screen };
}

const stat = (session: PlaybackSession) => statOf(session, { limitBytes: 0, usedBytes: 0 }, "prefuf");

for (const output of ["ts", "hls"] as const) {
  test(`Cushion stops ${output} at most three times in a swarm of half the film's bitrate, not dozens`, async () => {
    const stops: number[] = [];
    for (const cushion of ["off", "auto"] as const) {
      const { clock, session } = await setUp(1 / 2, { output, cushion });
      const screen = new Screen(FILM_S, 5);
      const reading = output === "ts" ? readTs(session, screen, FILM_S) : readHls(session, screen, clock);
      await screen.watch(clock);
      await reading;
      stops.push(screen.stops);
    }
    assert(stops[0]! >= 7 && stops[1]! <= 3, `${stops}`);
  });
}

test("stat says prefuf while a cushion is filled, how far it is, and how long it takes", async () => {
  const { clock, session, screen } = await setUpHeld(2 / 3);
  await screen.watch(clock, 5);
  const first = stat(session);
  assertEquals([first["status"], first["stall_reason"], first["cushion_play_s"]], ["prefuf", "slow_peers", null]);
  assert(Number(first["progress"]) < 50, `${first["progress"]} %`);
  const beganMs = clock.monotonic();
  while (session.cushion.filling !== null) await screen.watch(clock, 1);
  const tookS = (clock.monotonic() - beganMs) / 1000;
  assert(
    Math.abs(tookS - Number(first["cushion_wait_s"])) < 0.2 * tookS,
    `${first["cushion_wait_s"]}, took ${tookS} s`,
  );
  await screen.watch(clock, 3);
  const after = stat(session);
  assertEquals([after["status"], after["progress"], after["stall_reason"], after["cushion_wait_s"]], [
    "dl",
    100,
    null,
    null,
  ]);
  const names: string[] = [];
  for (let id = 0, isLast = false; !isLast;) {
    const next = session.events.nextAfter(id, clock, new AbortController().signal);
    await clock.advanceAsync(15_000);
    const event = await next;
    isLast = event === null;
    if (event === null) break;
    id = event.id;
    names.push(event.name);
  }
  assertEquals(names.slice(-3), ["stalled", "prebuffering", "playing"]);
});

test("Cushion never holds up players of a swarm that is faster than the film, however much they fetch ahead", async () => {
  for (const aheadS of [5, Infinity]) {
    const { clock, session } = await setUp(1.3);
    const screen = new Screen(FILM_S, aheadS);
    void readTs(session, screen, FILM_S);
    let held = 0;
    while (screen.playedS < FILM_S - 1) {
      await screen.watch(clock, 1);
      if (session.cushion.filling !== null) held++;
    }
    assertEquals(held, 0);
  }
});

test("Cushion lets morsels through, so that a held player never waits long for bytes", async () => {
  const { clock, session, screen } = await setUpHeld(1 / 2);
  let longestS = 0, sinceS = 0, gotS = screen.gotS;
  while (session.cushion.filling !== null) {
    await screen.watch(clock, 1);
    sinceS = screen.gotS > gotS ? 0 : sinceS + 1;
    longestS = Math.max(longestS, sinceS);
    gotS = screen.gotS;
  }
  assertLess(longestS, 10);
});

test("Cushion ends when the player seeks, and begins again after two more stops", async () => {
  const { clock, session, screen } = await setUpHeld(1 / 2);
  const body = tsBody(session)!;
  const reader = body.open(Math.floor(0.9 * FILM.length), null).getReader();
  let isHere = false;
  void reader.read().then(() => isHere = true);
  while (!isHere) await screen.watch(clock, 0.5);
  assertEquals(session.cushion.filling, null);
  assertEquals(stat(session)["cushion_wait_s"], null);
  await reader.cancel();
});

test("Cushion.skip() lets the player go on at once and leaves it alone", async () => {
  const { clock, session, screen } = await setUpHeld(1 / 2);
  await screen.watch(clock, 3);
  session.cushion.skip();
  const stops = screen.stops;
  for (let s = 0; s < 25; s++) {
    await screen.watch(clock, 1);
    assertEquals(session.cushion.filling, null);
  }
  assertGreater(screen.stops, stops);
});

test("Cushion is no larger than what the cache has room for, and says how long that plays", async () => {
  const { clock, session, screen } = await setUpHeld(1 / 2, (swarm) => swarm.roomBytes = 15 * FILM_RATE);
  await screen.watch(clock, 2);
  // So long do 15 seconds last when the rest comes at half the bitrate.
  assert(Math.abs(session.cushion.filling!.playS! - 30) <= 3, `${session.cushion.filling!.playS} s`);
  await screen.watch(clock, 45);
  assertEquals(session.cushion.filling, null);
});

test("Cushion of a chosen length waits for this many seconds of the film", async () => {
  const { clock, session, screen } = await setUpHeld(1 / 2);
  session.cushion.choice = 8;
  await screen.watch(clock, 1);
  assert(Math.abs(session.cushion.filling!.playS! - 15) <= 2, `${session.cushion.filling!.playS} s`);
  await screen.watch(clock, 18);
  assertEquals(session.cushion.filling, null);
});

test("Cushion follows the setting while it is filled, unless the start chose otherwise", async () => {
  const { clock, setting, session, screen } = await setUpHeld(1 / 2);
  setting.choice = "off";
  await screen.watch(clock, 1);
  assertEquals(session.cushion.filling, null);
  session.follow({ cushion: "auto" });
  while (session.cushion.filling === null) await screen.watch(clock, 1);
});

test("Cushion does not wait for a swarm that brings nothing any more", async () => {
  const { clock, swarm, session, screen } = await setUpHeld(1 / 2);
  swarm.bytesPerSecond = 0;
  await screen.watch(clock, 35);
  assertEquals(session.cushion.filling, null);
});

import { test } from "node:test";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { LiveScan } from "../../src/playback/live/live-scan.ts";
import {
  bytesOf,
  clockSet,
  encoded,
  type Habit,
  pictures,
  SOUND_PID,
  VIDEO_PID,
  without,
} from "../support/ts-shapes.ts";
import { setUp } from "./live-setup.ts";
import { SentMedia } from "./live-shapes.ts";

const TV = encoded("ts-188.ts", 12_000);

/** How often a run ended, and the streams that led where players could enter. */
function scanned(habit: Habit): { runs: number; leads: number[] } {
  let runs = 0;
  const leads: number[] = [];
  const scan = new LiveScan({
    runEnded: () => void runs++,
    packet: () => {},
    point: ({ program }) => {
      if (leads.at(-1) !== program.main.id) leads.push(program.main.id);
    },
  });
  scan.push(bytesOf(habit(TV)), false);
  return { runs, leads };
}

test("LiveScan.push() ends a run where the clock was set without a mark", () => {
  const table: [ms: number, runs: number][] = [[0, 0], [1500, 0], [3000, 1], [9000, 1], [40_000, 1], [-3000, 1]];
  for (const [byMs, runs] of table) assertEquals(scanned(clockSet(6000, byMs)).runs, runs, `${byMs} ms`);
});

test("LiveScan.push() reports the sound that came before it led", () => {
  let first = Infinity;
  const scan = new LiveScan({
    runEnded: () => {},
    packet: () => {},
    point: ({ packet }) => first = Math.min(first, packet),
  });
  scan.push(bytesOf(without(VIDEO_PID)(TV)), false);
  assertEquals(first < 20, true, `packet ${first}`);
  assertEquals(scanned(without(VIDEO_PID, 3000, 8000)).leads, [VIDEO_PID, SOUND_PID, VIDEO_PID]);
});

test("LiveSession says so where data comes but nothing with which a player could begin", async () => {
  const none = pictures((_, isKey) => !isKey)(encoded("ts-188.ts", 30_000));
  for (const output of ["ts", "hls"] as const) {
    const { start, studio } = await setUp({ media: new SentMedia(none) });
    await studio.run(2000);
    const session = await start({ output });
    const reading = output === "ts"
      ? new Response(session.openStream()).arrayBuffer()
      : session.playlist((n) => `${n}.ts`, new AbortController().signal);
    const failed = assertRejects(() => reading, Error, "key frame");
    await studio.run(22_000);
    await failed;
    assertMatch(session.problem!.message, /key frame/);
    session.stop("test");
  }
});

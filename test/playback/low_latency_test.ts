import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { LiveCuts } from "../../src/playback/live/live-cuts.ts";
import type { LiveFragments } from "../../src/playback/live/live-fragments.ts";
import type { PartedBroadcast } from "../../src/playback/live/live-parts.ts";
import { LowLatency } from "../../src/playback/live/low-latency.ts";
import type { PacketWindow } from "../../src/playback/live/packet-window.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A broadcast of which nothing has come; counts how often somebody begins to follow it. */
function silentBroadcast() {
  const counts = { followed: 0, begun: (): void => {} };
  const broadcast: PartedBroadcast = {
    window: { base: 0, end: 0 } as PacketWindow,
    cuts: { openNumber: null } as LiveCuts,
    fragments: {} as LiveFragments,
    segments: [],
    ended: false,
    ending: new AbortController().signal,
    runEnd: () => null,
    readableEnd: () => 0,
    tracksOf: () => [],
    grown(signal) {
      counts.followed++;
      counts.begun();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    },
  };
  return { broadcast, counts };
}

test("LowLatency opens a feed for a fifth sound only in place of one that nobody waits for", async () => {
  const { broadcast, counts } = silentBroadcast();
  const low = new LowLatency(broadcast, new FakeClock());
  const waits = ["eng", "deu", "fra", "ita"].map((audioWish) => {
    const leaving = new AbortController();
    const wait = low.filled({ audioWish, part: null }, 1000, 30_000, leaving.signal).catch((error) => error);
    return { leave: () => leaving.abort(new MillraceError("aborted", "left")), wait };
  });
  const fifth = () => low.filled({ audioWish: "spa", part: null }, 1000, 30_000, new AbortController().signal);
  for (let tries = 0; tries < 100; tries++) await assertRejects(fifth, MillraceError, "ask again later");
  assertEquals([low.waiting, counts.followed], [4, 4]);

  waits[1]!.leave();
  assertEquals((await waits[1]!.wait).message, "left");
  const begun = new Promise<void>((resolve) => counts.begun = resolve);
  const taken = fifth().catch((error) => error);
  await begun;
  assertEquals([low.waiting, counts.followed], [4, 5]);
  low.close();
  for (const { leave } of waits) leave();
  await Promise.race([taken, ...waits.map(({ wait }) => wait)]);
});

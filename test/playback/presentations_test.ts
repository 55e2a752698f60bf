import { test } from "node:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { INDEX_LIMITS, IndexMemory } from "../../src/playback/index-memory.ts";
import { Presentations } from "../../src/playback/presentations.ts";
import { OWN, type ShareHolder } from "../../src/bytes/shares.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { FakeSwarm } from "./support.ts";

test("Presentations.open() keeps what was opened, but not what all callers gave up", async () => {
  const swarm = new FakeSwarm([{ name: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
  const presentations = new Presentations();
  const file = swarm.metainfo!.files[0]!;
  const request = { swarm, file, preferredAudioLanguage: null, transcode: null, hls: "auto" as const };
  swarm.silentReads = true;
  const [first, second] = [new AbortController(), new AbortController()];
  const waiting = [first, second].map(({ signal }) =>
    assertRejects(() => presentations.open(request, signal), MillraceError)
  );
  first.abort();
  await waiting[0];
  assertEquals([presentations.size, swarm.readers.size > 0], [1, true]);
  second.abort();
  await waiting[1];
  assertEquals(presentations.size, 0);
  // Opening may be in the middle of a step.
  await until("the reader is closed", () => swarm.readers.size === 0);
  swarm.silentReads = false;
  const { signal } = new AbortController();
  const [one, two] = [await presentations.open(request, signal), await presentations.open(request, signal)];
  assert(one.presentation === two.presentation && one.hls === two.hls && one.hls !== null);
  assertEquals((await presentations.open({ ...request, hls: null }, signal)).hls, null);
  assertEquals([presentations.size, swarm.readers.size], [1, 0]);
});

/** A swarm of one film, with what opens it for `holder`. */
function film(presentations: Presentations, holder: ShareHolder) {
  const swarm = new FakeSwarm([{ name: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
  const file = swarm.metainfo!.files[0]!;
  const { signal } = new AbortController();
  return (preferredAudioLanguage: string) =>
    presentations.open({ swarm, file, preferredAudioLanguage, transcode: null, hls: null, holder }, signal);
}

test("Presentations.open() counts memory that is kept or in use, until it is dropped and released", async () => {
  const presentations = new Presentations();
  const open = film(presentations, OWN);
  const first = await open("l0");
  const { indexBytes } = first.presentation;
  assert(indexBytes > 0);
  assertEquals(presentations.heldBytes, indexBytes);
  const others = [];
  for (let i = 1; i <= 8; i++) others.push(await open(`l${i}`));
  assertEquals([presentations.size, presentations.heldBytes], [8, 9 * indexBytes]);
  first.release();
  first.release();
  assertEquals(presentations.heldBytes, 8 * indexBytes);
  for (const each of others) each.release();
  assertEquals(presentations.heldBytes, 8 * indexBytes, "kept for the next session");
});

test("IndexMemory refuses a stranger beyond its share once nothing idle is left, and leaves room for this machine", () => {
  const { other, reserved, total } = INDEX_LIMITS;
  let idle = 2;
  const memory: IndexMemory = new IndexMemory(() => {
    if (idle === 0) return false;
    idle--;
    strangers[0]!.giveBack(10);
    return true;
  });
  const strangers = ["a", "b"].map((name) => memory.accountOf({ kind: "other", name }));
  strangers[0]!.take(other);
  strangers[0]!.take(15);
  assertEquals([idle, memory.heldBytes], [0, other - 5]);
  assertThrows(() => strangers[0]!.take(10), MillraceError, "too many large media files");
  assertThrows(() => strangers[1]!.take(total - reserved - other + 10), MillraceError);
  memory.accountOf(OWN).take(reserved);
  assertEquals(memory.heldBytes, other - 5 + reserved);
});

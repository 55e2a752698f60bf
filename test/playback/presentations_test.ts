import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { Presentations } from "../../src/playback/presentations.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { FakeSwarm } from "./support.ts";

test("Presentations.open() keeps what was opened, and nothing of what all gave up", async () => {
  const swarm = new FakeSwarm([{ name: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
  const presentations = new Presentations();
  const request = { swarm, file: swarm.metainfo!.files[0]!, preferredAudioLanguage: null, transcode: null, hls: true };
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
  assertEquals((await presentations.open({ ...request, hls: false }, signal)).hls, null);
  assertEquals([presentations.size, swarm.readers.size], [1, 0]);
});

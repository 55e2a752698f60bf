import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { Presentations } from "../../src/playback/presentations.ts";
import { clip } from "../support/fixtures.ts";
import { FakeSwarm } from "./support.ts";

test("Presentations.open() keeps what was opened, and nothing of what all gave up", async () => {
  const swarm = new FakeSwarm([{ name: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
  const presentations = new Presentations();
  const request = { swarm, file: swarm.metainfo!.files[0]!, preferredAudioLanguage: null, transcode: null };
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
  assertEquals([presentations.size, swarm.readers.size], [0, 0]);
  swarm.silentReads = false;
  const { signal } = new AbortController();
  assertEquals(await presentations.open(request, signal), await presentations.open(request, signal));
  assertEquals([presentations.size, swarm.readers.size], [1, 0]);
});

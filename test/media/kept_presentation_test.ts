/** What stays in memory of a file whose index was read: presentations are kept long after their swarm was left. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { openMedia } from "../../src/media/open-media.ts";
import type { Presentation } from "../../src/media/model/types.ts";
import { isCollected } from "../support/collected.ts";
import { MemorySource } from "../support/memory-source.ts";
import { fixture } from "./support/files.ts";

/** Each is read in another way. */
const NAMES = [
  ...["mp4-front.mp4", "mp4-mp3.mp4", "mp4-fragmented-sidx.mp4", "mp4-fragmented-bare.mp4", "mkv-cues.mkv"],
  ...[
    "mkv-no-cues.mkv",
    "mkv-mp3.mkv",
    "ts-188.ts",
    "ts-mpeg2.ts",
    "audio-vbr.mp3",
    "audio.flac",
    "audio.opus",
    "audio.wav",
  ],
];
const encoder = { isAvailable: () => Promise.resolve(true), encode: () => Promise.resolve(new Uint8Array(0)) };

/** Opens a file, plans HLS and reads a part, as a session does; returns what is kept, and what should not be. */
async function play(name: string): Promise<{ kept: Presentation; source: WeakRef<object> }> {
  const source = new MemorySource(fixture(name));
  const ending = new AbortController();
  const { signal } = ending;
  const kept = await openMedia(source, {
    fileName: name,
    signal,
    transcode: { mp3: true, ac3: true },
    audioEncoder: encoder,
  });
  const plan = await kept.planHls(source, signal);
  await kept.tsFrom(1000, source, signal);
  try {
    for await (const _ of kept.ts.read(0, 200_000, source, signal)) break;
    for await (const _ of plan.readSegment(0, source, signal)) break;
  } catch {
    // The encoder makes no sound.
  }
  ending.abort();
  return { kept, source: new WeakRef(source) };
}

test("openMedia() keeps nothing of the source, when the index was read and the file was played", async () => {
  const played: [string, Awaited<ReturnType<typeof play>>][] = [];
  for (const name of NAMES) played.push([name, await play(name)]);
  const held: string[] = [];
  for (const [name, { source }] of played) if (!await isCollected(source)) held.push(name);
  assertEquals(held, []);
  assertEquals(played.every(([, { kept }]) => kept.ts.sizeBytes !== undefined), true);
});

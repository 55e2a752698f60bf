import { test } from "node:test";
import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { PlaybackSession } from "../../src/playback/session.ts";
import type { Sidecar } from "../../src/playback/sidecars.ts";
import { SubtitleTexts } from "../../src/playback/subtitles.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { MemorySource } from "../support/memory-source.ts";

type Source = Parameters<SubtitleTexts["textOf"]>[0];
const HASH = "a".repeat(40);
const never = new AbortController().signal;

/** A session whose files `textAt` returns; counts the times that one was read. */
function fakeSession(textAt: (index: number) => Promise<string>, infohashHex = HASH) {
  const state = { reads: 0 };
  const stopping = new AbortController();
  const swarm = {
    openReader: (index: number) => ({
      read: async (offset: number, length: number, { signal }: { signal: AbortSignal }) => {
        state.reads++;
        const bytes = new TextEncoder().encode(await textAt(index));
        return await new MemorySource(bytes).read(offset, Math.min(length, bytes.length), { signal });
      },
      close: () => {},
    }),
  } as unknown as PlaybackSession["swarm"];
  const identity = { infohashHex, fileIndex: 0, output: "hls", hlsFormat: "auto", client: "c", owner: null } as const;
  const session: Source = { identity, swarm, hls: null, signal: stopping.signal };
  return { session, state, stopping };
}

const sidecar = (index: number, sizeBytes = 1000): Sidecar => ({
  file: { index, path: `${index}.srt`, name: `${index}.srt`, sizeBytes, offset: 0, padding: false },
  name: String(index),
  language: null,
  isForced: false,
  isForHearingImpaired: false,
});
const srt = (text: string) => `1\n00:00:01,000 --> 00:00:02,000\n${text}\n`;

test("SubtitleTexts.textOf() converts a file once for requests at once and later ones", async () => {
  const texts = new SubtitleTexts(new FakeClock());
  const { session, state } = fakeSession((index) => Promise.resolve(srt(`file ${index}`)));
  const [one, two] = await Promise.all([1, 2].map(() => texts.textOf(session, sidecar(1), never)));
  assert(new TextDecoder().decode(one).includes("file 1"));
  assertStrictEquals(one, two);
  assertStrictEquals(await texts.textOf(session, sidecar(1), never), one);
  assertEquals(state.reads, 1);
  assert(new TextDecoder().decode(await texts.textOf(session, sidecar(2), never)).includes("file 2"));
});

test("SubtitleTexts.textOf() keeps files of other torrents and another clock of the film apart", async () => {
  const texts = new SubtitleTexts(new FakeClock());
  const here = fakeSession(() => Promise.resolve(srt("here")));
  const there = fakeSession(() => Promise.resolve(srt("there")), "b".repeat(40));
  const late = { ...here.session, hls: { zeroPts90k: 900 } as Source["hls"] };
  const all = [];
  for (const session of [here.session, there.session, late]) {
    all.push(new TextDecoder().decode(await texts.textOf(session, sidecar(1), never)));
  }
  assert(all[0]!.includes("here") && all[1]!.includes("there") && all[2]!.includes("00:00:01.010 --> "), all.join());
});

test("SubtitleTexts.textOf() tries again after a failure, and goes on for others when one caller leaves", async () => {
  const texts = new SubtitleTexts(new FakeClock());
  let answer: Promise<string> = Promise.reject(new MillraceError("io", "the disk is gone"));
  answer.catch(() => {});
  const { session, stopping } = fakeSession(() => answer);
  const error = await assertRejects(() => texts.textOf(session, sidecar(1), never), MillraceError);
  assertEquals(error.code, "io");
  let come = (_text: string) => {};
  answer = new Promise((resolve) => come = resolve);
  const other = fakeSession(() => answer);
  const [gone, stays] = [texts.textOf(session, sidecar(1), never), texts.textOf(other.session, sidecar(1), never)];
  stopping.abort(new MillraceError("closed", "stopped"));
  assertEquals((await assertRejects(() => gone, MillraceError)).code, "closed");
  come(srt("at last"));
  assert(new TextDecoder().decode(await stays).includes("at last"));
  assertEquals(other.state.reads, 0);
});

test("SubtitleTexts.textOf() gives up after a minute", async () => {
  const clock = new FakeClock();
  const { session } = fakeSession(() => new Promise(() => {}));
  const waiting = new SubtitleTexts(clock).textOf(session, sidecar(1), never);
  waiting.catch(() => {});
  await clock.advance(60_001);
  assertEquals((await assertRejects(() => waiting, MillraceError)).code, "timeout");
});

test("SubtitleTexts.textOf() keeps 8 MiB at most, of the files used last", async () => {
  const texts = new SubtitleTexts(new FakeClock());
  const long = Array.from({ length: 1500 }, (_, n) => srt("x".repeat(1400) + n)).join("\n");
  const { session, state } = fakeSession(() => Promise.resolve(long));
  const ask = (index: number) => texts.textOf(session, sidecar(index, long.length), never);
  for (const index of [1, 2, 3]) await ask(index);
  await ask(1);
  await ask(4);
  assertEquals(state.reads, 4);
  await ask(1);
  assertEquals(state.reads, 4);
  await ask(2);
  assertEquals(state.reads, 5);
});

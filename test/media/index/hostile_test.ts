/** Hostile files: each is refused with a reason, or its cost stays in proportion to its size. */
import { test } from "node:test";
import { assert, assertEquals, assertLess, assertLessOrEqual } from "@std/assert";
import { MillraceError } from "../../../src/errors.ts";
import { openMedia } from "../../../src/media/open-media.ts";
import { renderVodPlaylist } from "../../../src/media/hls/playlist.ts";
import type { Presentation } from "../../../src/media/model/types.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { NEVER } from "../support/files.ts";
import {
  crowdedTrack,
  entryWithParameters,
  flacOfHeaders,
  fragmentTail,
  longFragments,
  sharedBytesFile,
  sidxFile,
  tabledFile,
  tinyAac,
} from "../support/hostile.ts";
import { cpuMs } from "../../support/cpu-time.ts";

interface Case {
  readonly what: string;
  readonly make: () => Uint8Array;
  /** Expected error message; absent: the file opens. */
  readonly error?: string;
  /** Expected error of reading the opened file; absent: none. */
  readonly readError?: string;
}

const CASES: readonly Case[] = [
  { what: "fragments of many access units without bytes at the end", make: () => fragmentTail(1024 * 1024) },
  {
    what: "fragments of many access units of a byte at the end",
    make: () => fragmentTail(512 * 1024, 1),
    readError: "a fragment has more than 16384 access units",
  },
  { what: "a few of those", make: () => fragmentTail(10_000) },
  { what: "a duration of 49 days for a kilobyte", make: () => longFragments(0xfffffffe) },
  { what: "an index that names parts of two gigabytes", make: () => sidxFile(2000) },
  { what: "an index of 36 hours of such", make: () => sidxFile(60_000) },
  {
    what: "access units of a byte, 90 s apart",
    make: () => tabledFile({ count: 100_000, delta: 90 * 90_000, keyframes: [1] }),
    error: "days or more, which its 100572 bytes cannot",
  },
  {
    what: "access units of a byte, 1.2 s apart, of which the first alone begins a segment",
    make: () => tabledFile({ count: 100_000, delta: 108_000, keyframes: [1] }),
  },
  {
    what: "millions of access units, 6 s apart",
    make: () => tabledFile({ count: 4_000_000, delta: 6 * 90_000 }),
    error: "days or more, which its 4000552 bytes cannot",
  },
  { what: "millions of access units", make: () => tabledFile({ count: 3_900_000, delta: 3600 }) },
  {
    what: "millions of access units without a random access point",
    make: () => tabledFile({ count: 3_900_000, delta: 3600, keyframes: [1] }),
  },
  {
    what: "millions of access units at one time",
    make: () => tabledFile({ count: 3_900_000, delta: 0 }),
    error: "access units have the same time",
  },
  {
    what: "large parameter sets before each of millions of access units",
    make: () => tabledFile({ count: 3_900_000, delta: 900, entry: entryWithParameters(10_000) }),
    error: "bytes of MPEG TS",
  },
  {
    what: "more access units than any film has",
    make: () => tabledFile({ count: 4_000_001, delta: 900 }),
    error: "more than 4000000 access units",
  },
  { what: "the same bytes again and again", make: () => sharedBytesFile(1000), error: "same bytes many times over" },
  { what: "times beyond all numbers", make: () => tabledFile({ count: 100, delta: 0x7fffffff }), error: "days" },
  { what: "a million boxes in a track", make: () => crowdedTrack(1_000_000), error: "no video or audio" },
  { what: "AAC of tiny frames", make: () => tinyAac(500_000) },
  { what: "FLAC of nothing but headers", make: () => flacOfHeaders(8 * 1024 * 1024) },
];

/** Longest time without a turn for timers that a test allows, ms: the machine may be busy with others. */
const MAX_GAP_MS = 500;
/** Most that is made of such a file: longer playlists, or more TS. */
const MAX_PLAYLIST_CHARACTERS = 4_000_000;
const MAX_TS_BYTES = 4_000_000_000;

/** Reads the beginning; returns the error that ended it, or null. */
async function readSome({ ts }: Presentation, source: MemorySource): Promise<MillraceError | null> {
  let read = 0;
  try {
    for await (const chunk of ts.read(0, null, source, NEVER)) if ((read += chunk.length) > 1_000_000) break;
    return null;
  } catch (error) {
    if (error instanceof MillraceError && error.code === "bad_media") return error;
    throw error;
  }
}

/** Others take a share of the caches, too: only a gap that is too long each time is the engine's. */
const ATTEMPTS = 3;

for (const item of CASES) {
  test(`openMedia() stays in proportion with ${item.what}`, async () => {
    const bytes = item.make();
    let gapMs = Infinity;
    for (let i = 0; i < ATTEMPTS && gapMs >= MAX_GAP_MS; i++) gapMs = await gapOf(item, bytes);
    assertLess(gapMs, MAX_GAP_MS, "longest work without a turn, ms");
  });
}

/** Opens `bytes` and reads their beginning; returns the longest time without a turn for timers, ms. */
async function gapOf({ what, error, readError }: Case, bytes: Uint8Array): Promise<number> {
  const source = new MemorySource(bytes);
  let gapMs = 0;
  let lastMs = cpuMs();
  const timer = setInterval(() => {
    gapMs = Math.max(gapMs, cpuMs() - lastMs);
    lastMs = cpuMs();
  }, 10);
  try {
    const opened = await openMedia(source, { fileName: "x", signal: NEVER }).catch((cause) => cause);
    gapMs = Math.max(gapMs, cpuMs() - lastMs);
    if (opened instanceof Error) {
      assert(opened instanceof MillraceError, String(opened));
      // FLAC is refused as a codec that cannot be carried, after its index was read.
      const isFlac = what.startsWith("FLAC");
      assertEquals(opened.code, isFlac ? "unsupported_media" : "bad_media");
      assert(isFlac || (error !== undefined && opened.message.includes(error)), opened.message);
      return gapMs;
    }
    assertEquals(error, undefined);
    const playlist = renderVodPlaylist(
      await opened.planHls(source, NEVER),
      (n) => `http://127.0.0.1:6878/engine/c/${"0".repeat(40)}/${n}.ts`,
    );
    assertLessOrEqual(playlist.length, MAX_PLAYLIST_CHARACTERS);
    assertLessOrEqual(opened.ts.sizeBytes ?? 0, MAX_TS_BYTES);
    lastMs = cpuMs();
    const fault = await readSome(opened, source);
    assertEquals(fault?.message ?? null, readError ?? null);
    return gapMs;
  } finally {
    clearInterval(timer);
  }
}

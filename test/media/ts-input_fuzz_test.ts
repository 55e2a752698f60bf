import { assert, assertLess } from "@std/assert";
import { test } from "node:test";
import { MemorySource } from "../support/memory-source.ts";
import { MillraceError } from "../../src/errors.ts";
import { CountingSource, fixture, mutate, seeded } from "./mkv-support.ts";
import type { AudioEncoder } from "../../src/media/model/audio-target.ts";
import { gather, never, openTs, segments } from "./ts-input-support.ts";

test("openTransportStream() and readSegment() survive damaged files with bounded reads", async () => {
  const random = seeded(11);
  for (const name of ["ts-188.ts", "ts-192.m2ts", "ts-204.ts", "ts-two-programs.ts"]) {
    const original = fixture(name);
    for (let round = 0; round < 80; round++) {
      const source = new CountingSource(new MemorySource(mutate(original, random)));
      try {
        const presentation = await openTs(source, { segmentTargetMs: 2000 });
        assertLess(source.bytesRead, 6 * original.length + 100_000);
        for (const segment of await segments(presentation, source)) {
          assert(segment.length % 188 === 0 && segment[0] === 0x47);
          assertLess(segment.length, 2 * original.length);
        }
      } catch (error) {
        assert(
          error instanceof MillraceError,
          `${name} round ${round}: ${error instanceof Error ? error.stack : error}`,
        );
      }
    }
  }
});

/** Answers as many ADTS frames as may come. */
const ENCODER: AudioEncoder = {
  isAvailable: () => Promise.resolve(true),
  encode({ maxOutputBytes }) {
    const count = Math.min(2000, Math.floor(maxOutputBytes / 3100));
    const out = new Uint8Array(count * 100);
    for (let i = 0; i < count; i++) out.set([0xff, 0xf1, 0x4c, 0x80, 100 >> 3, (100 & 7) << 5 | 0x1f, 0xfc], i * 100);
    return Promise.resolve(out);
  },
};

test("AAC and maps are put into damaged files without a hang, and as many packets come out", async () => {
  const random = seeded(12);
  for (const name of ["ts-192.m2ts", "ts-mpeg2.ts", "ts-hevc.ts", "ts-audio-only.ts"]) {
    const original = fixture(name);
    for (let round = 0; round < 40; round++) {
      const source = new CountingSource(new MemorySource(mutate(original, random)));
      try {
        const { ts } = await openTs(source, {
          preferredAudioLanguage: "de,en",
          transcode: { mp3: true, ac3: true },
          audioEncoder: ENCODER,
        });
        const bytes = await gather(ts.read(0, null, source, never));
        assert(bytes.length === ts.sizeBytes);
        assertLess(source.bytesRead, 40 * original.length + 200_000);
      } catch (error) {
        assert(
          error instanceof MillraceError,
          `${name} round ${round}: ${error instanceof Error ? error.stack : error}`,
        );
      }
    }
  }
});

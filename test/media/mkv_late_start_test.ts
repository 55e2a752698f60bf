/** Parts of recordings in Matroska, which begin late on their clock. */
import { assert, assertEquals, assertLess } from "@std/assert";
import { test } from "node:test";
import { cluster, cues, matroska, simpleBlock } from "./mkv-support.ts";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { collect, NEVER, openBytes } from "./support/files.ts";

const START_MS = 3_600_000;
const PICTURE = new Uint8Array(400).fill(7);

/** Pictures and sound in clusters of 2 s: by default 60 s, from an hour on. */
function part(
  options: {
    readonly durationMs?: number;
    readonly hasCues: boolean;
    readonly startMs?: number;
    readonly count?: number;
  },
): Uint8Array {
  const startMs = options.startMs ?? START_MS;
  const clusters = Array.from({ length: options.count ?? 30 }, (_, i) =>
    cluster(startMs + i * 2000, [
      ...Array.from({ length: 50 }, (_, n) => simpleBlock(1, n * 40, n === 0 ? 0x80 : 0, PICTURE)),
      ...Array.from({ length: 62 }, (_, n) => simpleBlock(2, n * 32, 0x80, new Uint8Array(200))),
    ]));
  let at = 0;
  const points = clusters.map((bytes, i): [number, number, null] => {
    const place = at;
    at += bytes.length;
    return [startMs + i * 2000, place, null];
  });
  return matroska(clusters, {
    ...(options.durationMs === undefined ? {} : { durationMs: options.durationMs }),
    ...(options.hasCues ? { after: (base: number) => [cues(base, points)] } : {}),
  });
}

for (
  const { what, ...options } of [
    { what: "a Duration from 0", durationMs: START_MS + 60_000, hasCues: true },
    { what: "a Duration from its first picture", durationMs: 60_000, hasCues: true },
    { what: "no Duration", hasCues: true },
    { what: "no Cues", durationMs: START_MS + 60_000, hasCues: false },
    { what: "no Cues and a Duration from its first picture", durationMs: 60_000, hasCues: false },
    { what: "neither", hasCues: false },
  ]
) {
  test(`openMatroska() plans as much as there is when a file begins an hour late and has ${what}`, async () => {
    const { hls, durationMs, warnings } = await openBytes(part(options));
    assertEquals(warnings.length, options.hasCues ? 0 : 1, warnings.join());
    const lengthMs = hls.segments.reduce((sum, segment) => sum + segment.durationMs, 0);
    // Without a Duration the last group is as long as its bytes may take.
    assert(lengthMs > 58_000 && lengthMs < 76_000, `${lengthMs} ms`);
    assert(Math.abs(durationMs! - lengthMs) < 1000, `${durationMs} and ${lengthMs} ms`);
    assertLess(hls.segments.length, 20);
  });
}

test("openMatroska() counts from 0 when a file begins a few seconds late", async () => {
  const { durationMs } = await openBytes(part({ durationMs: 68_000, hasCues: true, startMs: 8000 }));
  assertEquals(durationMs, 68_000);
});

for (const count of [1, 2, 30]) {
  test(`openMatroska() plays ${2 * count} s that begin a few seconds late, with a Duration from the first picture`, async () => {
    const bytes = part({ durationMs: 2000 * count, hasCues: true, startMs: 8000, count });
    const { hls, ts, faults } = await openBytes(bytes);
    const lengthMs = hls.segments.reduce((sum, segment) => sum + segment.durationMs, 0);
    // A Duration that is no less than the last cue counts from 0.
    assert(Math.abs(lengthMs - 2000 * count) < (count === 30 ? 9000 : 1000), `${lengthMs} ms`);
    const { streams } = checkTs(await collect(ts.read(0, ts.sizeBytes, new MemorySource(bytes), NEVER)));
    assertEquals([streams[0]!.units.length, faults.counts.dropped], [50 * count, 0]);
  });
}

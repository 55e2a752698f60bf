/** Cues that do not point to what they name: nothing is lost, or it is told. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { cluster, cues, matroska, simpleBlock } from "./mkv-support.ts";
import { collect, NEVER, openBytes } from "./support/files.ts";

const CLUSTERS = 10;
/** Two seconds of MPEG-2: a random access point of 30 KB, then 49 pictures of 2 KB. */
const PICTURES = 50;
/** Bytes of a cluster before its first block: the Timestamp; and of an element's header. */
const TIMESTAMP_BYTES = 9;
const HEADER_BYTES = 12;

function picture(isKey: boolean): Uint8Array {
  const bytes = new Uint8Array(isKey ? 30_000 : 2000).fill(7);
  bytes.set([0, 0, 1, isKey ? 0xb3 : 0]);
  return bytes;
}

/** A film whose Cues name a place for each cluster: `move` changes that of cluster `n`. */
function film(move: (n: number) => readonly [bytes: number, relative: number | null]): Uint8Array {
  const clusters = Array.from({ length: CLUSTERS }, (_, n) =>
    cluster(n * 2000, [
      ...Array.from({ length: PICTURES }, (_, i) => simpleBlock(1, i * 40, i === 0 ? 0x80 : 0, picture(i === 0))),
    ]));
  const at = (n: number) => clusters.slice(0, n).reduce((sum, { length }) => sum + length, 0);
  return matroska(clusters, {
    durationMs: CLUSTERS * 2000,
    after: (base) => [cues(base, clusters.map((_, n) => [n * 2000, at(n) + move(n)[0], move(n)[1]]))],
  });
}

async function played(file: Uint8Array) {
  const presentation = await openBytes(file);
  const source = new MemorySource(file);
  const { streams, problems } = checkTs(await collect(presentation.ts.read(0, null, source, NEVER)));
  return { ...presentation, units: streams[0]!.units, problems };
}

test("openMatroska() ignores Cues when they point into the clusters, and loses no picture", async () => {
  for (const bytes of [40, 50_000, -40]) {
    const { units, warnings, faults, ts } = await played(film((n) => [n === 0 ? 0 : bytes, null]));
    assertEquals(units.length, CLUSTERS * PICTURES, `${bytes}`);
    assertEquals(faults.warning, null);
    assertEquals(ts.sizeBytes, null);
    assertEquals(warnings.filter((text) => text.includes("does not point to its clusters")).length, 1);
  }
});

test("readRun() begins with the random access point into which a cue points", async () => {
  const exact = await played(film(() => [0, TIMESTAMP_BYTES]));
  for (const relative of [TIMESTAMP_BYTES + 1, TIMESTAMP_BYTES + HEADER_BYTES, TIMESTAMP_BYTES - 2]) {
    const file = film(() => [0, relative]);
    const { units, warnings, faults, hls } = await played(file);
    assertEquals(units, exact.units, `${relative}`);
    assertEquals([faults.warning, warnings], [null, []]);
    for (const { index } of hls.segments) {
      const segment = checkTs(await collect(hls.readSegment(index, new MemorySource(file), NEVER)));
      assertEquals([segment.problems, segment.streams[0]!.units[0]!.data.length], [[], 30_000], `segment ${index}`);
    }
  }
});

test("FaultLedger tells what one cue into a cluster loses", async () => {
  const { units, faults } = await played(film((n) => [n === 6 ? 2000 : 0, null]));
  assertEquals(units.length + faults.counts.dropped, CLUSTERS * PICTURES);
  assertEquals(faults.warning?.includes("were left out"), true, JSON.stringify(faults.counts));
});

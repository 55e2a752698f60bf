import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { fetchEnd, HeadFetch } from "../../src/playback/fetch-ahead.ts";
import type { OutputKind } from "../../src/playback/session-base.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeSwarm } from "./support.ts";

const MIB = 1024 * 1024;
const KIB = 1024;

function setUp(name: string, output: OutputKind) {
  const swarm = new FakeSwarm([{ name, bytes: new Uint8Array(2 * MIB) }]);
  const reads = () => swarm.reads.map(({ offset, length }) => [offset, length]);
  return { swarm, reads, played: { swarm, file: swarm.metainfo!.files[0]!, output } };
}

test("HeadFetch asks for the beginning in one go until it is ended, for HLS for more and for the last times of a TS", () => {
  for (
    const [name, output, reads, ahead] of [
      ["film.mkv", "ts", [[0, 1]], MIB],
      ["film.ts", "ts", [[0, 1]], MIB],
      ["film.mkv", "hls", [[0, 1]], 4 * MIB],
      ["film.ts", "hls", [[0, 1], [2 * MIB - 144 * KIB, 144 * KIB]], 4 * MIB],
    ] as const
  ) {
    const { swarm, played, reads: made } = setUp(name, output);
    const head = new HeadFetch(played, MIB, new FakeClock());
    assertEquals(made(), reads.map((read) => [...read]), `${name} as ${output}`);
    assertEquals(swarm.readers.size, reads.length);
    assertEquals(swarm.aheadBytes[0], ahead - 1);
    head.end();
    assertEquals(swarm.readers.size, 0);
  }
});

test("HeadFetch asks for more of the beginning when the start turns out slow, unless it has ended", () => {
  for (const isSlow of [true, false]) {
    const { swarm, played } = setUp("film.ts", "ts");
    const clock = new FakeClock();
    const head = new HeadFetch(played, MIB, clock);
    clock.advance(599);
    if (!isSlow) head.endSoon();
    clock.advance(1);
    assertEquals(swarm.aheadBytes, isSlow ? [MIB - 1, 4 * MIB - 1] : [MIB - 1]);
    head.end();
    assertEquals(swarm.readers.size, 0);
  }
});

test("HeadFetch.endSoon() ends at once, for HLS when no player asks for the first segment in time", () => {
  const clock = new FakeClock();
  const ts = setUp("film.mkv", "ts");
  new HeadFetch(ts.played, MIB, clock).endSoon();
  assertEquals(ts.swarm.readers.size, 0);
  const hls = setUp("film.mkv", "hls");
  new HeadFetch(hls.played, MIB, clock).endSoon();
  clock.advance(4999);
  assertEquals(hls.swarm.readers.size, 1);
  clock.advance(1);
  assertEquals(hls.swarm.readers.size, 0);
});

test("HeadFetch leaves it to the players when no reader is free", () => {
  const { swarm, played } = setUp("film.ts", "ts");
  swarm.maxReaders = 0;
  new HeadFetch(played, MIB, new FakeClock()).end();
  assertEquals(swarm.reads, []);
});

test("fetchEnd() reads the last 256 KiB of a transport stream, and of what one of known length is made from", async () => {
  const { signal } = new AbortController();
  for (
    const [name, output, isSized, isRead] of [
      ["film.ts", "file", false, true],
      ["film.mkv", "file", true, false],
      ["film.mkv", "ts", true, true],
      ["film.mkv", "ts", false, false],
      ["film.ts", "hls", true, false],
    ] as const
  ) {
    const { swarm, played, reads } = setUp(name, output);
    await fetchEnd(played, isSized, 300, signal);
    assertEquals(reads(), isRead ? [[2 * MIB - 256 * KIB, 256 * KIB]] : [], `${name} as ${output}`);
    assertEquals(swarm.readers.size, 0);
  }
});

test("fetchEnd() lets the first two seconds go first where the first bytes came late and pieces are large", async () => {
  for (const [firstMs, pieceLengthBytes, yieldMs] of [[600, MIB, 0], [601, MIB, 2000], [601, MIB / 2, 0]] as const) {
    const { swarm, played } = setUp("film.ts", "ts");
    swarm.metainfo = { ...swarm.metainfo!, pieceLengthBytes };
    await fetchEnd(played, true, firstMs, new AbortController().signal);
    assertEquals(swarm.yieldsMs, [yieldMs]);
  }
});

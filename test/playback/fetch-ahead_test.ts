import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { fetchEnd, fetchHead } from "../../src/playback/fetch-ahead.ts";
import type { OutputKind } from "../../src/playback/session-base.ts";
import { FakeSwarm } from "./support.ts";

const MIB = 1024 * 1024;
const KIB = 1024;

function setUp(name: string, output: OutputKind) {
  const swarm = new FakeSwarm([{ name, bytes: new Uint8Array(2 * MIB) }]);
  const reads = () => swarm.reads.map(({ offset, length }) => [offset, length]);
  return { swarm, reads, played: { swarm, file: swarm.metainfo!.files[0]!, output } };
}

test("fetchHead() asks for the beginning in one go until it is ended, and for the last times of a playlist's TS", () => {
  for (
    const [name, output, reads] of [
      ["film.mkv", "ts", [[0, 1]]],
      ["film.ts", "ts", [[0, 1]]],
      ["film.ts", "hls", [[0, 1], [2 * MIB - 144 * KIB, 144 * KIB]]],
    ] as const
  ) {
    const { swarm, played, reads: made } = setUp(name, output);
    const end = fetchHead(played, MIB);
    assertEquals(made(), reads.map((read) => [...read]), `${name} as ${output}`);
    assertEquals(swarm.readers.size, reads.length);
    assertEquals(swarm.aheadBytes[0], MIB - 1);
    end();
    assertEquals(swarm.readers.size, 0);
  }
});

test("fetchHead() leaves it to the players when no reader is free", () => {
  const { swarm, played } = setUp("film.ts", "ts");
  swarm.maxReaders = 0;
  fetchHead(played, MIB)();
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
    await fetchEnd(played, isSized, signal);
    assertEquals(reads(), isRead ? [[2 * MIB - 256 * KIB, 256 * KIB]] : [], `${name} as ${output}`);
    assertEquals(swarm.readers.size, 0);
  }
});

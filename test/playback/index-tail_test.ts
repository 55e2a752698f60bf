import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { fetchIndexTail, indexComesFirst, indexTailBytes } from "../../src/playback/index-tail.ts";
import { FakeSwarm } from "./support.ts";

const box = (type: string, size: number, bytes = size) => {
  const out = new Uint8Array(bytes);
  new DataView(out.buffer).setUint32(0, size);
  for (let i = 0; i < 4; i++) out[4 + i] = type.charCodeAt(i);
  return [...out];
};

test("indexTailBytes() is a thousandth of an MP4 or Ogg file, a tenth of that of Matroska, within bounds, and nothing of other files", () => {
  assertEquals(indexTailBytes({ name: "a.mp4", sizeBytes: 300_000_000 }), 300_000);
  assertEquals(indexTailBytes({ name: "a.MOV", sizeBytes: 1_000_000 }), 65_536);
  assertEquals(indexTailBytes({ name: "a.m4v", sizeBytes: 1000 }), 1000);
  assertEquals(indexTailBytes({ name: "a.mp4", sizeBytes: 60_000_000_000 }), 4 * 1024 * 1024);
  assertEquals(indexTailBytes({ name: "a.m4b", sizeBytes: 300_000_000 }), 300_000);
  assertEquals(indexTailBytes({ name: "a.opus", sizeBytes: 3_000_000 }), 65_536);
  assertEquals(indexTailBytes({ name: "a.mkv", sizeBytes: 300_000_000 }), 30_000);
  assertEquals(indexTailBytes({ name: "a.webm", sizeBytes: 3_000_000 }), 16_384);
  assertEquals(indexTailBytes({ name: "a.avi", sizeBytes: 300_000_000 }), 0);
});

test("fetchIndexTail() reads the end behind whoever waits for the beginning", () => {
  const swarm = new FakeSwarm([{ name: "a.mp4", bytes: new Uint8Array(100_000) }]);
  const over = fetchIndexTail(swarm, swarm.metainfo!.files[0]!, new AbortController().signal);
  assertEquals(swarm.reads, [{ fileIndex: 0, offset: 100_000 - 65_536, length: 65_536 }]);
  assertEquals(swarm.yieldsMs.every((ms) => ms > 0 && ms < 1), true);
  over();
  assertEquals(swarm.readers.size, 0);
});

test("indexComesFirst() distinguishes moov before mdat from mdat before moov", () => {
  assertEquals(indexComesFirst(Uint8Array.from([...box("ftyp", 24), ...box("moov", 5000, 40)])), true);
  assertEquals(indexComesFirst(Uint8Array.from([...box("ftyp", 24), ...box("free", 8), ...box("moov", 9, 9)])), true);
  assertEquals(indexComesFirst(Uint8Array.from([...box("ftyp", 24), ...box("mdat", 5000, 40)])), false);
  assertEquals(indexComesFirst(Uint8Array.from([...box("ftyp", 24), ...box("skip", 0, 8)])), false);
  assertEquals(indexComesFirst(Uint8Array.from(box("free", 5000, 40))), false);
  assertEquals(indexComesFirst(new Uint8Array(7)), false);
});

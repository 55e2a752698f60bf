import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { streamShape } from "../../src/live/broadcast/stream-shape.ts";

test("streamShape() cuts pieces of about 0.2 s, of two to four blocks, and slow streams into fewer substreams", () => {
  const table: [bytesPerS: number, blocks: number, substreams: number][] = [
    [1, 2, 4],
    [62_500, 2, 4],
    [125_000, 2, 4],
    [159_999, 2, 4],
    [160_000, 2, 8],
    [235_000, 3, 8],
    [286_000, 3, 8],
    [287_000, 4, 8],
    [12_500_000, 4, 8],
  ];
  for (const [bytesPerS, blocks, substreams] of table) {
    assertEquals(streamShape(bytesPerS), { pieceLengthBytes: 16_384 * blocks, substreams }, String(bytesPerS));
  }
});

/** The picture of the pieces that people look at. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { Bitfield } from "../../src/bytes/bitfield.ts";
import { MAX_CELLS, pieceCells } from "../../src/swarm/data/picture.ts";

const file = (offset: number, sizeBytes: number) => ({
  index: 0,
  path: "",
  name: "",
  offset,
  sizeBytes,
  padding: false,
});

function have(size: number, ...pieces: readonly number[]): Bitfield {
  const bits = new Bitfield(size);
  for (const piece of pieces) bits.set(piece);
  return bits;
}

test("pieceCells() shows each piece of a short file, those that it shares with its neighbours included", () => {
  const metainfo = { pieceLengthBytes: 100, files: [file(0, 150), file(150, 300), file(450, 50)] };
  const facts = { have: have(5, 0, 2, 4), underWay: [0, 1, 3], readers: [160, 340, 20] };
  assertEquals(pieceCells(metainfo, 1, facts), {
    pieceCount: 4,
    here: [0, 9, 0, 9],
    underWay: [0, 2],
    readers: [0, 2],
  });
});

test("pieceCells() puts several pieces into a cell of a long file, and calls a cell full only when all are here", () => {
  const count = 10 * MAX_CELLS + 7;
  const bits = new Bitfield(count);
  bits.setAll();
  const metainfo = { pieceLengthBytes: 16, files: [file(0, 16 * count)] };
  const all = pieceCells(metainfo, 0, { have: bits, underWay: [], readers: [] })!;
  assertEquals([all.here.length, new Set(all.here)], [MAX_CELLS, new Set([9])]);
  bits.set(5, false);
  const some = pieceCells(metainfo, 0, { have: bits, underWay: [5, 6, count - 1], readers: [16 * (count - 1)] })!;
  assert(some.here[0]! < 9 && some.here[0]! >= 7, `${some.here[0]}`);
  assertEquals(some.here.slice(1), all.here.slice(1));
  assertEquals([some.underWay, some.readers], [[0, MAX_CELLS - 1], [MAX_CELLS - 1]]);
});

test("pieceCells() has no picture of a file that is not there or empty", () => {
  const metainfo = { pieceLengthBytes: 100, files: [file(0, 0)] };
  const facts = { have: have(1), underWay: [], readers: [] };
  assertEquals([pieceCells(metainfo, 0, facts), pieceCells(metainfo, 1, facts)], [null, null]);
});

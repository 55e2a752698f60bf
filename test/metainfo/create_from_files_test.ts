import { test } from "node:test";
import { createHash } from "node:crypto";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { createFromFiles, type TorrentFormat } from "../../src/metainfo/create-from-files.ts";
import { secondName } from "../../src/metainfo/hash-trees.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { encodeFileTree, inTreeOrder, paddedFiles } from "../../src/metainfo/tree-order.ts";
import { noise } from "../support/random.ts";
import { sha256 } from "../support/v2-torrent.ts";

const PACK = { "b.mkv": 20_000, "a-2": 5, "a/2": 16_384, "a/empty": 0, "ｚ": 9, "🎬": 7 };

function sources(sizes: Readonly<Record<string, number>>) {
  return Object.entries(sizes).map(([path, sizeBytes], index) => {
    const bytes = noise(sizeBytes, index + 1);
    const read = (at: number, length: number) => Promise.resolve(bytes.subarray(at, at + length));
    return { path, sizeBytes, bytes, read };
  });
}

async function make(format: TorrentFormat, sizes: Readonly<Record<string, number>>, name = "pack", isFolder = true) {
  const files = sources(sizes);
  const { bytes, metainfo } = await createFromFiles({ format, name, isFolder, files }, sha256);
  assertEquals(await parseTransportFile(bytes), metainfo);
  return { metainfo, files };
}

const ORDER = ["a/2", "a/empty", "a-2", "b.mkv", "ｚ", "🎬"];

test("inTreeOrder() sorts names by their bytes, directory by directory", () => {
  assertEquals(inTreeOrder(sources(PACK)).map(({ path }) => path), ORDER);
});

test("encodeFileTree() nests directories in the order of the tree", () => {
  const tree = encodeFileTree(inTreeOrder(sources({ "a/b/c": 1, "a/b/d": 2, "a/e": 3, f: 4 })), ({ sizeBytes }) => ({
    length: sizeBytes,
  }));
  const file = (name: string, size: number) => `1:${name}d0:d6:lengthi${size}eee`;
  const expected = `d1:ad1:bd${file("c", 1)}${file("d", 2)}e${file("e", 3)}e${file("f", 4)}e`;
  assertEquals(new TextDecoder().decode(tree), expected);
});

test("paddedFiles() has each file begin with a piece, and nothing follow the last byte", () => {
  const files = sources({ a: 16_384, b: 0, c: 100, d: 16_385, e: 0 });
  assertEquals(paddedFiles(files, 16_384).map(({ path, sizeBytes }) => [path, sizeBytes]), [
    ["a", 16_384],
    ["b", 0],
    ["c", 100],
    [".pad/16284", 16_284],
    ["d", 16_385],
    ["e", 0],
  ]);
});

test("createFromFiles() makes a hybrid whose padded pieces of version 1 have the hashes of what lies there", async () => {
  const { metainfo, files } = await make("hybrid", PACK);
  const real = metainfo.files.filter(({ padding }) => !padding);
  assertEquals(real.map(({ path }) => path), ORDER);
  assertEquals(real.every(({ offset, sizeBytes }) => sizeBytes === 0 || offset % 16_384 === 0), true);
  const data = new Uint8Array(metainfo.totalBytes);
  for (const { path, offset } of real) data.set(files.find((file) => file.path === path)!.bytes, offset);
  for (let piece = 0; piece < metainfo.pieceCount; piece++) {
    const bytes = data.subarray(piece * 16_384, (piece + 1) * 16_384);
    const hash = new Uint8Array(createHash("sha1").update(bytes).digest());
    assertEquals(metainfo.pieceHashes.slice(piece * 20, piece * 20 + 20), hash);
  }
  assertEquals(metainfo.trees!.length, 5);
  assertEquals(secondName(metainfo)?.length, 40);
});

test("createFromFiles() makes version 1 without padding, and version 2 with the same trees as the hybrid", async () => {
  const { metainfo: v1 } = await make("v1", PACK);
  assertEquals(v1.files.map(({ path, padding }) => [path, padding]), ORDER.map((path) => [path, false]));
  assertEquals([v1.totalBytes, v1.infohashV2], [36_405, undefined]);
  const { metainfo: v2 } = await make("v2", PACK);
  const { metainfo: hybrid } = await make("hybrid", PACK);
  assertEquals(v2.files.filter(({ padding }) => !padding).map(({ path }) => path), ORDER);
  assertEquals(v2.trees!.map(({ root }) => root), hybrid.trees!.map(({ root }) => root));
  assertEquals([secondName(v2), v2.shortPieces !== undefined], [null, true]);
});

for (const format of ["v1", "hybrid", "v2"] as const) {
  test(`createFromFiles() makes a ${format} torrent of one file, which needs no folder`, async () => {
    const { metainfo } = await make(format, { "film.mp4": 100_000 }, "film.mp4", false);
    assertEquals([metainfo.files[0]!.path, metainfo.multiFile, metainfo.totalBytes], ["film.mp4", false, 100_000]);
    const folder = await make(format, { "film.mp4": 100_000 });
    assertEquals([folder.metainfo.name, folder.metainfo.multiFile], ["pack", true]);
  });

  test(`createFromFiles() refuses empty files and a file that became shorter, as ${format}`, async () => {
    const cases = [
      [sources({ a: 0, b: 0 }), "bad_transport_file"],
      [[{ path: "a", sizeBytes: 40_000, read: () => Promise.resolve(new Uint8Array(9)) }], "invalid_argument"],
    ] as const;
    for (const [files, code] of cases) {
      const making = createFromFiles({ format, name: "pack", isFolder: true, files }, sha256);
      assertEquals((await assertRejects(() => making, MillraceError)).code, code);
    }
  });
}

test("createFromFiles() refuses a folder that version 2 would take for its only file", async () => {
  await assertRejects(() => make("v2", { film: 5 }, "film"), MillraceError, "share the file");
  assertEquals((await make("v1", { film: 5 }, "film")).metainfo.multiFile, true);
});

import { test } from "node:test";
import { createHash } from "node:crypto";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { MillraceError } from "../../src/errors.ts";
import { lacksLayers } from "../../src/metainfo/hash-trees.ts";
import { encodeMetainfo, parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { magnetLink } from "../../src/metainfo/live.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { makeV2Torrent } from "../support/v2-torrent.ts";
import { seeded } from "./support.ts";

const ROOT = new Uint8Array(32).fill(9);
const file = (length: number) => ({ "": { length, "pieces root": length > 0 ? ROOT : undefined } });
/** A transport file of version 2 with these entries in its tree, and `changes`. */
const v2With = (tree: unknown, changes: Record<string, unknown> = {}, outer: Record<string, unknown> = {}) =>
  encodeBencode({
    info: { "file tree": tree, "meta version": 2, name: "pack", "piece length": 16384, ...changes },
    ...outer,
  });
const sha = (name: string, bytes: Uint8Array) => createHash(name).update(bytes).digest("hex");

test("parseTransportFile() has each file of version 2 begin with a piece of its own", async () => {
  const { metainfo } = await makeV2Torrent({ "a/one.mkv": 40_000, b: 0, "c.mp4": 16_384, "d.srt": 7 }, 16_384);
  assertEquals(metainfo.files.map((f) => [f.index, f.path, f.offset, f.sizeBytes, f.padding]), [
    [0, "a/one.mkv", 0, 40_000, false],
    [1, ".pad/9152", 40_000, 9152, true],
    [2, "b", 49_152, 0, false],
    [3, "c.mp4", 49_152, 16_384, false],
    [4, "d.srt", 65_536, 7, false],
    [5, ".pad/16377", 65_543, 16_377, true],
  ]);
  assertEquals([metainfo.pieceCount, metainfo.totalBytes, metainfo.multiFile], [5, 65_543, true]);
  assertEquals([...metainfo.shortPieces!], [[2, 40_000 - 32_768]]);
  assertEquals(metainfo.trees!.map((t) => [t.firstPiece, t.pieceCount, t.layer?.length]), [
    [0, 3, 96],
    [3, 1, undefined],
    [4, 1, undefined],
  ]);
  assertEquals(metainfo.infohashHex, sha("sha256", metainfo.infoBytes).slice(0, 40));
  assertEquals(metainfo.infohashV2!.length, 32);
});

test("parseTransportFile() takes a file of version 2 that is named like the torrent as the only one", async () => {
  const { metainfo } = await makeV2Torrent({ "film.mp4": 100_000 });
  assertEquals([metainfo.name, metainfo.files[0]!.path, metainfo.multiFile], ["film.mp4", "film.mp4", false]);
  assertEquals([metainfo.pieceCount, metainfo.totalBytes, metainfo.shortPieces!.size], [2, 100_000, 0]);
});

test("parseTransportFile() keeps the order of a file tree, where an object would put numbers first", async () => {
  const { metainfo } = await makeV2Torrent({ "1.mkv": 5, "10": 6, "9": 7, "a-2": 8, "a/2": 9 });
  const paths = metainfo.files.filter((f) => !f.padding).map((f) => f.path);
  assertEquals(paths, ["1.mkv", "10", "9", "a/2", "a-2"]);
});

test("encodeMetainfo() keeps the piece layers", async () => {
  const { metainfo, transportFile } = await makeV2Torrent({ a: 200_000, b: 300_000, c: 1 }, 16_384, {
    trackers: [["http://t.test/a"]],
  });
  const again = await parseTransportFile(encodeMetainfo(metainfo));
  assertEquals(again, metainfo);
  assertEquals(await parseTransportFile(transportFile), metainfo);
});

test("parseTransportFile() reads a hybrid as version 1 and remembers its other name", async () => {
  const pieces = new Uint8Array(40).fill(3);
  const { metainfo } = await makeV2Torrent({ "film.mp4": 100_000 }, 65_536, { pieceHashes: pieces });
  assertEquals(metainfo.infohashHex, sha("sha1", metainfo.infoBytes));
  assertEquals([metainfo.pieceHashes, metainfo.shortPieces], [pieces, undefined]);
  assertEquals(Buffer.from(metainfo.infohashV2!).toString("hex"), sha("sha256", metainfo.infoBytes));
  assertEquals(metainfo.trees!.map((t) => [t.firstPiece, t.pieceCount, t.layer!.length]), [[0, 2, 64]]);
  assertEquals(await parseTransportFile(encodeMetainfo(metainfo)), metainfo);
});

test("parseTransportFile() takes a hybrid whose versions differ as version 1 alone", async () => {
  const v1 = { length: 40_000, pieces: new Uint8Array(60) };
  for (const tree of [{ pack: file(40_001) }, { other: file(40_000) }, { pack: { "": {} } }, "none"]) {
    const metainfo = await parseTransportFile(v2With(tree, v1));
    assertEquals([metainfo.pieceCount, metainfo.infohashV2, metainfo.trees], [3, undefined, undefined]);
  }
});

test("parseTransportFile() refuses in words what version 2 does not allow", async () => {
  const cases: [string, Uint8Array, string][] = [
    ["version 3", v2With({ pack: file(5) }, { "meta version": 3 }), "version 3"],
    ["no tree", v2With(undefined), "is missing"],
    ["a tree that is a list", v2With([]), "is missing"],
    ["an empty tree", v2With({}), "is empty"],
    ["a file that is a number", v2With({ a: 5 }), "no file"],
    ["a tree that is a file", v2With(file(5)), "no name"],
    ["only empty files", v2With({ a: file(0), b: file(0) }), "no data"],
    ["a file without a length", v2With({ a: { "": { "pieces root": ROOT } } }), 'length of the file "a"'],
    ["a negative length", v2With({ a: { "": { length: -5, "pieces root": ROOT } } }), "out of range"],
    ["a file without a hash", v2With({ a: { b: { "": { length: 5 } } } }), '"a/b" has no hash'],
    ["a short hash", v2With({ a: { "": { length: 5, "pieces root": ROOT.slice(1) } } }), "no hash"],
    ["pieces of 20,000 bytes", v2With({ a: file(5) }, { "piece length": 20_000 }), "power of two"],
    ["pieces of 8 KiB", v2With({ a: file(5) }, { "piece length": 8192 }), "power of two"],
    ["more pieces than anybody has", v2With({ a: file(2 ** 50) }), "pieces"],
    ["more bytes than a number can say", v2With({ a: file(2 ** 52), b: file(2 ** 52), c: file(5) }), "too large"],
  ];
  for (const [what, bytes, message] of cases) {
    const error = await assertRejects(() => parseTransportFile(bytes), MillraceError, message, what);
    assertEquals(error.code, "bad_transport_file", what);
  }
});

test("parseTransportFile() leaves out piece layers that are missing or do not belong to their file", async () => {
  const key = String.fromCharCode(...ROOT);
  for (
    const layers of [undefined, [], {}, { [key]: new Uint8Array(128) }, { [key]: new Uint8Array(31) }, { [key]: 5 }]
  ) {
    const metainfo = await parseTransportFile(v2With({ a: file(50_000) }, {}, { "piece layers": layers }));
    assertEquals(metainfo.trees!.map((t) => [t.pieceCount, t.layer]), [[4, null]]);
    assertEquals(lacksLayers(metainfo), true);
  }
  const { metainfo } = await makeV2Torrent({ a: 50_000, b: 5 }, 16_384);
  assertEquals(lacksLayers(metainfo), false);
});

test("parseTransportFile() returns or rejects with MillraceError on damaged files of version 2", async () => {
  const random = seeded(11);
  const { transportFile } = await makeV2Torrent({ "a/b/c.mkv": 70_000, d: 0, e: 20_000 }, 16_384);
  for (let round = 0; round < 200; round++) {
    const damaged = transportFile.slice();
    for (let i = 0; i <= random() * 3; i++) damaged[Math.floor(random() * damaged.length)] = Math.floor(random() * 256);
    try {
      const { files, pieceCount, totalBytes, pieceLengthBytes } = await parseTransportFile(damaged);
      assertEquals(pieceCount, Math.ceil(totalBytes / pieceLengthBytes));
      assert(files.every((f) => f.path !== "" && f.padding || f.offset % pieceLengthBytes === 0));
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "bad_transport_file", String(error));
    }
  }
});

test("parseMagnet() reads the name of version 2, alone or beside that of version 1", async () => {
  const hex = "ab".repeat(32);
  const alone = parseMagnet(`magnet:?xt=urn:btmh:1220${hex.toUpperCase()}&dn=x`);
  assertEquals([alone.infohashHex, alone.infohashV2], ["ab".repeat(20), new Uint8Array(32).fill(0xab)]);
  const both = parseMagnet(`magnet:?xt=urn:btmh:1220${hex}&xt=urn:btih:${"c".repeat(40)}`);
  assertEquals([both.infohashHex, both.infohashV2], ["c".repeat(40), new Uint8Array(32).fill(0xab)]);
  for (const pieceHashes of [undefined, new Uint8Array(40)]) {
    const { metainfo } = await makeV2Torrent({ f: 100_000 }, 65_536, pieceHashes === undefined ? {} : { pieceHashes });
    const { infohashHex, infohashV2 } = parseMagnet(magnetLink(metainfo));
    assertEquals([infohashHex, infohashV2], [metainfo.infohashHex, metainfo.infohashV2]);
  }
});

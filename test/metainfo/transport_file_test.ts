import { test } from "node:test";
import { createHash } from "node:crypto";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { toHex } from "../../src/bytes/hex.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { encodeMetainfo, isLiveTransportFile, parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { parseInfo } from "../../src/metainfo/info.ts";
import { fileWith, infoWith, seeded } from "./support.ts";

const text = (value: string) => new TextEncoder().encode(value);
const two = (a: unknown[], b: unknown[]) => ({
  length: undefined,
  files: [{ length: 20_000, path: a }, { length: 20_000, path: b }],
});

test("parseTransportFile() reads a single file", async () => {
  const meta = await parseTransportFile(fileWith({}, { announce: "http://tracker.test/announce" }));
  assertEquals(meta.name, "clip.mp4");
  assertEquals(meta.files, [
    { index: 0, path: "clip.mp4", name: "clip.mp4", sizeBytes: 40_000, offset: 0, padding: false },
  ]);
  assertEquals([meta.pieceCount, meta.totalBytes, meta.pieceLengthBytes], [3, 40_000, 16384]);
  assertEquals(meta.trackers, [["http://tracker.test/announce"]]);
  assertEquals([meta.multiFile, meta.isPrivate], [false, false]);
});

test("parseTransportFile() hashes the info bytes unchanged when keys are unsorted", async () => {
  const info = "d4:name1:x12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaa6:lengthi5e5:extra2:yye";
  const meta = await parseTransportFile(text(`d4:info${info}8:announce18:udp://tracker.te:1e`));
  assertEquals(meta.infohashHex, createHash("sha1").update(info).digest("hex"));
  assertEquals(meta.trackers, [["udp://tracker.te:1"]]);
  assertEquals(toHex(meta.infohash), meta.infohashHex);
});

test("parseTransportFile() reads lists, tiers, web seeds, nodes and padding", async () => {
  const meta = await parseTransportFile(encodeBencode({
    info: infoWith({
      length: undefined,
      name: "pack",
      private: 1,
      files: [
        { length: 10_000, path: ["a", "one.mkv"] },
        { length: 6_384, path: [".pad", "6384"], attr: "p" },
        { length: 0, path: ["empty"] },
        { length: 23_616, path: ["b.mkv"], "path.utf-8": ["ß.mkv"] },
      ],
    }),
    "announce-list": [["http://a.test/x", "nonsense"], [], ["udp://b.test:80", "http://a.test/x"]],
    "url-list": ["https://seed.test/", "ftp://no.test/"],
    nodes: [["router.test", 6881], ["::1", 5], ["x", 0], "?"],
  }));
  assertEquals(meta.files.map((f) => [f.path, f.offset, f.sizeBytes, f.padding]), [
    ["a/one.mkv", 0, 10_000, false],
    [".pad/6384", 10_000, 6_384, true],
    ["empty", 16_384, 0, false],
    ["ß.mkv", 16_384, 23_616, false],
  ]);
  assertEquals(meta.trackers, [["http://a.test/x"], ["udp://b.test:80"]]);
  assertEquals(meta.webSeeds, ["https://seed.test/"]);
  assertEquals(meta.nodes, ["router.test:6881", "[::1]:5"]);
  assert(meta.isPrivate && meta.multiFile);
});

test("parseTransportFile() reads a hybrid as v1", async () => {
  const meta = await parseTransportFile(
    fileWith({ "meta version": 2, "file tree": { "clip.mp4": { "": { length: 40_000 } } } }),
  );
  assertEquals(meta.totalBytes, 40_000);
});

test("parseTransportFile() keeps names distinct that are not UTF-8", async () => {
  const meta = await parseTransportFile(fileWith(two([new Uint8Array([0xe0])], [new Uint8Array([0xe1])])));
  assertEquals(meta.files.map((f) => f.path), ["à", "á"]);
});

test("parseTransportFile() makes awkward names harmless", async () => {
  assertEquals((await parseTransportFile(fileWith({ name: "AC/DC\nlive\\x" }))).name, "AC_DC_live_x");
});

const HOSTILE: [string, Uint8Array, string][] = [
  ["nothing", new Uint8Array(), "too early"],
  ["text", text("<html>"), "unknown type"],
  ["no info", encodeBencode({ announce: "http://x/" }), "info is missing"],
  ["info of a wrong type", encodeBencode({ info: [1] }), "not a dictionary"],
  ["two infos", text("d4:infode4:infodee"), "appears twice"],
  ["a prototype key", text("d4:infod9:__proto__3:abcee"), "not allowed"],
  ["live", fileWith({ live: { v: 1 } }), "live"],
  ["no name", fileWith({ name: undefined }), "info.name"],
  ["no pieces", fileWith({ pieces: undefined }), "info.pieces"],
  ["v2 only", fileWith({ pieces: undefined, "meta version": 2 }), "version 2"],
  ["pieces cut short", fileWith({ pieces: new Uint8Array(59) }), "SHA-1"],
  ["no hashes", fileWith({ pieces: new Uint8Array(0) }), "SHA-1"],
  ["too many pieces", fileWith({ pieces: new Uint8Array(80) }), "do not fit"],
  ["too few pieces", fileWith({ pieces: new Uint8Array(40) }), "do not fit"],
  ["no length", fileWith({ length: undefined }), "info.length"],
  ["negative length", fileWith({ length: -1 }), "info.length"],
  ["no data", fileWith({ length: 0 }), "no data"],
  ["absurd length", fileWith({ length: 2 ** 62 }), "info.length"],
  [
    "absurd sum",
    fileWith({ length: undefined, files: [1, 2].map((n) => ({ length: 2 ** 53 - 1, path: [`${n}`] })) }),
    "too large",
  ],
  ["no piece length", fileWith({ "piece length": undefined }), "piece length"],
  ["tiny pieces", fileWith({ "piece length": 1 }), "piece length"],
  ["odd pieces", fileWith({ "piece length": 16385 }), "piece length"],
  ["huge pieces", fileWith({ "piece length": 2 ** 31 }), "piece length"],
  ["negative piece length", fileWith({ "piece length": -16384 }), "piece length"],
  ["empty file list", fileWith({ length: undefined, files: [] }), "info.files"],
  ["a file without path", fileWith({ length: undefined, files: [{ length: 40_000 }] }), "no path"],
  ["a file with an empty path", fileWith({ length: undefined, files: [{ length: 40_000, path: [] }] }), "no path"],
  ["a file without length", fileWith({ length: undefined, files: [{ path: ["x"] }] }), "length"],
  ["traversal", fileWith(two([".."], ["x"])), "leads out"],
  ["traversal in one component", fileWith(two(["../../etc/passwd"], ["x"])), "leads out"],
  ["traversal with backslashes", fileWith(two(["a\\..\\..\\b"], ["x"])), "leads out"],
  ["traversal in the name", fileWith({ name: ".." }), "leads out"],
  ["a dot", fileWith(two(["."], ["x"])), "leads out"],
  ["absolute", fileWith(two(["/etc/passwd"], ["x"])), "absolute"],
  ["absolute by an empty component", fileWith(two(["", "etc"], ["x"])), "empty"],
  ["a share", fileWith(two(["\\\\host\\share"], ["x"])), "absolute"],
  ["a drive", fileWith(two(["C:\\x"], ["x"])), "drive"],
  ["a bare drive", fileWith(two(["c:", "x"], ["x"])), "drive"],
  ["NUL", fileWith(two(["a\0.mp4"], ["x"])), "NUL"],
  ["an endless name", fileWith({ name: "x".repeat(766) }), "longer than"],
  ["an endless path", fileWith(two(Array(60).fill("x".repeat(100)), ["x"])), "longer than"],
  ["a deep path", fileWith(two(Array(65).fill("d"), ["x"])), "deeper"],
  ["the same file twice", fileWith(two(["x"], ["x"])), "two files"],
  ["a file that is a directory", fileWith(two(["x"], ["x", "y"])), "both a file"],
  ["a nest of lists", text("d4:info" + "l".repeat(100_000)), "nested"],
  ["a nest of dictionaries", text("d4:info" + "d1:a".repeat(100_000)), "nested"],
  ["a negative string", text("d4:info-5:xe"), "unknown type"],
  ["a string beyond the end", text("d4:info99999999:xe"), "longer than the remaining bytes"],
  ["an endless number", text(`d4:infoi${"9".repeat(5000)}ee`), "too long"],
  ["a truncated file", fileWith().slice(0, -1), "too early"],
];

for (const [name, bytes, message] of HOSTILE) {
  test(`parseTransportFile() throws bad_transport_file when given ${name}`, async () => {
    const error = await assertRejects(() => parseTransportFile(bytes), MillraceError, message);
    assertEquals(error.code, "bad_transport_file");
  });
}

test("parseTransportFile() throws too_large above 16 MiB", async () => {
  const error = await assertRejects(() => parseTransportFile(new Uint8Array(16 * 1024 * 1024 + 1)), MillraceError);
  assertEquals(error.code, "too_large");
});

test("parseTransportFile() bounds the number of values", async () => {
  await assertRejects(() => parseTransportFile(text(`d4:infol${"i0e".repeat(1_100_000)}ee`)), MillraceError, "values");
});

test("parseTransportFile() returns or throws MillraceError on damaged files", async () => {
  const random = seeded(20260101);
  const good = fileWith(two(["a", "b"], ["c"]), { "announce-list": [["http://a.test/"]], nodes: [["h", 1]] });
  for (let round = 0; round < 3000; round++) {
    const bytes = good.slice(0, random() < 0.3 ? Math.floor(random() * good.length) : good.length);
    for (let edits = Math.floor(random() * 6); edits >= 0; edits--) {
      bytes[Math.floor(random() * bytes.length)] = random() < 0.5
        ? "dlei0123456789:-"[Math.floor(random() * 16)]!.charCodeAt(0)
        : Math.floor(random() * 256);
    }
    try {
      const meta = await parseTransportFile(bytes);
      assert(meta.files.every((f) => !f.path.split("/").includes("..")));
    } catch (error) {
      assert(error instanceof MillraceError, `${error} on ${toHex(bytes)}`);
    }
  }
});

test("encodeMetainfo() keeps info byte for byte", async () => {
  const meta = await parseTransportFile(fileWith({ extra: "kept" }, {
    "announce-list": [["http://a.test/x"], ["udp://b.test:80"]],
    "url-list": "https://seed.test/",
    nodes: [["::1", 5]],
  }));
  assertEquals(await parseTransportFile(encodeMetainfo(meta)), meta);
});

test("parseInfo() returns the same as parseTransportFile()", async () => {
  const meta = await parseTransportFile(fileWith());
  assertEquals(await parseInfo(meta.infoBytes), meta);
  assert(hasCode(await assertRejects(() => parseInfo(text("i1e"))), "bad_transport_file"));
});

test("isLiveTransportFile() looks for info.live only", () => {
  assertEquals(isLiveTransportFile(encodeBencode({ info: { live: { v: 1 }, name: "x" } })), true);
  assertEquals(isLiveTransportFile(fileWith()), false);
  assertEquals(isLiveTransportFile(text("d4:info")), false);
});

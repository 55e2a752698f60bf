import { test } from "node:test";
import { createHash } from "node:crypto";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { toHex } from "../../src/bytes/hex.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { encodeMetainfo, parseTransportFile } from "../../src/metainfo/transport-file.ts";
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
    httpseeds: ["http://script.test/seed.php", "nonsense"],
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
  assertEquals(meta.httpSeeds, ["http://script.test/seed.php"]);
  assertEquals((await parseTransportFile(encodeMetainfo(meta))).httpSeeds, meta.httpSeeds);
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

const long = "x".repeat(100);
/** What a creator wrote as the paths of two files, and how they are shown and stored. */
const AWKWARD: [string, unknown[], unknown[], string[]][] = [
  ["a title with a slash", ["AC/DC\nlive\\x"], ["x"], ["AC_DC_live_x", "x"]],
  ["traversal", ["..", "..", "passwd"], ["x"], ["passwd", "x"]],
  ["traversal in one component", ["../../etc/passwd"], ["x"], ["etc_passwd", "x"]],
  ["traversal with backslashes", ["a\\..\\..\\b"], ["x"], ["a_b", "x"]],
  ["nothing but traversal", [".."], ["."], ["unnamed", "unnamed (2)"]],
  ["a dot", [".", "a.mp4"], ["x"], ["a.mp4", "x"]],
  ["an absolute path", ["/etc/passwd"], ["x"], ["etc_passwd", "x"]],
  ["an empty component", ["", "a", "", "b.mp4"], ["x"], ["a/b.mp4", "x"]],
  ["a share", ["\\\\host\\share"], ["x"], ["host_share", "x"]],
  ["a path of Windows", ["C:\\films\\a.mp4"], ["c:", "x"], ["C_films_a.mp4", "c/x"]],
  ["a name with a colon", ["A: the film.mp4"], ["x"], ["A: the film.mp4", "x"]],
  ["NUL", ["a\0.mp4"], ["x"], ["a_.mp4", "x"]],
  ["an endless name", [`${"é".repeat(400)}.mp4`], ["x"], [`${"é".repeat(380)}.mp4`, "x"]],
  ["an endless path", Array(60).fill(long), ["x"], [Array(40).fill(long).join("/"), "x"]],
  ["a deep path", ["r", ...Array(63).fill("d"), "x"], ["x"], [`${"d/".repeat(63)}x`, "x"]],
  ["the same file twice", ["x.mp4"], ["x.mp4"], ["x.mp4", "x (2).mp4"]],
  ["a file that is a directory", ["x.mp4"], ["x.mp4", "y"], ["x (2).mp4", "x.mp4/y"]],
];

for (const [name, first, second, paths] of AWKWARD) {
  test(`parseTransportFile() makes names harmless when given ${name}`, async () => {
    assertEquals((await parseTransportFile(fileWith(two(first, second)))).files.map((f) => f.path), paths);
  });
}

test("parseTransportFile() takes the first name and path that say something", async () => {
  const named = async (changes: Record<string, unknown>) => (await parseTransportFile(fileWith(changes))).name;
  assertEquals(await named({ name: undefined }), "unnamed");
  assertEquals(await named({ name: "" }), "unnamed");
  assertEquals(await named({ name: ".." }), "unnamed");
  assertEquals(await named({ "name.utf-8": "" }), "clip.mp4");
  assertEquals(await named({ "name.utf-8": 5 }), "clip.mp4");
  const path = async (fields: Record<string, unknown>) =>
    (await parseTransportFile(fileWith({ length: undefined, files: [{ length: 40_000, ...fields }] }))).files[0]!.path;
  assertEquals(await path({ path: ["a"], "path.utf-8": [] }), "a");
  assertEquals(await path({ path: ["a"], "path.utf-8": "b.mp4" }), "b.mp4");
  assertEquals(await path({ path: "a.mp4" }), "a.mp4");
});

test("parseTransportFile() numbers thousands of equal names in one pass", async () => {
  const files = Array.from({ length: 40_000 }, () => ({ length: 1, path: ["a.mp4"] }));
  const paths = (await parseTransportFile(fileWith({ length: undefined, files }))).files.map((file) => file.path);
  assertEquals([paths[0], paths[1], paths[39_999]], ["a.mp4", "a (2).mp4", "a (40000).mp4"]);
  assertEquals(new Set(paths).size, 40_000);
});

test("parseTransportFile() gives others their turn while it reads many files", async () => {
  const files = Array.from({ length: 90_000 }, (_, n) => ({ length: 1, path: [`directory ${n % 90}`, `${n}.jpg`] }));
  const bytes = fileWith({ length: undefined, pieces: new Uint8Array(120), files });
  let turns = 0;
  let timer = setTimeout(function tick() {
    turns++;
    timer = setTimeout(tick, 0);
  }, 0);
  await parseTransportFile(bytes);
  clearTimeout(timer);
  assert(turns >= 5, `${turns} turns`);
});

test("parseTransportFile() skips numbers that other files have", async () => {
  const files = ["a.mp4", "a.mp4", "a (2).mp4"].map((path) => ({ length: 20_000, path: [path] })).slice(0, 3);
  const meta = await parseTransportFile(fileWith({ length: undefined, pieces: new Uint8Array(80), files }));
  assertEquals(meta.files.map((file) => file.path), ["a.mp4", "a (3).mp4", "a (2).mp4"]);
});

test("parseTransportFile() keeps the names that web seeds know", async () => {
  const latin = new Uint8Array([0x63, 0x61, 0x66, 0xe9]);
  const meta = await parseTransportFile(fileWith({ name: "AC/DC", ...two([latin, "a b.mp4"], ["x y.mp4"]) }));
  assertEquals(meta.webName, "AC%2FDC");
  assertEquals(meta.files.map((file) => [file.path, file.webPath]), [
    ["café/a b.mp4", "caf%E9/a%20b.mp4"],
    ["x y.mp4", undefined],
  ]);
  const plain = await parseTransportFile(fileWith({ name: "café" }));
  assertEquals([plain.name, plain.webName], ["café", undefined]);
});

for (
  const [pieceLength, pieces] of [[1024, 40], [8192, 5], [16385, 3], [25_344, 2], [40_000, 1], [2 ** 28, 1]] as const
) {
  test(`parseTransportFile() reads pieces of ${pieceLength} bytes`, async () => {
    const changes = { "piece length": pieceLength, pieces: new Uint8Array(20 * pieces) };
    const meta = await parseTransportFile(fileWith(changes));
    assertEquals([meta.pieceLengthBytes, meta.pieceCount], [pieceLength, pieces]);
  });
}

const HOSTILE: [string, Uint8Array, string][] = [
  ["nothing", new Uint8Array(), "too early"],
  ["text", text("<html>"), "unknown type"],
  ["no info", encodeBencode({ announce: "http://x/" }), "info is missing"],
  ["info of a wrong type", encodeBencode({ info: [1] }), "not a dictionary"],
  ["two infos", text("d4:infode4:infodee"), "appears twice"],
  ["a prototype key", text("d4:infod9:__proto__3:abcee"), "not allowed"],
  ["live", fileWith({ live: { v: 1 } }), "live"],
  ["no pieces", fileWith({ pieces: undefined }), "info.pieces"],
  ["v2 without files", fileWith({ pieces: undefined, "meta version": 2 }), "file tree"],
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
  ["huge pieces", fileWith({ "piece length": 2 ** 31 }), "piece length"],
  ["negative piece length", fileWith({ "piece length": -16384 }), "piece length"],
  ["empty file list", fileWith({ length: undefined, files: [] }), "info.files"],
  ["a file without path", fileWith({ length: undefined, files: [{ length: 40_000 }] }), "no path"],
  ["a file with an empty path", fileWith({ length: undefined, files: [{ length: 40_000, path: [] }] }), "no path"],
  ["a file without length", fileWith({ length: undefined, files: [{ path: ["x"] }] }), "length"],
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

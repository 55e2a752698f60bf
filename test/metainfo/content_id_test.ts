import { test } from "node:test";
import { createHash } from "node:crypto";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import {
  contentId,
  decodeTransportRecord,
  encodeTransportRecord,
  transportRecordOf,
} from "../../src/metainfo/content-id.ts";
import { compareNatural } from "../../src/metainfo/natural-order.ts";
import { choosePieceLength, createTransportFile, hashPieces } from "../../src/metainfo/create.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";

const infohash = new Uint8Array(20).fill(65);

test("contentId() is SHA-1 of the bencoded record", async () => {
  const expected = `d2:ih20:${"A".repeat(20)}2:nm4:clip2:trl13:http://a.test13:http://b.teste1:vi1ee`;
  const id = await contentId({ infohash, name: "clip", trackers: [["http://a.test"], ["http://b.test"]] });
  assertEquals(id, createHash("sha1").update(expected).digest("hex"));
});

test("encodeTransportRecord() leaves out empty keys", () => {
  const bytes = encodeTransportRecord({ infohash, name: null, trackers: [] });
  assertEquals(new TextDecoder().decode(bytes), `d2:ih20:${"A".repeat(20)}1:vi1ee`);
});

test("encodeTransportRecord() drops trackers from the end until the record fits 1000 bytes", () => {
  const trackers = Array.from({ length: 100 }, (_, i) => `http://tracker-${i}.test/announce`);
  const bytes = encodeTransportRecord({ infohash, name: "ä".repeat(100), trackers });
  assert(bytes.length <= 1000 && bytes.length > 950);
  const record = decodeTransportRecord(bytes);
  assertEquals(record.name, "ä".repeat(100));
  assertEquals(record.trackers, trackers.slice(0, record.trackers.length));
  assert(encodeTransportRecord({ infohash, name: "ä".repeat(900), trackers }).length <= 1000);
});

test("decodeTransportRecord() throws bad_transport_file on anything else", () => {
  for (
    const text of [
      "",
      "i1e",
      "de",
      "d1:vi1ee",
      "d2:ih3:abc1:vi1ee",
      `d2:ih20:${"A".repeat(20)}1:vi2ee`,
      "d".repeat(1001),
    ]
  ) {
    const error = assertThrows(() => decodeTransportRecord(new TextEncoder().encode(text)), MillraceError);
    assertEquals(error.code, "bad_transport_file");
  }
});

test("compareNatural() orders digits as numbers", () => {
  const names = ["e10.mkv", "E2.mkv", "e1.mkv", "a", "B"];
  assertEquals(names.sort(compareNatural), ["a", "B", "e1.mkv", "E2.mkv", "e10.mkv"]);
});

test("createTransportFile() makes a file that reads back", async () => {
  const data = new Uint8Array(100_000).map((_, i) => i * 7);
  const pieceLengthBytes = choosePieceLength(data.length);
  const pieceHashes = await hashPieces(
    data.length,
    pieceLengthBytes,
    (at, n) => Promise.resolve(data.slice(at, at + n)),
  );
  const made = await createTransportFile({
    name: "pack",
    files: [{ path: "a/b.mkv", sizeBytes: 90_000 }, { path: "c", sizeBytes: 10_000 }],
    pieceLengthBytes,
    pieceHashes,
    trackers: [["http://t.test/announce"]],
    isPrivate: true,
  });
  assertEquals(await parseTransportFile(made.bytes), made.metainfo);
  assertEquals(made.metainfo.files[1]?.offset, 90_000);
  const first = createHash("sha1").update(data.subarray(0, 16384)).digest();
  assertEquals(made.metainfo.pieceHashes.slice(0, 20), new Uint8Array(first));
  assertEquals(transportRecordOf(made.metainfo).length < 1000, true);
});

test("choosePieceLength() stays within 16 KiB and 16 MiB", () => {
  assertEquals([0, 1e9, 1e13].map(choosePieceLength), [16384, 1048576, 16777216]);
});

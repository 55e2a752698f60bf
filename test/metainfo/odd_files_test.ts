/** Transport files and links as users have met them, which other clients refused or read wrongly. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { fileWith } from "./support.ts";

const HTTP = "http://a.test/announce";

const TRACKERS: readonly [name: string, outer: Record<string, unknown>, trackers: string[][]][] = [
  ["no tracker", {}, []],
  ["an empty list of trackers", { announce: HTTP, "announce-list": [] }, [[HTTP]]],
  ["an empty text for a list", { announce: HTTP, "announce-list": "" }, [[HTTP]]],
  ["tiers without a tracker", { announce: HTTP, "announce-list": [[], [""], [[]]] }, [[HTTP]]],
  ["trackers without tiers", { "announce-list": [HTTP, "udp://b.test:1"] }, [[HTTP], ["udp://b.test:1"]]],
  ["a dictionary for a list", { announce: HTTP, "announce-list": { x: [HTTP] } }, [[HTTP]]],
  ["dictionaries for tiers", { announce: HTTP, "announce-list": [{ x: HTTP }, [HTTP]] }, [[HTTP]]],
  ["a list for a tracker", { announce: [HTTP] }, [[HTTP]]],
  ["a number for a tracker", { announce: 7, "announce-list": [[7, HTTP]] }, [[HTTP]]],
  ["the same tracker in several tiers", { "announce-list": [[HTTP], [HTTP], [HTTP]] }, [[HTTP]]],
];
for (const [name, outer, trackers] of TRACKERS) {
  test(`parseTransportFile() reads a file with ${name}`, async () => {
    assertEquals((await parseTransportFile(fileWith({}, outer))).trackers, trackers);
  });
}

const files = (...sizes: number[]) => ({
  length: undefined,
  files: sizes.map((length, i) => ({ length, path: [`${i}.mp4`] })),
});

const CONTENT: readonly [name: string, info: Record<string, unknown>, sizes: number[]][] = [
  ["files without a byte, also at both ends", files(0, 20_000, 0, 20_000, 0), [0, 20_000, 0, 20_000, 0]],
  ["a length beside its list of files", { ...files(20_000, 20_000), length: 40_000 }, [20_000, 20_000]],
  ["one file, in a folder", files(40_000), [40_000]],
  ["less than one piece", { "piece length": 524_288, pieces: new Uint8Array(20) }, [40_000]],
  ["a last piece of one byte", { length: 32_769 }, [32_769]],
  ["no more than whole pieces", { length: 49_152 }, [49_152]],
  ["checksums, dates and notes of other programs", {
    ...files(20_000, 20_000),
    md5sum: "x",
    sha1: new Uint8Array(20),
    "file-duration": [1],
    private: "1",
    source: { x: 1 },
    "meta version": 1,
  }, [20_000, 20_000]],
];
for (const [name, info, sizes] of CONTENT) {
  test(`parseTransportFile() reads a torrent with ${name}`, async () => {
    const meta = await parseTransportFile(fileWith(info));
    assertEquals(meta.files.map(({ sizeBytes }) => sizeBytes), sizes);
    assertEquals(meta.totalBytes, sizes.reduce((sum, size) => sum + size, 0));
  });
}

test("parseTransportFile() ignores empty addresses of web seeds", async () => {
  const outer = { "url-list": "", httpseeds: ["", 7], nodes: "" };
  const { webSeeds, httpSeeds, nodes } = await parseTransportFile(fileWith({}, outer));
  assertEquals([webSeeds, httpSeeds ?? [], nodes], [[], [], []]);
});

const HEX = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3";
const BASE32 = "UCQ2FI5EUWTKPKFJVKV2ZLNOV6YLDMVT";
for (
  const [name, link] of [
    ["base32 in lower case", `xt=urn:btih:${BASE32.toLowerCase()}`],
    ["base32 in upper case", `xt=urn:btih:${BASE32}`],
    ["an infohash in upper case", `xt=urn:btih:${HEX.toUpperCase()}`],
    ["URN in upper case", `xt=URN:BTIH:${HEX}`],
    ["an infohash of version 2 before", `xt=urn:btmh:1220${"ab".repeat(32)}&xt=urn:btih:${HEX}`],
    ["numbered topics", `xt.1=urn:sha1:${BASE32}&xt.2=urn:btih:${HEX}`],
    ["an encoded topic", `xt=urn%3Abtih%3A${HEX}`],
    ["blanks around the infohash", `xt=urn:btih:%20${HEX}%20`],
    ["an empty name, size and tracker", `dn=&xl=&tr=&xt=urn:btih:${HEX}`],
    ["a name with a broken escape", `dn=100%25%zz&xt=urn:btih:${HEX}`],
  ] as const
) {
  test(`parseMagnet() reads a link with ${name}`, () => {
    assertEquals(parseMagnet(`magnet:?${link}`).infohashHex, HEX);
  });
}

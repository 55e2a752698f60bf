import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { MillraceError } from "../../src/errors.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { decodeMutableValue, readMutableMagnet } from "../../src/metainfo/mutable-magnet.ts";

const KEY = "0a".repeat(32);
const HEX = "cd".repeat(20);

test("readMutableMagnet() reads key and salt, and makes the link of the torrent that is meant now", () => {
  const link =
    `magnet:?xs=urn:btpk:${KEY.toUpperCase()}&s=66696c6d&tr=udp%3A%2F%2Ft.test%3A1&xs=http://a.test/f&dn=A+B`;
  const read = readMutableMagnet(link)!;
  assertEquals([read.publicKey, new TextDecoder().decode(read.salt)], [new Uint8Array(32).fill(10), "film"]);
  const { infohashHex, trackers, sources, name, unread } = parseMagnet(read.of(HEX));
  assertEquals([infohashHex, trackers, sources, name, unread], [
    HEX,
    ["udp://t.test:1"],
    ["http://a.test/f"],
    "A B",
    [],
  ]);
  assertEquals(readMutableMagnet(`magnet:?xs=urn%3Abtpk%3A${KEY}`)!.salt, new Uint8Array());
});

test("readMutableMagnet() leaves links alone that name a torrent, or no key and salt", () => {
  for (
    const link of [
      `magnet:?xs=urn:btpk:${KEY}&xt=urn:btih:${HEX}`,
      `magnet:?xs=urn:btpk:${KEY}00`,
      `magnet:?xs=urn:btpk:${KEY}&s=xyz`,
      `magnet:?xs=urn:btpk:${KEY}&s=${"00".repeat(65)}`,
      `magnet:?xt=urn:btih:${HEX}`,
      "",
    ]
  ) {
    assertEquals(readMutableMagnet(link), null, link);
  }
});

test("decodeMutableValue() reads an infohash, and refuses other values in words", () => {
  assertEquals(decodeMutableValue(encodeBencode({ ih: new Uint8Array(20).fill(0xcd), x: 1 })), HEX);
  for (const value of [{ ih: new Uint8Array(19) }, { ih: 5 }, {}, [], "ih", 7]) {
    const error = assertThrows(() => decodeMutableValue(encodeBencode(value)), MillraceError);
    assertEquals(error.code, "bad_transport_file");
  }
});

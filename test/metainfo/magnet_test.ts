import { test } from "node:test";
import { assert, assertEquals, assertLess, assertThrows } from "@std/assert";
import { toHex } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import { MAX_MAGNET_LENGTH } from "../../src/metainfo/limits.ts";
import { parseInfohash, parseMagnet } from "../../src/metainfo/magnet.ts";
import { seeded } from "./support.ts";
import { cpuMs } from "../support/cpu-time.ts";

const HEX = "dd8255ecdc7ca55fb0bbf81323d87062db1f6d1c";
const BASE32 = "3WBFL3G4PSSV7MF37AJSHWDQMLNR63I4";

test("parseInfohash() reads hexadecimal and base32 in either case", () => {
  for (const form of [HEX, HEX.toUpperCase(), BASE32, BASE32.toLowerCase(), ` ${HEX} `]) {
    assertEquals(toHex(parseInfohash(form)), HEX);
  }
});

test("parseInfohash() throws invalid_argument when it is neither", () => {
  for (const form of ["", "abc", HEX + "0", "z".repeat(40), "1".repeat(32)]) {
    assertEquals(assertThrows(() => parseInfohash(form), MillraceError).code, "invalid_argument");
  }
});

test("parseMagnet() reads every part", () => {
  const magnet = parseMagnet(
    `magnet:?xt=urn:btmh:1220aa&xt=urn:btih:${BASE32}&dn=Big%20Buck+Bunny&tr=udp%3A%2F%2Ft.test%3A1337&tr.1=http://u.test/a` +
      "&tr=javascript:1&x.pe=10.0.0.1:6881&x.pe=[2001:DB8::1]:51413&x.pe=fe80::1:99&x.pe=host.test:1&x.pe=bad&x.pe=a:70000" +
      "&ws=https://seed.test/f&so=0,2,4-6,nonsense,9-7&xs=urn:btpk:aa&xs=http://a.test/f.torrent&as=https://b.test/f",
  );
  assertEquals(magnet, {
    infohash: parseInfohash(HEX),
    infohashHex: HEX,
    name: "Big Buck Bunny",
    trackers: ["udp://t.test:1337", "http://u.test/a"],
    peers: ["10.0.0.1:6881", "[2001:db8::1]:51413", "[fe80::1]:99", "host.test:1"],
    webSeeds: ["https://seed.test/f"],
    sources: ["http://a.test/f.torrent", "https://b.test/f"],
    selectOnly: [0, 2, 4, 5, 6],
    unread: ["tr=javascript:1", "x.pe=bad", "x.pe=a:70000", "xs=urn:btpk:aa"],
  });
});

test("parseMagnet() reads links as they were copied", () => {
  const http = "http://a.test/announce?x=1&y=2";
  const udp = "udp://b.test:1337/announce";
  const twice = (text: string) => encodeURIComponent(encodeURIComponent(text));
  const link = `magnet:?xt=urn:btih:${HEX}&tr=${encodeURIComponent(http)}&tr=${encodeURIComponent(udp)}`;
  const forms = [
    link,
    link.replaceAll("&", "&amp;"),
    link.replace("magnet:?", "magnet://?"),
    `magnet:${encodeURIComponent(link.slice("magnet:".length))}`,
    `magnet:?xt=urn:btih:${HEX.slice(0, 20)}%0A${HEX.slice(20)}&tr=${encodeURIComponent(`${http} ${udp}`)}`,
    `magnet:?xt=urn:btih:${HEX}&tr=${twice(http)}&tr=${twice(udp)}`,
    ...[",", "\n", ", ", "; "].map((between) =>
      `magnet:?xt=urn:btih:${HEX}&tr=${encodeURIComponent(http + between + udp)}`
    ),
  ];
  for (const form of forms) {
    const magnet = parseMagnet(form);
    assertEquals([magnet.infohashHex, magnet.trackers, magnet.unread], [HEX, [http, udp], []], form);
  }
  const joined = parseMagnet(`magnet:?xt=urn:btih:${HEX}&tr=http://a.test/announceudp://b.test:1/announce`);
  assertEquals(joined.trackers, ["http://a.test/announce", "udp://b.test:1/announce"]);
});

test("parseMagnet() keeps an address that holds another", () => {
  const address = "http://a.test/?of=http://b.test/announce,c";
  assertEquals(parseMagnet(`magnet:?xt=urn:btih:${HEX}&tr=${address}`).trackers, [address]);
});

test("parseMagnet() leaves absent parts empty", () => {
  const magnet = parseMagnet(`MAGNET:?xt=URN:BTIH:${HEX}`);
  assertEquals([magnet.name, magnet.selectOnly, magnet.trackers, magnet.peers], [null, null, [], []]);
});

test("parseMagnet() throws invalid_argument when there is no infohash", () => {
  const cases: [string, string][] = [
    ["http://x", "begin with magnet"],
    ["magnet:?dn=x", "no xt"],
    ["magnet:?xt=urn:btmh:1220aa", "SHA-256"],
    ["magnet:?xt=urn:btih:xyz", "infohash"],
    [`magnet:?xt=urn:btih:${HEX}&dn=${"x".repeat(70_000)}`, "longer"],
  ];
  for (const [uri, message] of cases) {
    assertEquals(assertThrows(() => parseMagnet(uri), MillraceError, message).code, "invalid_argument");
  }
});

test("parseMagnet() bounds lists and selections", () => {
  const many = Array.from({ length: 500 }, (_, i) => `tr=http://t${i}.test/`).join("&");
  const magnet = parseMagnet(`magnet:?xt=urn:btih:${HEX}&${many}&so=0-9999999`);
  assertEquals([magnet.trackers.length, magnet.selectOnly?.length], [100, 10_000]);
});

test("parseMagnet() returns or throws MillraceError on damaged links", () => {
  const random = seeded(7);
  const good = `magnet:?xt=urn:btih:${HEX}&dn=a%20b&tr=udp://t.test:1&x.pe=[::1]:5&so=1-3`;
  for (let round = 0; round < 3000; round++) {
    const characters = [...good];
    for (let edits = 0; edits < 4; edits++) {
      characters[Math.floor(random() * characters.length)] = String.fromCharCode(Math.floor(random() * 300));
    }
    try {
      parseMagnet(characters.join(""));
    } catch (error) {
      assert(error instanceof MillraceError);
    }
  }
});

test("parseMagnet() takes no longer for hostile links than for others of their length", () => {
  const link = `magnet:?xt=urn:btih:${"0".repeat(40)}`;
  for (const part of ["&tr", "&so=0-9998", "&x.pe=1.2.3.4:1", "&tr.1=http://t/"]) {
    const text = link + part.repeat(Math.floor((MAX_MAGNET_LENGTH - link.length) / part.length));
    const begun = cpuMs();
    parseMagnet(text);
    // Some 20 ms; work quadratic in the number of parts takes seconds.
    assertLess(cpuMs() - begun, 600, part);
  }
});

/** The worked example of the protocol's page: what it prints is what the code writes and reads. */
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { fromHex, toHex } from "../../src/bytes/hex.ts";
import { decodeHeader, FLAG_RANDOM_ACCESS } from "../../src/live/header.ts";
import { decodeBundle, encodeBundle } from "../../src/live/bundle.ts";
import { emptyPaths } from "../../src/live/node/neighbour/place.ts";
import { decodeLiveMessage, encodeLiveMessage, type LiveMessage, windowHas } from "../../src/live/messages.ts";
import { CryptoVerifier, hashBlocks, HeaderSigner } from "../../src/live/signer.ts";
import { contentId, transportRecordOf } from "../../src/metainfo/content-id.ts";
import { createLiveTransportFile } from "../../src/metainfo/live.ts";
import { sha256 } from "../../platform/shared/digests.ts";
import { ed25519 } from "../../platform/shared/signatures.ts";

const page = readFileSync(new URL("../../src/live/README.md", import.meta.url), "utf8");

/** The bytes in the row of the example whose first cell begins with `what`. */
function bytesOf(what: string): Uint8Array {
  const example = page.slice(page.indexOf("## Worked example"));
  const row = example.split("\n").find((line) => line.startsWith(`| ${what}`));
  const hex = /\| `([0-9a-f]+)` \|$/.exec(row ?? "")?.[1];
  if (hex === undefined) throw new Error(`the page has no row "${what}"`);
  return fromHex(hex)!;
}

/** Seed of RFC 8032 section 7.1, test 1, as PKCS #8 (RFC 8410). */
const PRIVATE_KEY = fromHex(
  "302e020100300506032b6570042204209d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
)!;
const TRACKER = "udp://tracker.example:6969";

async function exampleStream() {
  const publicKey = bytesOf("public key");
  return (await createLiveTransportFile({ name: "example", publicKey, bytesPerS: 250_000, trackers: [[TRACKER]] }))
    .metainfo;
}

test("createLiveTransportFile() and contentId() give the page's info, infohash, record and content id", async () => {
  const metainfo = await exampleStream();
  assertEquals(toHex(metainfo.infoBytes), toHex(bytesOf("`bencode(info)`")));
  assertEquals(metainfo.infohashHex, toHex(bytesOf("infohash")));
  assertEquals(toHex(transportRecordOf(metainfo)), toHex(bytesOf("record")));
  assertEquals(await contentId(metainfo), toHex(bytesOf("content id")));
});

test("HeaderSigner.sign() gives the page's header, and CryptoVerifier.header() accepts it", async () => {
  const metainfo = await exampleStream();
  const piece = new Uint8Array(376).fill(0xff);
  for (const at of [0, 188]) piece.set([0x47, 0x1f, 0xff, 0x10], at);
  const signer = await HeaderSigner.create(PRIVATE_KEY, metainfo.infohash);
  const signed = await signer.sign({
    epoch: 1_700_000_000,
    seq: 7,
    timestampMs: 1_700_000_123_456,
    flags: FLAG_RANDOM_ACCESS,
    lengthBytes: piece.length,
    hashes: await hashBlocks(piece, sha256),
  });
  const onPage = bytesOf("header");
  assertEquals(toHex(signed.bytes), toHex(onPage));
  const verifier = new CryptoVerifier(metainfo.publicKey, metainfo.infohash, { sha256, ed25519 });
  const genuine = (bytes: Uint8Array) =>
    new Promise<boolean>((resolve) => verifier.header(decodeHeader(bytes, metainfo.pieceLengthBytes), resolve));
  assertEquals(await genuine(onPage), true);
  const changed = onPage.slice();
  changed[15]! ^= 1;
  assertEquals(await genuine(changed), false);
});

const MESSAGES: readonly (readonly [string, LiveMessage])[] = [
  ["WINDOW", { type: "window", epoch: 1_700_000_000, base: 4, solid: 8, bitmap: new Uint8Array([0x40]) }],
  ["SUB", { type: "subscribe", mask: 0b101, from: 9 }],
  ["UNSUB", { type: "unsubscribe", mask: 1, reason: 1 }],
  ["PING", { type: "ping", nonce: 0x123456789abcn }],
  ["HEADERS", { type: "headers", lean: 0b10000, seqs: [9] }],
  ["PLACE", {
    type: "place",
    upBytesPerS: 500_000,
    depths: new Uint8Array([1, 1, 1, 1, 2, 2, 2, 255]),
    bars: new Uint8Array([0, 0, 0, 0, 12, 12, 1, 255]),
    paths: emptyPaths(8),
    pathMask: 0,
  }],
];

test("encodeBundle() and decodeBundle() give the page's BUNDLE", () => {
  const parts = [bytesOf("PING"), bytesOf("UNSUB")];
  assertEquals(toHex(encodeBundle(parts)), toHex(bytesOf("BUNDLE")));
  assertEquals(decodeBundle(bytesOf("BUNDLE"))!.map(toHex), parts.map(toHex));
});

for (const [name, message] of MESSAGES) {
  test(`encodeLiveMessage() and decodeLiveMessage() give the page's ${name}`, () => {
    const onPage = bytesOf(name);
    assertEquals(toHex(encodeLiveMessage(message)), toHex(onPage));
    assertEquals(decodeLiveMessage(onPage), message);
  });
}

test("windowHas() reads the page's WINDOW as its text says", () => {
  const window = decodeLiveMessage(bytesOf("WINDOW"));
  if (window?.type !== "window") throw new Error("the page's WINDOW is none");
  const has = Array.from({ length: 12 }, (_, seq) => seq).filter((seq) => windowHas(window, seq));
  assertEquals(has, [4, 5, 6, 7, 9]);
});

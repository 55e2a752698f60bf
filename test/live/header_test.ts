import { test } from "node:test";
import { assert, assertEquals, assertNotEquals, assertRejects, assertThrows } from "@std/assert";
import { toHex } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import {
  blockCount,
  blockLength,
  decodeHeader,
  FLAG_END,
  FLAG_RANDOM_ACCESS,
  hashOfBlock,
  type UnsignedHeader,
} from "../../src/live/header.ts";
import { createLiveKey, CryptoVerifier, hashBlock, hashBlocks, HeaderSigner } from "../../src/live/signer.ts";
import { seeded } from "../metainfo/support.ts";
import { sha256 } from "../../platform/shared/digests.ts";
import { ed25519 } from "../../platform/shared/signatures.ts";

const INFOHASH = new Uint8Array(20).fill(9);
const PIECE = new Uint8Array(40_000).map((_, i) => (i * 7) ^ (i >> 9));

async function signed(changes: Partial<UnsignedHeader> = {}) {
  const key = await createLiveKey();
  const signer = await HeaderSigner.create(key.privateKey, INFOHASH);
  const header = await signer.sign({
    epoch: 0xfffffffe,
    seq: 77,
    timestampMs: 1_800_000_000_123,
    flags: FLAG_RANDOM_ACCESS,
    lengthBytes: PIECE.length,
    hashes: await hashBlocks(PIECE, sha256),
    ...changes,
  });
  return { key, header, verifier: new CryptoVerifier(key.publicKey, INFOHASH, { sha256, ed25519 }) };
}

const genuine = (ask: (done: (yes: boolean) => void) => void) => new Promise<boolean>(ask);

test("decodeHeader() reads what HeaderSigner.sign() made", async () => {
  const { header } = await signed();
  assertEquals(decodeHeader(header.bytes, 65536), header);
  assertEquals(header.bytes.length, 22 + 3 * 20 + 64);
  assertEquals(toHex(header.bytes.subarray(0, 22)), "fffffffe0000004d000001a3185c507b0100009c4003");
});

test("CryptoVerifier accepts the broadcaster's headers and blocks only", async () => {
  const { header, verifier } = await signed();
  assert(await genuine((done) => verifier.header(header, done)));
  const block = PIECE.subarray(16384, 32768);
  assert(await genuine((done) => verifier.block(block, hashOfBlock(header, 1), done)));
  assert(!await genuine((done) => verifier.block(block, hashOfBlock(header, 0), done)));
  for (const at of [0, 5, 12, 16, 18, 30, header.bytes.length - 1]) {
    const bytes = header.bytes.slice();
    bytes[at] = bytes[at]! ^ 2;
    let forged;
    try {
      forged = decodeHeader(bytes, 1 << 20);
    } catch {
      continue;
    }
    assert(!await genuine((done) => verifier.header(forged, done)), `byte ${at}`);
  }
  const other = await signed();
  assert(!await genuine((done) => verifier.header(other.header, done)));
});

test("CryptoVerifier rejects a header of another stream signed by the same key", async () => {
  const { key, header } = await signed();
  const elsewhere = new CryptoVerifier(key.publicKey, new Uint8Array(20), { sha256, ed25519 });
  assert(!await genuine((done) => elsewhere.header(header, done)));
});

test("decodeHeader() throws protocol_violation when a field is impossible", async () => {
  const { header } = await signed();
  const cases: [string, (view: DataView) => Uint8Array | void][] = [
    ["too short", (view) => new Uint8Array(view.buffer, 0, 80)],
    ["wrong length", (view) => new Uint8Array(view.buffer, 0, view.byteLength - 1)],
    ["sequence number", (view) => view.setUint32(4, 0x80000000)],
    ["a time", (view) => view.setUint32(8, 0xffffffff)],
    ["above the piece length", (view) => view.setUint32(17, 65537)],
    ["number of hashes", (view) => view.setUint32(17, 16384)],
    ["wrong length", (view) => view.setUint8(21, 255)],
  ];
  for (const [message, change] of cases) {
    const bytes = header.bytes.slice();
    const changed = change(new DataView(bytes.buffer)) ?? bytes;
    assertEquals(
      assertThrows(() => decodeHeader(changed, 65536), MillraceError, message).code,
      "protocol_violation",
    );
  }
});

test("decodeHeader() accepts an empty piece only at the end of the stream", async () => {
  const empty = { lengthBytes: 0, hashes: new Uint8Array() };
  assertEquals(decodeHeader((await signed({ ...empty, flags: FLAG_END })).header.bytes, 65536).lengthBytes, 0);
  const { header } = await signed({ ...empty, flags: 0 });
  assertThrows(() => decodeHeader(header.bytes, 65536), MillraceError, "empty piece");
});

test("HeaderSigner.sign() rejects fields out of range", async () => {
  for (const changes of [{ seq: 2 ** 31 }, { epoch: -1 }, { flags: 8 }, { lengthBytes: 1 }, { timestampMs: 0.5 }]) {
    assertEquals((await assertRejects(() => signed(changes), MillraceError)).code, "invalid_argument");
  }
});

test("HeaderSigner and CryptoVerifier reject damaged keys", async () => {
  assertEquals(
    (await assertRejects(() => HeaderSigner.create(new Uint8Array(9), INFOHASH), MillraceError)).code,
    "corrupt",
  );
  assertEquals(
    assertThrows(() => new CryptoVerifier(new Uint8Array(9), INFOHASH, { sha256, ed25519 }), MillraceError).code,
    "bad_transport_file",
  );
});

test("blockLength() cuts the last block short", () => {
  const table: [number, number[]][] = [[0, []], [1, [1]], [16384, [16384]], [16385, [16384, 1]], [65536, [
    16384,
    16384,
    16384,
    16384,
  ]]];
  for (const [length, blocks] of table) {
    assertEquals(Array.from({ length: blockCount(length) }, (_, i) => blockLength(length, i)), blocks);
  }
});

test("hashBlock() is the first 20 bytes of SHA-256", async () => {
  assertEquals(
    toHex(await hashBlock(new TextEncoder().encode("abc"), sha256)),
    "ba7816bf8f01cfea414140de5dae2223b00361a3",
  );
  assertNotEquals(toHex(await hashBlock(new Uint8Array(1), sha256)), toHex(await hashBlock(new Uint8Array(2), sha256)));
});

test("decodeHeader() survives random bytes", async () => {
  const random = seeded(11);
  const { header } = await signed();
  for (let round = 0; round < 3000; round++) {
    const bytes = header.bytes.slice(0, random() < 0.5 ? Math.floor(random() * 160) : header.bytes.length);
    for (let i = 0; i < 3; i++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    try {
      const read = decodeHeader(bytes, 65536);
      assert(read.lengthBytes <= 65536 && read.hashes.length === 20 * blockCount(read.lengthBytes));
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "protocol_violation", String(error));
    }
  }
});

import { test } from "node:test";
import { assertEquals } from "@std/assert";
import Library from "bittorrent-protocol";
import { blocksOf, makeMessages, messagesBytes, payloadBytes, rowsOf } from "../../src/wire/piece-messages.ts";
import { seeded } from "../support/random.ts";

/** The bytes that the library sends for the same blocks. */
function byLibrary(piece: number, offset: number, bytes: Uint8Array): Uint8Array {
  const wire = new Library();
  const parts: Uint8Array[] = [];
  (wire as unknown as { push(part: Uint8Array): boolean }).push = (part) => parts.push(part.slice()) > 0;
  for (let at = 0; at < bytes.length; at += 16384) wire.piece(piece, offset + at, bytes.subarray(at, at + 16384));
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

test("makeMessages() makes the bytes that the library sends, for whole blocks and a shorter last one", () => {
  const random = seeded(1);
  for (const length of [1, 16383, 16384, 16385, 3 * 16384, 3 * 16384 + 100]) {
    const bytes = Uint8Array.from({ length }, () => random() * 256);
    const memory = new Uint8Array(messagesBytes(length)).fill(0xee);
    blocksOf(memory, length).set(bytes);
    makeMessages(memory, 70_000, 2 ** 20);
    assertEquals(memory, byLibrary(70_000, 2 ** 20, bytes), `${length} bytes`);
  }
});

test("rowsOf() leaves out the messages of blocks that are not wanted", () => {
  const length = 3 * 16384 + 100;
  const messages = new Uint8Array(messagesBytes(length));
  makeMessages(messages, 1, 16384);
  const rows = (...unwanted: number[]) =>
    rowsOf(messages, 16384, (offset) => !unwanted.includes(offset / 16384)).map((row) => [
      (row.byteOffset - messages.byteOffset) / (16384 + 13),
      payloadBytes(row),
    ]);
  assertEquals(rows(), [[0, length]]);
  assertEquals(rows(1), [[1, length - 16384]]);
  assertEquals(rows(2), [[0, 16384], [2, 16384 + 100]]);
  assertEquals(rows(4), [[0, 3 * 16384]]);
  assertEquals(rows(1, 2, 3, 4), []);
});

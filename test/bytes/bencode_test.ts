import { test } from "node:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { decodeBencode, encodeBencode, integerWithin, isDictionary, scanBencode } from "../../src/bytes/bencode.ts";
import { concatBytes, equalBytes, fromHex, toHex } from "../../src/bytes/hex.ts";
import { forEachLimited } from "../../src/bytes/limited.ts";
import { MillraceError } from "../../src/errors.ts";
import { seededBelow } from "../support/random.ts";
import { cpuMs } from "../support/cpu-time.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

test("scanBencode() returns where the values of the outermost dictionary are", () => {
  const text = "d1:ai1e1:bl2:xyd1:ci2eee1:d0:1:ei-3ee";
  const { spans, end } = scanBencode(bytes(text + "tail"));
  assertEquals(end, text.length);
  assertEquals([...spans].map(([key, { start, end }]) => [key, text.slice(start, end)]), [
    ["a", "i1e"],
    ["b", "l2:xyd1:ci2eee"],
    ["d", "0:"],
    ["e", "i-3e"],
  ]);
});

test("scanBencode() starts at the given offset", () => {
  assertEquals(scanBencode(bytes("xxi5eyy"), {}, 2).end, 5);
});

test("decodeBencode() reads what encodeBencode() writes", () => {
  const value = { list: [1, -2, new Uint8Array([255])], nested: { empty: new Uint8Array() } };
  assertEquals(decodeBencode(encodeBencode(value)), value);
});

test("decodeBencode() throws the requested code when the input is malformed or over a limit", () => {
  const cases = [
    "",
    "x",
    "i e",
    "ie",
    "i-e",
    "i-0e",
    "i-00e",
    "5:abc",
    "d1:a",
    "d1:ae",
    "di1ei2ee",
    "l",
    "i1ei2e",
    "d1:ai1e1:ai2ee",
    "lll1:aeee",
  ];
  for (const text of cases) {
    const error = assertThrows(
      () => decodeBencode(bytes(text), { maxDepth: 2, errorCode: "tracker" }),
      MillraceError,
    );
    assertEquals(error.code, "tracker", text);
  }
  assertThrows(() => decodeBencode(bytes("li1ei2ei3ee"), { maxValues: 3 }), MillraceError, "values");
});

test("decodeBencode() and scanBencode() survive damage and nesting bombs of any kind", () => {
  const random = seededBelow(3);
  const whole = encodeBencode({
    announce: new Uint8Array(30).fill(97),
    info: { files: [{ length: 5, path: [new Uint8Array([98])] }], name: new Uint8Array(9), pieces: new Uint8Array(60) },
    list: [[1, [-2, { a: 3 }]], new Uint8Array(0)],
  });
  const alphabet = bytes("dlie0123456789:-");
  let accepted = 0;
  for (let round = 0; round < 20_000; round++) {
    const damaged = round % 3 === 0
      ? Uint8Array.from({ length: random(40) }, () => alphabet[random(alphabet.length)]!)
      : whole.slice(0, round % 3 === 1 ? whole.length : random(whole.length));
    if (round % 3 === 1) {
      for (let i = 0; i <= random(3); i++) damaged[random(damaged.length)] = alphabet[random(alphabet.length)]!;
    }
    try {
      // Both read accepted input alike, to the last byte.
      assertEquals(scanBencode(damaged).end <= damaged.length, true);
      const value = decodeBencode(damaged);
      assertEquals(decodeBencode(encodeBencode(value)), value);
      accepted++;
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
    }
  }
  assert(accepted > 100, String(accepted));
  const before = cpuMs();
  for (const opening of ["l", "d1:a", "d", "i", "-", "9", "l4:aaaa"]) {
    const bomb = bytes(opening.repeat(2_000_000 / opening.length));
    for (const read of [decodeBencode, scanBencode]) assertThrows(() => read(bomb), MillraceError);
  }
  assert(cpuMs() - before < 10_000);
});

test("isDictionary() and integerWithin() reject other values", () => {
  assert(isDictionary({}) && !isDictionary([]) && !isDictionary(null) && !isDictionary(new Uint8Array()));
  assertEquals([5, 11, 1.5, "5", 2 ** 60].map((value) => integerWithin(value, 0, 10)), [5, null, null, null, null]);
});

test("toHex() and fromHex() are inverse; fromHex() throws invalid_argument on anything else", () => {
  assertEquals(toHex(fromHex("00fFa5")), "00ffa5");
  for (const text of ["0", "0g", "0x"]) {
    assertEquals(assertThrows(() => fromHex(text), MillraceError).code, "invalid_argument");
  }
  assert(equalBytes(concatBytes([new Uint8Array([1]), new Uint8Array([2, 3])]), new Uint8Array([1, 2, 3])));
});

test("forEachLimited() runs a few at once and rejects with the first failure", async () => {
  let active = 0;
  let most = 0;
  const done: number[] = [];
  await forEachLimited([1, 2, 3, 4, 5], 2, async (item) => {
    most = Math.max(most, ++active);
    await Promise.resolve();
    active--;
    done.push(item);
  });
  assertEquals([most, done.sort()], [2, [1, 2, 3, 4, 5]]);
  await assertRejects(() => forEachLimited([1, 2], 1, () => Promise.reject(new Error("first"))), Error, "first");
});

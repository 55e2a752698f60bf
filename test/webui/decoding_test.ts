import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { Decoding } from "../../src/webui/decoding.ts";

/** One that has played from `fromS` to `toS`. */
function played(fromS: number, toS: number): Decoding {
  const decoding = new Decoding();
  if (fromS > 0) decoding.seek(fromS);
  for (let at = fromS; at <= toS; at += 0.25) decoding.show(at);
  return decoding;
}

test("Decoding.fail() begins at the last place, then where that began, then at the beginning, and gives up", () => {
  const decoding = played(20, 30);
  decoding.seek(50);
  decoding.show(50);
  assertEquals(decoding.fail(), { fromS: 30, untilS: 30, isSearch: true });
  assertEquals(decoding.fail(), { fromS: 20, untilS: 30, isSearch: true });
  assertEquals(decoding.fail(), { fromS: 0, untilS: 30, isSearch: true });
  assertEquals(decoding.fail(), null);
});

test("Decoding.fail() gives up at once when the beginning of the film fails", () => {
  const decoding = new Decoding();
  decoding.show(0.4);
  assertEquals(decoding.fail(), null);
});

test("Decoding.fail() goes to the beginning when a film that was left off fails where it begins", () => {
  const decoding = new Decoding();
  decoding.seek(30);
  assertEquals(decoding.fail(), { fromS: 0, untilS: 0, isSearch: true });
});

test("Decoding.fail() tries a place twice that failed in the middle of playing, and plays nothing fast", () => {
  const decoding = played(0, 30);
  assertEquals(decoding.fail(), { fromS: 30, untilS: 30, isSearch: false });
  assertEquals(decoding.fail(), { fromS: 30, untilS: 30, isSearch: false });
  assertEquals(decoding.fail(), null);
});

test("Decoding.fail() begins again with its places once something was played", () => {
  const decoding = played(0, 30);
  decoding.seek(50);
  decoding.fail();
  decoding.fail();
  for (let at = 0; at <= 40; at += 0.25) decoding.show(at);
  decoding.seek(10);
  assertEquals(decoding.fail(), { fromS: 40, untilS: 40, isSearch: true });
});

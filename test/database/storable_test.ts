import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { storable } from "../../src/database/storable.ts";
import { seededBelow } from "../support/random.ts";

const TV = "\u{1f4fa}";
const CUT = [TV[0]!, TV[1]!, `a${TV[0]}`, `${TV[1]}b`, TV[0]! + TV[0]!, `${TV[1]}${TV[0]}`, `${TV}${TV[0]}${TV}`];

test("storable() puts U+FFFD in place of halves of letters, in texts, in JSON, and in JSON inside JSON", () => {
  for (const text of CUT) {
    const whole = text.toWellFormed();
    const one = storable(JSON.stringify([text])) as string;
    const two = storable(JSON.stringify([JSON.stringify([text])])) as string;
    assertEquals(storable(text), whole);
    assertEquals((JSON.parse(one) as string[])[0]!.toWellFormed(), whole);
    assertEquals((JSON.parse((JSON.parse(two) as string[])[0]!) as string[])[0], whole);
  }
});

test("storable() leaves everything else as it is, including escaped pairs of any depth", () => {
  const texts = ["", TV, "C:\\udp", "\\u0041", '"\\ud83d\\udcfa"', '\\"\\\\ud83d\\\\udcfa\\"', "ud83d", "\0"];
  for (const value of [...texts, 5, null, new Uint8Array([0xff])]) assertEquals(storable(value), value);
  assertEquals(storable("\\ud83d \\uDCFA"), "\\ufffd \\ufffd");
});

test("storable() leaves any JSON readable, and no half of a letter in it", () => {
  const below = seededBelow(11);
  const pieces = [TV[0]!, TV[1]!, TV, "\\", "u", "d83d", "\\ud83d", "\\udcfa", '"', "a"];
  for (let round = 0; round < 2000; round++) {
    const text = Array.from({ length: 1 + below(6) }, () => pieces[below(pieces.length)]!).join("");
    const stored = storable(JSON.stringify([JSON.stringify([text])])) as string;
    const inner = (JSON.parse(stored) as string[])[0]!;
    const read = (JSON.parse(inner) as string[])[0]!;
    assertEquals([inner.isWellFormed(), read.isWellFormed()], [true, true], text);
  }
});

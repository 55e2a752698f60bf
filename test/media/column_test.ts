import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { ColumnBuilder, columnOf } from "../../src/media/model/column.ts";
import { seeded } from "./support/files.ts";

test("Column.at() returns every number, for any sequence of numbers", () => {
  const random = seeded(3);
  const count = 5000;
  const kinds: Readonly<Record<string, (i: number) => number>> = {
    "all equal": () => 7,
    "on a line": (i) => 90_000 + i * 3600,
    "on a line that falls on no whole numbers": (i) => Math.round(i * 90_000 * 1001 / 24_000),
    "on a line and once beside it": (i) => i * 1920 + (i === 1500 ? 1 : 0),
    "small": () => Math.floor(random() * 200),
    "of two bytes": () => Math.floor(random() * 60_000),
    "of four bytes, also below zero": () => Math.floor((random() - 0.5) * 4e9),
    "large": () => Math.floor(random() * 2 ** 52),
    "falling": (i) => 5 - i * 12_345,
  };
  for (const [what, valueAt] of Object.entries(kinds)) {
    const values = Array.from({ length: count }, (_, i) => valueAt(i));
    const column = columnOf(values);
    assertEquals(column.length, count, what);
    assertEquals([...column], values, what);
    assertEquals([...column.plus(-11)], values.map((value) => value - 11), what);
  }
});

test("columnOf() is empty, or ends in the middle of a block", () => {
  for (const count of [0, 1, 2, 1023, 1024, 1025, 2048]) {
    const values = Array.from({ length: count }, (_, i) => i * i);
    assertEquals([...columnOf(values)], values);
  }
});

test("ColumnBuilder.length counts what was pushed", () => {
  const builder = new ColumnBuilder();
  for (let i = 0; i < 3000; i++) builder.push(i);
  assertEquals(builder.length, 3000);
  assertEquals(builder.finish().length, 3000);
});

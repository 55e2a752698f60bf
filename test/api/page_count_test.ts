import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { PageCount } from "../../src/http/api/page-count.ts";

test("PageCount.indexOf() counts from where a search begins", () => {
  const count = new PageCount();
  const pages = (search: string, ...numbers: number[]) => numbers.map((number) => count.indexOf(search, number, 0));
  assertEquals(pages("from 0", 0, 1, 2), [0, 1, 2]);
  assertEquals(pages("from 1", 1, 2, 3), [0, 1, 2]);
  assertEquals(pages("in between", 5, 6, 1), [5, 6, 1]);
  assertEquals(pages("from 1", 1, 0, 1), [0, 0, 1], "a page 0 shows where it counts from");
});

test("PageCount.indexOf() forgets a search after ten minutes, and the one unused longest when there are many", () => {
  const count = new PageCount();
  assertEquals(count.indexOf("old", 0, 0), 0);
  assertEquals(count.indexOf("old", 1, 599_999), 1);
  assertEquals(count.indexOf("old", 1, 1_300_000), 0);
  assertEquals(count.indexOf("old", 0, 1_300_000), 0);
  for (let i = 0; i < 256; i++) count.indexOf(`other ${i}`, 0, 1_300_000);
  assertEquals(count.indexOf("old", 1, 1_300_000), 0);
});

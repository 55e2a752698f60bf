import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { selectStream } from "../../src/content/selector.ts";
import { MillraceError } from "../../src/errors.ts";

const A = "a".repeat(40), B = "B".repeat(40);

test("selectStream() takes the first selector of the documented order", () => {
  const all = { content_id: A, infohash: B, url: "http://x/t", magnet: "magnet:?xt=urn:btih:" + A };
  assertEquals(selectStream(all), { kind: "content_id", contentId: A });
  assertEquals(selectStream({ ...all, content_id: undefined }), { kind: "infohash", infohash: "b".repeat(40) });
  assertEquals(selectStream({ url: all.url, magnet: all.magnet }), { kind: "url", url: all.url });
  assertEquals(selectStream({ magnet: all.magnet }), { kind: "magnet", magnet: all.magnet });
});

test("selectStream() lets the first present win even when only a later one is valid", () => {
  assertThrows(() => selectStream({ content_id: "nonsense", infohash: A }), MillraceError, "content_id");
});

test("selectStream() throws an error that says so when no selector is given", () => {
  assertThrows(() => selectStream({}), MillraceError, "missing stream selector");
  assertThrows(() => selectStream({ content_id: "" }), MillraceError, "missing stream selector");
});

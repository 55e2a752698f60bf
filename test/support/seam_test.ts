import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { eTag, ifNoneMatch } from "@std/http";

test("eTag() gives equal tags for equal bytes and ifNoneMatch() compares them weakly", async () => {
  const tag = await eTag("abc");
  assertEquals(tag, await eTag(new TextEncoder().encode("abc")));
  assertEquals(ifNoneMatch(`"x", W/${tag}`, tag), false);
  assertEquals(ifNoneMatch(`"x"`, tag), true);
  await assertRejects(() => Promise.reject(new TypeError("boom")), TypeError, "boom");
});

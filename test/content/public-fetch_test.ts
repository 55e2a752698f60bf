import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { createPublicFetch } from "../../src/content/public-fetch.ts";
import { MillraceError } from "../../src/errors.ts";
import { fakeWeb } from "../support/fake-web.ts";

const moved = (location: string) => () => new Response(null, { status: 302, headers: { location } });

test("createPublicFetch() answers as fetch does, with the fields that were sent", async () => {
  const { ports, asked } = fakeWeb({
    "http://pub.example/seed": () => new Response("part", { status: 206, headers: { "content-range": "bytes 4-7/9" } }),
    "http://pub.example/gone": () => new Response("gone", { status: 404 }),
  });
  const get = createPublicFetch(ports);
  const part = await get("http://pub.example/seed", { headers: { range: "bytes=4-7" } });
  assertEquals([part.status, part.headers.get("content-range"), await part.text()], [206, "bytes 4-7/9", "part"]);
  assertEquals(asked[0]!.headers.get("range"), "bytes=4-7");
  assertEquals((await get(new URL("http://pub.example/gone"))).status, 404);
});

test("createPublicFetch() reaches no private address by name, number or redirect", async () => {
  const { ports, asked } = fakeWeb({ "http://pub.example/": moved("http://10.0.0.1/x") }, {
    "inside.example": [["192.168.1.1"]],
    // The second answer of a name that turns.
    "both.example": [["8.8.8.8", "127.0.0.1"]],
  });
  const get = createPublicFetch(ports);
  for (
    const url of [
      "http://127.0.0.1/",
      "http://[::1]:8080/",
      "http://inside.example/",
      "http://both.example/",
      "http://pub.example/",
    ]
  ) {
    const error = await assertRejects(() => get(url), MillraceError);
    assertEquals(error.code, "denied", url);
  }
  assertEquals(asked.map(({ url }) => url.host), ["pub.example"]);
});

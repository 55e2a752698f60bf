import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { FREED, lenderOf } from "../../src/bytes/lent-chunks.ts";
import { jsonStream } from "../../src/http/api/json-stream.ts";

async function* pages<Part>(texts: readonly Part[], failAt = -1, onEnd = () => {}): AsyncGenerator<Part> {
  try {
    for (const [i, text] of texts.entries()) {
      if (i === failAt) throw new Error("the database is gone");
      await Promise.resolve();
      yield text;
    }
    if (failAt === texts.length) throw new Error("the database is gone");
  } finally {
    onEnd();
  }
}

const read = async (body: ReadableStream<Uint8Array>) => JSON.parse(await new Response(body).text());

test("jsonStream() puts pages, text or bytes, between its texts", async () => {
  const encoder = new TextEncoder();
  for (const texts of [[], ["1"], ["1", ",2", ',"é😀"']]) {
    for (const parts of [texts, texts.map((text) => encoder.encode(text))]) {
      const body = await jsonStream('{"data":[', pages<string | Uint8Array<ArrayBuffer>>(parts), "]}").wrapped(
        '{"result":',
        ',"error":null}',
      );
      assertEquals(await read(body), { result: { data: JSON.parse(`[${texts.join("")}]`) }, error: null });
    }
  }
});

test("a JsonStream rejects when it cannot begin, and breaks off its body when it fails later", async () => {
  await assertRejects(() => jsonStream("[", pages(["1"], 0), "]").wrapped("", ""), Error, "gone");
  await assertRejects(() => jsonStream("[", pages([], 0), "]").wrapped("", ""), Error, "gone");
  const body = await jsonStream("[", pages(["1", ",2"], 2), "]").wrapped("", "");
  await assertRejects(() => read(body), Error);
});

test("a JsonStream makes no page ahead of its reader and ends its source when the reader leaves", async () => {
  let made = 0;
  let ended = 0;
  async function* endless(): AsyncGenerator<string> {
    try {
      for (;; made++) yield ",1";
    } finally {
      ended++;
    }
  }
  const body = await jsonStream("[1", endless(), "]").wrapped("", "");
  const reader = body.getReader();
  for (let i = 0; i < 5; i++) await reader.read();
  await reader.cancel();
  assertEquals([made < 10, ended], [true, 1]);
});

test("JsonStream.wrapped() lets its reader release chunks that it has sent", async () => {
  assertEquals(lenderOf(await jsonStream("[", pages(["1"]), "]").wrapped("", "")), FREED);
});

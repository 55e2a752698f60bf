import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { BodyHead } from "../../../src/content/analysis/body-head.ts";

/** A body of `parts`, which breaks off after them or ends; `cancelled` counts. */
function body(parts: readonly string[], breaks = false) {
  const state = { cancelled: 0, pulled: 0 };
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const part = parts[state.pulled++];
      if (part !== undefined) controller.enqueue(new TextEncoder().encode(part));
      else if (breaks) controller.error(new Error("broken"));
      else controller.close();
    },
    cancel: () => void state.cancelled++,
  }, { highWaterMark: 0 });
  return { stream, state };
}
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

test("BodyHead.read() reads no more than requested, and stream() returns everything", async () => {
  const { stream, state } = body(["ab", "cd", "ef"]);
  const head = new BodyHead(stream);
  assertEquals(text(await head.read(3)), "abcd");
  assertEquals([text(await head.read(2)), state.pulled, head.isWhole], ["abcd", 2, false]);
  assertEquals(await new Response(head.stream()).text(), "abcdef");
});

test("BodyHead.read() knows the end", async () => {
  const head = new BodyHead(body(["ab"]).stream);
  assertEquals([text(await head.read(9)), head.isWhole], ["ab", true]);
  assertEquals(await new Response(head.stream()).text(), "ab");
  const empty = new BodyHead(body([]).stream);
  assertEquals([text(await empty.read(1)), empty.isWhole], ["", true]);
});

test("BodyHead: what breaks off shows its beginning, and is no whole", async () => {
  const head = new BodyHead(body(["ab"], true).stream);
  assertEquals([text(await head.read(9)), head.isWhole], ["ab", false]);
  await assertRejects(() => new Response(head.stream()).text());
  await assertRejects(() => new BodyHead(body([], true).stream).read(1), Error, "broken");
});

test("BodyHead.cancel() lets the body go, before and after stream()", async () => {
  const one = body(["ab", "cd"]);
  const head = new BodyHead(one.stream);
  await head.read(1);
  await head.cancel();
  const two = body(["ab", "cd"]);
  await new BodyHead(two.stream).stream().cancel();
  assertEquals([one.state.cancelled, two.state.cancelled], [1, 1]);
});

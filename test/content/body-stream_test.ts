import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { bounded } from "../../src/content/body-stream.ts";
import { MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("bounded() gives up on a body that never pauses but brings too little", async () => {
  const paced = (bytes: number, everyMs: number, chunks: number) => {
    const clock = new FakeClock();
    let left = chunks;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        clock.advance(everyMs);
        if (left-- > 0) controller.enqueue(new Uint8Array(bytes));
        else controller.close();
      },
    }, { highWaterMark: 0 });
    const limits = { maxBytes: null, idleMs: 20_000, minBytesPerS: 512 };
    return new Response(bounded(body, limits, clock, () => {})).bytes();
  };
  const error = await assertRejects(() => paced(4, 1000, 1000), MillraceError);
  assertEquals([error.code, error.message], ["timeout", "only 240 bytes were sent in 60 s"]);
  assertEquals((await paced(4, 1000, 50)).length, 200, "over before its pace counts");
  assertEquals((await paced(600, 1000, 200)).length, 120_000);
});

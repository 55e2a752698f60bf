import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { pipeEvents } from "../../src/inputs/pipe.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { CLIP } from "./support.ts";

/** So little that nothing of it has to wait for its time. */
const START = CLIP.subarray(0, 100 * 188);

test("standard input that falls silent is reported lost once, however long it lasts, and continues", async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  let send = (_bytes: Uint8Array) => {};
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => void (send = (bytes) => controller.enqueue(bytes)),
  });
  const events = pipeEvents(stream, clock, stop.signal);
  send(START);
  const heard: string[] = [];
  const reading = (async () => {
    for await (const event of events) heard.push(event.kind === "data" ? "data" : event.reason);
  })().catch((error) => heard.push(`${error.name}`));
  await until("the first data", () => heard.length > 0);
  await settle();
  assert(heard.every((one) => one === "data"), heard.join());
  heard.length = 0;
  await until("the wait", () => clock.pendingTimers === 1);
  await clock.advanceAsync(600_000);
  await until("the loss", () => heard.length > 0);
  await clock.advanceAsync(600_000);
  assertEquals(heard, ["nothing came for 5 s"]);
  assertEquals(clock.pendingTimers, 0);
  send(START);
  await until("more data", () => heard.length > 1);
  await settle();
  assert(heard.slice(1).every((one) => one === "data"), heard.join());
  await until("the wait", () => clock.pendingTimers === 1);
  await clock.advanceAsync(5000);
  await until("the loss", () => heard.at(-1) !== "data");
  assertEquals(heard.at(-1), "nothing came for 5 s");
  stop.abort();
  await reading;
  assertEquals(heard.at(-1), "MillraceError");
});

import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { SharedTask } from "../../src/playback/shared-task.ts";

test("SharedTask.wait() returns one result to all callers and runs the work once", async () => {
  let runs = 0;
  const task = new SharedTask(() => Promise.resolve(++runs));
  const signal = new AbortController().signal;
  assertEquals(await Promise.all([task.wait(signal), task.wait(signal)]), [1, 1]);
  assertEquals(await task.wait(signal), 1);
});

test("SharedTask.wait() does not disturb others when one caller gives up, and stops the work with the last", async () => {
  let own: AbortSignal | undefined;
  const task = new SharedTask<number>((signal) => {
    own = signal;
    return new Promise(() => {});
  });
  const first = new AbortController(), second = new AbortController();
  const one = task.wait(first.signal), two = task.wait(second.signal);
  first.abort();
  await assertRejects(() => one, MillraceError);
  assertEquals([own?.aborted, task.abandoned], [false, false]);
  second.abort();
  await assertRejects(() => two, MillraceError);
  assertEquals([own?.aborted, task.abandoned], [true, true]);
});

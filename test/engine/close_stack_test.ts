import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { CloseStack } from "../../src/engine/close-stack.ts";
import { hasCode } from "../../src/errors.ts";
import type { Logger } from "../../src/ports.ts";

function recorder() {
  const lines: string[] = [];
  const log: Logger = { log: (level, message) => void lines.push(`${level}: ${message}`), child: () => log };
  return { lines, log };
}

test("CloseStack.close() closes in reverse order, and things pushed together at the same time", async () => {
  const events: string[] = [];
  const stack = new CloseStack(recorder().log);
  const part = (name: string) => async () => {
    events.push(`${name} closes`);
    await Promise.resolve();
    events.push(`${name} is closed`);
  };
  stack.push(part("first"));
  stack.push(part("second"), part("third"));
  await stack.close();
  assertEquals(events, [
    "second closes",
    "third closes",
    "second is closed",
    "third is closed",
    "first closes",
    "first is closed",
  ]);
});

test("CloseStack.close() closes the rest, and logs it, when a part throws or rejects", async () => {
  const { lines, log } = recorder();
  const stack = new CloseStack(log);
  let closed = 0;
  stack.push(() => void closed++);
  stack.push(() => Promise.reject(new Error("stuck")), () => void closed++);
  stack.push(() => {
    throw new Error("stuck too");
  });
  await stack.close();
  assertEquals(closed, 2);
  assertEquals(lines, ["warn: a part of the engine did not close", "warn: a part of the engine did not close"]);
});

test("CloseStack.close() closes once when it is called twice, and aborts `signal` first", async () => {
  const stack = new CloseStack(recorder().log);
  let closed = 0;
  stack.push(() => {
    assert(stack.signal.aborted);
    assert(hasCode(stack.signal.reason, "closed"));
    closed++;
  });
  await Promise.all([stack.close(), stack.close()]);
  assertEquals(closed, 1);
});

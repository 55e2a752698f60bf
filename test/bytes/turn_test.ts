import { test } from "node:test";
import { assertEquals, assertLessOrEqual, assertRejects } from "@std/assert";
import { nextTurn, turnWhenDue } from "../../src/bytes/turn.ts";
import { MillraceError } from "../../src/errors.ts";

const busy = (ms: number) => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

test("nextTurn() lets timers run between pieces of work, one piece after another when many wait", async () => {
  const order: string[] = [];
  let isOver = false;
  const tick = () => {
    order.push("timer");
    if (!isOver) setTimeout(tick, 0);
  };
  const work = async () => {
    for (let i = 0; i < 5; i++) {
      await nextTurn();
      order.push("work");
      busy(20);
    }
  };
  busy(20);
  setTimeout(tick, 0);
  await Promise.all(Array.from({ length: 10 }, work));
  isOver = true;
  // The runtime may run two pieces between two timers of another task; ten would be all at once.
  const runs = order.join(" ").split("timer").map((run) => run.trim().split(" ").filter((word) => word !== "").length);
  assertLessOrEqual(Math.max(...runs), 3);
  assertEquals(order.filter((what) => what === "work").length, 50);
});

test("turnWhenDue() rejects with the signal's reason, even if it fired during the turn", async () => {
  const before = new AbortController();
  before.abort(new MillraceError("closed", "no longer"));
  assertEquals((await assertRejects(() => turnWhenDue(before.signal), MillraceError)).code, "closed");
  const during = new AbortController();
  setTimeout(() => during.abort(), 0);
  busy(20);
  const error = await assertRejects(async () => {
    for (;;) {
      busy(1);
      await turnWhenDue(during.signal);
    }
  }, MillraceError);
  assertEquals(error.code, "aborted");
});

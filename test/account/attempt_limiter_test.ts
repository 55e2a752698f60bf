import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { AttemptLimiter } from "../../src/account/attempt-limiter.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("AttemptLimiter allows a burst, then one attempt per interval, for each key", () => {
  const clock = new FakeClock();
  const limiter = new AttemptLimiter(clock, { burst: 3, refillMs: 1000 });
  for (let i = 0; i < 3; i++) {
    assertEquals(limiter.waitMs("a"), 0, String(i));
    limiter.take("a");
  }
  assertEquals([limiter.waitMs("a"), limiter.waitMs("b")], [1000, 0]);
  clock.advance(999);
  assertEquals(limiter.waitMs("a"), 1);
  clock.advance(1);
  assertEquals(limiter.waitMs("a"), 0);
  limiter.take("a");
  assertEquals(limiter.waitMs("a"), 1000);
  clock.advance(60_000);
  for (let i = 0; i < 3; i++) limiter.take("a");
  assertEquals(limiter.waitMs("a"), 1000, "a rest saves up at most a burst");
});

test("AttemptLimiter.giveBack() takes back one attempt but not earlier failures", () => {
  const limiter = new AttemptLimiter(new FakeClock(), { burst: 3, refillMs: 1000 });
  for (let i = 0; i < 3; i++) limiter.take("a");
  limiter.giveBack("a");
  limiter.take("a");
  assertEquals(limiter.waitMs("a"), 1000);
  limiter.giveBack("never seen");
  assertEquals(limiter.size, 1);
});

test("AttemptLimiter keeps a bounded number of keys, and forgets the longest unused first", () => {
  const limiter = new AttemptLimiter(new FakeClock(), { burst: 1, refillMs: 1000 }, 100);
  limiter.take("victim");
  for (let i = 0; i < 99; i++) limiter.take(`k${i}`);
  limiter.take("victim");
  for (let i = 99; i < 198; i++) limiter.take(`k${i}`);
  assert(limiter.waitMs("victim") > 0);
  assertEquals([limiter.size, limiter.waitMs("k0")], [100, 0]);
});

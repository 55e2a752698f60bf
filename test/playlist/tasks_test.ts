import { test } from "node:test";
import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { TaskList, type TaskProgress } from "../../src/playlist/tasks.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** Work that runs until the test ends it. */
function held(): {
  work: (progress: TaskProgress) => Promise<void>;
  end: (error?: unknown) => void;
  progress: () => TaskProgress;
} {
  let progress: TaskProgress | null = null;
  let end: (error?: unknown) => void = () => {};
  const over = new Promise<void>((resolve, reject) => end = (error) => error === undefined ? resolve() : reject(error));
  over.catch(() => {});
  return {
    work: async (given) => {
      progress = given;
      await Promise.race([
        over,
        new Promise<void>((_, reject) => given.signal.addEventListener("abort", () => reject(given.signal.reason))),
      ]);
    },
    end: (error) => end(error),
    progress: () => progress!,
  };
}

const faults: string[] = [];
const newList = () => new TaskList(new FakeClock(), (kind, error) => void faults.push(`${kind}: ${error}`));

test("a TaskList runs two tasks at once, in order, and reports the progress of each", async () => {
  const list = newList();
  const work = [held(), held(), held()];
  const ids = work.map(({ work }) => list.start("import", work));
  assertEquals(ids.map((id) => list.status(id).state), ["running", "running", "queued"]);
  const progress = work[0]!.progress();
  progress.total = 9;
  progress.done = 3;
  for (let line = 1; line <= 150; line++) progress.report({ line, message: "bad" });
  const status = list.status(ids[0]!);
  assertEquals([status.done, status.total, status.errors.length, status.errorCount], [3, 9, 100, 150]);
  work[0]!.end();
  await list.ended(ids[0]!);
  assertEquals(ids.map((id) => list.status(id).state), ["done", "running", "running"]);
  work[1]!.end(new MillraceError("too_large", "the list is too large"));
  work[2]!.end(new TypeError("secret path"));
  await Promise.all(ids.map((id) => list.ended(id)));
  assertEquals(ids.map((id) => list.status(id).failure), [
    null,
    { code: "too_large", message: "the list is too large" },
    { code: "internal", message: "internal error" },
  ]);
  assertEquals(faults.splice(0), ["import: TypeError: secret path"]);
});

test("a TaskList runs work on bytes that are here while tasks elsewhere wait for servers", async () => {
  const list = newList();
  const slow = Array.from({ length: 10 }, held);
  const waiting = slow.map(({ work }) => list.start("update_all", work, undefined, "elsewhere"));
  assertEquals(waiting.map((id) => list.status(id).state).filter((state) => state === "running").length, 6);
  const here = held();
  const id = list.start("import", here.work);
  assertEquals(list.status(id).state, "running");
  here.end();
  await list.ended(id);
  for (const { end } of slow) end();
  await Promise.all(waiting.map((id) => list.ended(id)));
});

test("TaskList.cancel() stops running and queued tasks and leaves ended ones as they are", async () => {
  const list = newList();
  const work = [held(), held(), held()];
  const [one, two, three] = work.map(({ work }) => list.start("import", work));
  list.cancel(three!);
  list.cancel(one!);
  await Promise.all([list.ended(one!), list.ended(three!)]);
  assertEquals([one, two, three].map((id) => list.status(id!).state), ["cancelled", "running", "cancelled"]);
  work[1]!.end();
  await list.ended(two!);
  list.cancel(two!);
  assertEquals(list.status(two!).state, "done");
  assertThrows(() => list.cancel(5), MillraceError);
});

test("a TaskList refuses more than it can hold, forgets old tasks, and ends all at its close", async () => {
  const list = newList();
  const work = Array.from({ length: 34 }, held);
  const ids = work.map(({ work }) => list.start("import", work));
  assertMatch(assertThrows(() => list.start("import", held().work), MillraceError).message, /try later/);
  await list.close();
  assertEquals(ids.map((id) => list.status(id).state), ids.map(() => "cancelled"));
  assertThrows(() => list.start("import", held().work), MillraceError);
  const many = newList();
  const first = many.start("import", () => Promise.resolve());
  for (let i = 0; i < 250; i++) await many.ended(many.start("import", () => Promise.resolve()));
  assertThrows(() => many.status(first), MillraceError);
});

test("TaskList.start() tidies up before the task has ended, whether or not its turn ever came", async () => {
  const list = newList();
  const work = [held(), held(), held()];
  const tidied: number[] = [];
  const ids = work.map(({ work }, i) =>
    list.start("import", work, async () => {
      await Promise.resolve();
      tidied.push(i);
      if (i === 1) throw new Error("stuck");
    })
  );
  list.cancel(ids[2]!);
  assertEquals(list.status(ids[2]!).state, "cancelled");
  await list.ended(ids[2]!);
  assertEquals(tidied, [2]);
  work[0]!.end();
  await list.ended(ids[0]!);
  assertEquals(tidied, [2, 0]);
  await list.close();
  assertEquals(tidied, [2, 0, 1]);
  assertEquals(faults.splice(0), ["import: Error: stuck"]);
});

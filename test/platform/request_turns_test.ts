import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { RequestTurns } from "../../platform/shared/request-turns.ts";

/** Requests of a server, and the machines whose requests have begun, in their order. */
function lab() {
  const turns = new RequestTurns();
  const begun: string[] = [];
  const arrive = (machine: string, count: number) => {
    for (let i = 0; i < count; i++) turns.enter(machine, () => begun.push(machine));
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { arrive, begun, turn };
}

test("RequestTurns.enter() begins a lone request at once", async () => {
  const { arrive, begun, turn } = lab();
  for (let round = 1; round <= 20; round++) {
    arrive("a", 1);
    assertEquals(begun.length, round);
    await turn();
  }
});

test("RequestTurns begins few requests in a turn, and those of each machine in their turn", async () => {
  const { arrive, begun, turn } = lab();
  arrive("a", 100);
  assertEquals(begun.length, 8);
  arrive("b", 1);
  arrive("c", 2);
  await turn();
  assertEquals(begun.slice(8).sort(), ["a", "a", "a", "a", "a", "b", "c", "c"]);
  arrive("d", 1);
  for (let turns = 0; turns < 100 && begun.length < 104; turns++) await turn();
  assertEquals([begun.length, begun.indexOf("d") < 24], [104, true]);
  await turn();
  arrive("e", 1);
  assertEquals(begun.at(-1), "e", "nobody waits any more");
});

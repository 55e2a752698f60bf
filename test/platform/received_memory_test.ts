import { test } from "node:test";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { ReceivedMemory } from "../../platform/bun/received-memory.ts";

test("ReceivedMemory collects once per 8 MiB, never while a read is being handled", () => {
  let collections = 0;
  const steps: (() => void)[] = [];
  const memory = new ReceivedMemory(() => collections++, (step) => steps.push(step));
  for (let i = 0; i < 15; i++) memory.add(512 * 1024);
  assertEquals(steps.length, 0);
  memory.add(512 * 1024);
  assertEquals([steps.length, collections], [1, 0]);
  steps.shift()!();
  assertEquals(collections, 1);
  memory.add(8 * 1024 * 1024 - 1);
  assertEquals(steps.length, 0);
  memory.add(1);
  assertEquals(steps.length, 1);
});

test("ReceivedMemory finds the collection of young objects on Bun, and nothing elsewhere", () => {
  const found = process.getBuiltinModule("bun:jsc") as { edenGC?: unknown } | undefined;
  assertEquals(typeof found?.edenGC, "Bun" in globalThis ? "function" : "undefined");
});

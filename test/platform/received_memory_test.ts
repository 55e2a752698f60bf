import { test } from "node:test";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { OldMemory } from "../../platform/bun/old-memory.ts";
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

test("OldMemory collects everything whenever memory outside the heap has grown by 16 MiB since it was least", () => {
  const MIB = 1024 * 1024;
  let usedMib = 100;
  let collections = 0;
  const collect = () => {
    collections++;
    usedMib = 60;
  };
  const memory = new OldMemory(collect, () => usedMib * MIB);
  const look = (mib: number) => {
    usedMib = mib;
    memory.look();
    return collections;
  };
  assertEquals([look(100), look(115), look(90), look(105), look(106)], [0, 0, 0, 0, 1]);
  assertEquals([look(75), look(76)], [1, 2]);
});

test("OldMemory finds the collection of all objects on Bun, and nothing elsewhere", () => {
  const found = process.getBuiltinModule("bun:jsc") as { fullGC?: unknown } | undefined;
  assertEquals(typeof found?.fullGC, "Bun" in globalThis ? "function" : "undefined");
});

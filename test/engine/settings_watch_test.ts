import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { Settings, SettingsStore } from "../../src/account/settings.ts";
import { SettingsWatch } from "../../src/engine/settings-watch.ts";
import { MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A store whose reads end when the test says so. */
function watched() {
  const clock = new FakeClock();
  const stored: Partial<Settings> = {};
  const reads: { resolve(value: Partial<Settings>): void; reject(error: unknown): void }[] = [];
  const lines: string[] = [];
  const applied: string[] = [];
  const settings: SettingsStore = {
    load: () => new Promise((resolve, reject) => void reads.push({ resolve, reject })),
    set: (name, value) => {
      stored[name] = value;
      return Promise.resolve();
    },
  };
  const policy = { setAllowed: (kind: string, value: boolean) => void applied.push(`${kind} ${value}`) };
  const log = { log: (level: string, line: string) => void lines.push(`${level} ${line}`) };
  const watch = new SettingsWatch({ settings, policy, clock, log });
  /** Lets the look that is due begin, and ends it. */
  const look = async (end: (read: (typeof reads)[number]) => void) => {
    clock.advance(1000);
    end(reads.shift()!);
    await settled();
  };
  return { watch, clock, stored, reads, lines, applied, look };
}

const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

test("SettingsWatch applies what another engine stored at its next look, a second later", async () => {
  const { watch, stored, applied, look } = watched();
  stored.allow_internet = true;
  await look((read) => read.resolve({ ...stored }));
  assertEquals(applied, ["internet true"]);
  stored.allow_internet = false;
  await look((read) => read.resolve({ ...stored }));
  assertEquals(applied, ["internet true", "internet false"]);
  await watch.close();
});

test("SettingsWatch does not undo a change of its own engine when a look began before it", async () => {
  const { watch, clock, stored, reads, applied } = watched();
  clock.advance(1000);
  const old = { allow_internet: true };
  await watch.settings.set("allow_internet", false);
  assertEquals(stored.allow_internet, false);
  reads.shift()!.resolve(old);
  await settled();
  assertEquals(applied, []);
  await watch.close();
});

test("SettingsWatch keeps the last known settings while the server is away, and says so once", async () => {
  const { watch, applied, lines, look } = watched();
  const away = new MillraceError("connection_failed", "the database server cannot be reached");
  await look((read) => read.reject(away));
  await look((read) => read.reject(away));
  assertEquals([applied, lines.length], [[], 1]);
  await look((read) => read.resolve({ allow_intranet: false }));
  assertEquals(applied, ["intranet false"]);
  assertEquals(lines[1], "info the database server responds again");
  await watch.close();
});

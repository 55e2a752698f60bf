import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { assert } from "@std/assert";
import { loadPorts, runtimeName } from "../../platform/detect.ts";
import { createStore } from "../../src/database/store.ts";
import { temporaryDirectory } from "../support/engine.ts";

/** Number of kills; `MILLRACE_TEST_KILLS` sets more. */
const ROUNDS = Number(process.env["MILLRACE_TEST_KILLS"] ?? 3);
/** Least number of transactions that a killed writer has acknowledged. */
const ACKNOWLEDGED = 40;

const script = fileURLToPath(new URL("./writer.ts", import.meta.url));
const flags = runtimeName() === "deno" ? ["run", "-A", "--no-check", "-q"] : [];

/** Runs the writer and kills it in the middle of its work; returns what it reported as stored. */
function killedWriter(path: string, round: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...flags, script, path, String(round)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let told = "";
    let trouble = "";
    child.stderr.on("data", (chunk) => trouble += chunk);
    child.stdout.on("data", (chunk) => {
      told += chunk;
      if (told.split("\n").length > ACKNOWLEDGED + 7 * round) child.kill("SIGKILL");
    });
    child.once("close", () => {
      // The text after the last line break may be half a line.
      const lines = told.split("\n").slice(0, -1);
      if (lines.length >= ACKNOWLEDGED) resolve(lines);
      else reject(new Error(`the writer ended by itself: ${trouble}`));
    });
  });
}

test("a killed process loses no acknowledged transaction and leaves none half done", async () => {
  const directory = await temporaryDirectory();
  const path = join(directory.path, "millrace.db");
  try {
    const stored: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      stored.push(...await killedWriter(path, round));
      const store = createStore(await loadPorts(), { kind: "file", path });
      const rows = await (await store.open()).selectFrom("settings").select("key").execute();
      const found = new Set(rows.map(({ key }) => key));
      for (const key of stored) {
        assert(found.has(`${key}-a`) && found.has(`${key}-b`), `${key} was acknowledged and is gone`);
      }
      for (const key of found) {
        if (key.endsWith("-a")) assert(found.has(`${key.slice(0, -1)}b`), `${key} stands alone`);
      }
      await store.close();
    }
  } finally {
    await directory.remove();
  }
});

import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { sql } from "kysely";
import { STATE_LAYOUT } from "../../platform/state-layout.ts";
import { loadPorts } from "../../platform/detect.ts";
import { MIGRATIONS } from "../../src/database/migrations.ts";
import { connection } from "../../src/database/store.ts";
import { type Outcome, quietFlags, run, start, withDirectory } from "./support.ts";

const ports = await loadPorts();

/** An engine waits here for several runs of the program, ms. */
const ENGINE_MS = 90_000;

// deno-lint-ignore no-explicit-any -- the tests look into it
type Any = any;

async function withEngine(
  directory: string,
  body: (call: (method: string, params?: Record<string, string>) => Promise<Any>) => Promise<void>,
): Promise<void> {
  const program = start(["serve", ...quietFlags(directory), "--log-format", "json"], {}, ENGINE_MS);
  const { http } = JSON.parse(await program.firstLine);
  const token = (await run(["token", "--state-dir", path.join(directory, "state")])).stdout.trim();
  try {
    await body(async (method, params = {}) => {
      const body = new URLSearchParams({ method, token, ...params });
      const { result, error } = await (await fetch(`${http}/server/api`, { method: "POST", body })).json();
      assertEquals(error, null, method);
      return result;
    });
  } finally {
    program.kill("SIGTERM");
    await program.ended;
  }
}

function assertRefused({ code, stdout, stderr }: Outcome, says: RegExp): void {
  assertEquals([code, stdout], [2, ""], stderr);
  assertEquals(stderr.trimEnd().split("\n").length, 1, stderr);
  assertMatch(stderr, says);
}

async function change(file: string, statement: string): Promise<void> {
  const db = await connection(ports, { kind: "file", path: file }, []);
  await sql.raw(statement).execute(db);
  await db.destroy();
}

test("millrace backup and restore carry library, settings, token and files from a running engine to a new directory", () =>
  withDirectory(async (directory) => {
    const [old, fresh] = [path.join(directory, "old"), path.join(directory, "new")];
    const file = path.join(directory, "one.backup");
    const inOld = path.join(old, "state");
    const inNew = path.join(fresh, "state");
    let items: Any;
    await withEngine(old, async (call) => {
      await call("playlist_add_item", { title: "Télé", video_url: "http://h/1" });
      items = await call("playlist_get");
      writeFileSync(path.join(inOld, "transport-of-nobody"), "left out");
      const made = await run(["backup", file, "--state-dir", inOld]);
      assertEquals([made.code, made.stderr], [0, ""]);
      assertMatch(made.stdout, /one\.backup: database version \d+, \d+ files\n$/);
      await call("playlist_add_item", { title: "after the backup", video_url: "http://h/3" });
      assertRefused(await run(["backup", file, "--state-dir", inOld]), /exists: name another file/);
      assertRefused(await run(["restore", file, "--state-dir", inOld]), /an engine uses/);
    });
    assertEquals(statSync(file).mode & 0o077, 0);
    assertEquals(readdirSync(directory).sort(), ["old", "one.backup"]);
    assertRefused(await run(["restore", file, "--state-dir", inOld]), /would be overwritten/);

    const done = await run(["restore", file, "--state-dir", inNew]);
    assertEquals([done.code, done.stderr], [0, ""]);
    assertMatch(done.stdout, /^restored what millrace .* saved at 20/);
    const kept = readdirSync(inNew);
    assert(kept.every((name) => STATE_LAYOUT.some((entry) => entry.name.replace("/", "") === name)), kept.join());
    for (const name of ["access-token", "secret-key"].filter((name) => existsSync(path.join(inOld, name)))) {
      assertEquals(readFileSync(path.join(inNew, name), "utf8"), readFileSync(path.join(inOld, name), "utf8"));
      assertEquals(statSync(path.join(inNew, name)).mode & 0o077, 0, name);
    }
    await withEngine(fresh, async (call) => assertEquals(await call("playlist_get"), items));
  }));

test("millrace restore leaves nothing when a file is another program's, damaged or of a newer release", () =>
  withDirectory(async (directory) => {
    const state = path.join(directory, "state");
    const file = path.join(directory, "a.backup");
    assertRefused(await run(["backup", file, "--state-dir", state]), /holds nothing of an engine/);
    assertEquals((await run(["token", "--state-dir", state])).code, 0);
    assertEquals((await run(["user", "list", "--state-dir", state])).code, 0);
    assertEquals((await run(["backup", file, "--state-dir", state])).code, 0);
    const target = path.join(directory, "target");
    const restore = (from: string) => run(["restore", from, "--state-dir", target]);
    assertRefused(await restore(path.join(directory, "missing")), /there is no backup/);
    const text = path.join(directory, "text");
    writeFileSync(text, "no database, and long enough that it is read as one ".repeat(20));
    assertRefused(await restore(text), /damaged, or no backup/);
    assertRefused(await restore(path.join(state, "millrace.db")), /no backup of millrace/);
    const newer = path.join(directory, "newer");
    copyFileSync(file, newer);
    await change(newer, `UPDATE schema_version SET version = ${MIGRATIONS.length + 1}`);
    assertRefused(await restore(newer), /which is newer: this release knows up to version \d+/);
    const climbing = path.join(directory, "climbing");
    copyFileSync(file, climbing);
    await change(climbing, "INSERT INTO backup_files VALUES ('transport/../../outside', x'00')");
    assertRefused(await restore(climbing), /names a file that no backup holds/);
    assert(!existsSync(path.join(directory, "outside")));
    assertEquals(existsSync(target) ? readdirSync(target) : [], []);
    const good = await restore(file);
    assertEquals([good.code, good.stderr], [0, ""]);
  }));

test("an engine says which versions do not match when a newer release made its database, and leaves it unchanged", () =>
  withDirectory(async (directory) => {
    const state = path.join(directory, "state");
    assertEquals((await run(["user", "list", "--state-dir", state])).code, 0);
    const file = path.join(state, "millrace.db");
    await change(file, `UPDATE schema_version SET version = ${MIGRATIONS.length + 3}`);
    const before = readFileSync(file);
    const says = new RegExp(`its version is ${MIGRATIONS.length + 3}, this release knows ${MIGRATIONS.length}`);
    assertRefused(await run(["serve", ...quietFlags(directory)]), says);
    assertRefused(await run(["backup", path.join(directory, "b"), "--state-dir", state]), says);
    assertEquals(readFileSync(file), before);
    assertEquals(readdirSync(directory).includes("b"), false);
  }));

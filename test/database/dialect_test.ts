/** After a refused statement libSQL's client acknowledges writes that it never commits; the dialect must not. */
import { join } from "node:path";
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { type Client, createClient } from "@libsql/client";
import { Kysely, sql } from "kysely";
import { libsqlDialect } from "../../src/database/dialect.ts";
import { type ErrorCode, MillraceError } from "../../src/errors.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { FakeClock } from "../support/fake-clock.ts";

interface Tables {
  t: { a: number; b: string };
}
type Db = Kysely<Tables>;

interface Case {
  readonly name: string;
  readonly code: ErrorCode;
  /** What another process does first; it is undone after `refused`. */
  readonly other?: readonly string[];
  /** DELETE: without a write-ahead log, as on drives that cannot have one, readers and commits refuse each other. */
  readonly journal?: "WAL" | "DELETE";
  /** Statements that are run before. */
  readonly before?: readonly string[];
  readonly refused: (db: Db) => Promise<unknown>;
  /** True when other processes may have to wait for a garbage collection. */
  readonly keepsLock?: boolean;
}

const insert = (db: Db, a: number, b = "x") => db.insertInto("t").values({ a, b }).execute();
/** Another process writes, is about to commit, or reads. */
const WRITES = ["BEGIN IMMEDIATE", "INSERT INTO t VALUES (90, 'other')"];
/** More than a cache of one page holds, so that the file itself is written, which locks readers out. */
const SPILLS = [
  "BEGIN IMMEDIATE",
  "PRAGMA cache_size = 1",
  "INSERT INTO t SELECT value, hex(zeroblob(4000)) FROM json_each('[31,32,33,34,35,36,37,38,39]')",
];
const READS = ["BEGIN", "SELECT * FROM t"];

const CASES: readonly Case[] = [
  { name: "a write", code: "too_busy", other: WRITES, refused: (db) => insert(db, 1) },
  {
    name: "a write with results",
    code: "too_busy",
    other: WRITES,
    refused: (db) => db.insertInto("t").values({ a: 1, b: "x" }).returning("a").execute(),
  },
  {
    name: "the start of a transaction",
    code: "too_busy",
    other: WRITES,
    refused: (db) => db.transaction().execute((trx) => insert(trx, 1)),
  },
  { name: "a pragma", code: "too_busy", other: WRITES, refused: (db) => sql`PRAGMA user_version = 5`.execute(db) },
  {
    name: "a change of the tables",
    code: "too_busy",
    other: WRITES,
    refused: (db) => sql`CREATE TABLE u (a)`.execute(db),
  },
  {
    name: "a commit",
    keepsLock: true,
    code: "too_busy",
    journal: "DELETE",
    other: READS,
    refused: (db) => db.transaction().execute((trx) => insert(trx, 1)),
  },
  { name: "a write that commits", code: "too_busy", journal: "DELETE", other: READS, refused: (db) => insert(db, 1) },
  {
    name: "a read in a transaction",
    code: "too_busy",
    journal: "DELETE",
    other: SPILLS,
    refused: (db) =>
      db.transaction().setAccessMode("read only").execute((trx) => trx.selectFrom("t").selectAll().execute()),
  },
  { name: "a repeated key", code: "conflict", refused: (db) => insert(db, 0) },
  { name: "a value against the rules", code: "conflict", refused: (db) => insert(db, 1, "bad") },
  {
    name: "a value against the rules in a transaction",
    code: "conflict",
    refused: (db) => db.transaction().execute((trx) => insert(trx, 1).then(() => insert(trx, 2, "bad"))),
  },
  {
    name: "a write to a full disk",
    code: "disk_full",
    before: ["PRAGMA max_page_count = 6"],
    refused: (db) => insert(db, 1, "x".repeat(100_000)),
  },
];

for (const { name, code, journal = "WAL", other = [], before = [], refused, keepsLock = false } of CASES) {
  test(`libsqlDialect() commits what it acknowledges after ${name} was refused`, async () => {
    const directory = await temporaryDirectory();
    const url = `file:${join(directory.path, "test.db")}`;
    const clock = new FakeClock();
    const elsewhere = createClient({ url, concurrency: 1, timeout: 0 });
    const db = new Kysely<Tables>({
      dialect: libsqlDialect(createClient({ url, concurrency: 1, timeout: 0 }), clock),
    });
    try {
      for (
        const statement of [
          `PRAGMA journal_mode = ${journal}`,
          "CREATE TABLE t (a INTEGER PRIMARY KEY, b CHECK (b <> 'bad'))",
        ]
      ) {
        await elsewhere.execute(statement);
      }
      await insert(db, 0);
      for (const statement of before) await sql.raw(statement).execute(db);
      await holding(elsewhere, other, async () => {
        let isOver = false;
        const rejected = assertRejects(() => refused(db), MillraceError).finally(() => isOver = true);
        while (!isOver) await clock.advanceAsync(100);
        assertEquals((await rejected as MillraceError).code, code);
      });
      await insert(db, 100);
      await db.transaction().execute((trx) => insert(trx, 101));
      const { rows } = await elsewhere.execute("SELECT a FROM t WHERE a >= 100 ORDER BY a");
      assertEquals(rows.map((row) => row["a"]), [100, 101], "another process sees what was acknowledged");
      // The refused statement holds no lock that would keep it out.
      if (!keepsLock) await elsewhere.execute("INSERT INTO t VALUES (95, 'other')");
    } finally {
      await db.destroy();
      elsewhere.close();
      await directory.remove();
    }
  });
}

/** Runs `body` while another process is in the middle of these statements, which it then takes back. */
async function holding(elsewhere: Client, statements: readonly string[], body: () => Promise<void>): Promise<void> {
  if (statements.length === 0) return await body();
  const transaction = await elsewhere.transaction(statements[0] === "BEGIN" ? "deferred" : "write");
  for (const statement of statements.slice(1)) await transaction.execute(statement);
  await body();
  await transaction.rollback();
}

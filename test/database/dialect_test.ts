/** After a refused statement libSQL's client acknowledges writes that it never commits; the dialect must not, with either library. */
import { join } from "node:path";
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { createClient } from "@libsql/client";
import { Kysely, sql } from "kysely";
import { loadPorts } from "../../platform/detect.ts";
import { storeDialect } from "../../src/database/dialect.ts";
import { libsqlClient, type SqlClient, sqliteClient } from "../../src/database/sql-client.ts";
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

const { sqlite } = await loadPorts();
/** The libraries that files are opened with. */
const LIBRARIES: readonly (readonly [string, (path: string) => SqlClient])[] = [
  ["libSQL", (path) => libsqlClient(createClient({ url: `file:${path}`, concurrency: 1, timeout: 0 }))],
  ["the runtime's SQLite", (path) => sqliteClient(() => sqlite!.open(path))],
];
const rowsOf = async (client: SqlClient, sql: string) => (await client.execute({ sql, args: [] })).rows;

for (
  const { name, code, journal = "WAL", other = [], before = [], refused, keepsLock = false, library, open } of LIBRARIES
    .flatMap(([library, open]) => CASES.map((one) => ({ ...one, library, open })))
) {
  test(`storeDialect() commits what it acknowledges after ${library} refused ${name}`, async () => {
    const directory = await temporaryDirectory();
    const path = join(directory.path, "test.db");
    const clock = new FakeClock();
    const elsewhere = open(path);
    const db = new Kysely<Tables>({ dialect: storeDialect(open(path), clock) });
    try {
      for (
        const statement of [
          `PRAGMA journal_mode = ${journal}`,
          "CREATE TABLE t (a INTEGER PRIMARY KEY, b CHECK (b <> 'bad'))",
        ]
      ) {
        await rowsOf(elsewhere, statement);
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
      const rows = await rowsOf(elsewhere, "SELECT a FROM t WHERE a >= 100 ORDER BY a");
      assertEquals(rows.map((row) => row["a"]), [100, 101], "another process sees what was acknowledged");
      // The refused statement holds no lock that would keep it out.
      if (!keepsLock) await rowsOf(elsewhere, "INSERT INTO t VALUES (95, 'other')");
    } finally {
      await db.destroy();
      elsewhere.close();
      await directory.remove();
    }
  });
}

/** Runs `body` while another process is in the middle of these statements, which it then takes back. */
async function holding(elsewhere: SqlClient, statements: readonly string[], body: () => Promise<void>): Promise<void> {
  if (statements.length === 0) return await body();
  const transaction = await elsewhere.transaction(statements[0] === "BEGIN" ? "read" : "write");
  for (const statement of statements.slice(1)) await transaction.execute({ sql: statement, args: [] });
  await body();
  await transaction.rollback();
}

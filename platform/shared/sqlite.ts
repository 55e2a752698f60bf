/** SQLite as part of the runtime: `node:sqlite`, which Deno and Bun have, too. */
import { isBuiltin } from "node:module";
import process from "node:process";
import type { StatementSync } from "node:sqlite";
import type { SqliteDatabase, SqlitePort, SqliteValue } from "../../src/ports.ts";

const MODULE = "node:sqlite";

/** SQLite's names of its primary result codes, by number (sqlite.org/rescode.html), as far as anybody here tells them apart. */
const CODES: readonly (readonly [number, string])[] = [
  [3, "SQLITE_PERM"],
  [5, "SQLITE_BUSY"],
  [6, "SQLITE_LOCKED"],
  [8, "SQLITE_READONLY"],
  [10, "SQLITE_IOERR"],
  [11, "SQLITE_CORRUPT"],
  [13, "SQLITE_FULL"],
  [14, "SQLITE_CANTOPEN"],
  [18, "SQLITE_TOOBIG"],
  [19, "SQLITE_CONSTRAINT"],
  [26, "SQLITE_NOTADB"],
];
const NAMES: ReadonlyMap<number, string> = new Map(CODES);
/** The part of a code that is primary. */
const PRIMARY = 0xff;

/** Node's SQLite lacked the search for words (FTS5) before. Deno and Bun name a newer Node. */
const SINCE_NODE = [22, 18] as const;

/** The port; null: this runtime has no SQLite. It is loaded when a database is opened: Node 22 calls it experimental then. */
export const sqlite: SqlitePort | null = isBuiltin(MODULE) && isRecent() ? { open } : null;

function isRecent(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > SINCE_NODE[0] || (major === SINCE_NODE[0] && minor >= SINCE_NODE[1]);
}

function open(path: string): SqliteDatabase {
  const { DatabaseSync } = process.getBuiltinModule(MODULE) as typeof import("node:sqlite");
  // Not defensive: reading what a damaged file still holds needs `PRAGMA writable_schema`.
  const database = coded(() => new DatabaseSync(path, { defensive: false }));
  return {
    run: (sql, args) => coded(() => result(database.prepare(sql), args)),
    close: () => coded(() => database.close()),
  };
}

function result(statement: StatementSync, args: readonly SqliteValue[]): ReturnType<SqliteDatabase["run"]> {
  if (statement.columns().length > 0) return { rows: statement.all(...args), changes: 0, insertId: null };
  const { changes, lastInsertRowid } = statement.run(...args);
  return { rows: [], changes: Number(changes), insertId: BigInt(lastInsertRowid) };
}

/** Runs `action`; SQLite's refusals get the name of their code as `code`. */
function coded<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    const { errcode } = error as { errcode?: number };
    const code = errcode === undefined ? undefined : NAMES.get(errcode & PRIMARY) ?? "SQLITE_ERROR";
    if (code === undefined) throw error;
    throw Object.assign(new Error((error as Error).message, { cause: error }), { code });
  }
}

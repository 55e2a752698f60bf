/** A database as `dialect.ts` uses it: through libSQL's client, or through SQLite as part of the runtime. */
import type { Client, InArgs, Row, Transaction } from "@libsql/client";
import type { SqliteDatabase, SqliteValue } from "../ports.ts";

/** One statement, its parameters in order. */
export interface SqlStatement {
  readonly sql: string;
  readonly args: readonly unknown[];
}

/** What one statement brought; bytes come as an `ArrayBuffer`. */
export interface SqlResult {
  readonly rows: Record<string, unknown>[];
  /** Rows that a statement without results changed. */
  readonly changes: number;
  /** Id of the row that a statement without results inserted last. */
  readonly insertId: bigint | null;
}

/** A transaction. `close` takes it back unless it has ended. */
export interface SqlTransaction {
  execute(statement: SqlStatement): Promise<SqlResult>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  close(): void;
}

/** One connection. Rejects with errors whose `code` is SQLite's name of a result, or the client's. */
export interface SqlClient {
  /** A file, or memory: pragmas belong to this connection. */
  readonly isLocal: boolean;
  execute(statement: SqlStatement): Promise<SqlResult>;
  /** A transaction that holds the lock for writing from its start on (`write`), or never takes it. */
  transaction(mode: "read" | "write"): Promise<SqlTransaction>;
  /** Replaces the connection. A database in memory is then empty. */
  reconnect(): Promise<void>;
  close(): void;
}

/** libSQL's client as a `SqlClient`. */
export function libsqlClient(client: Client): SqlClient {
  const executing = async (on: Pick<Transaction, "execute">, { sql, args }: SqlStatement): Promise<SqlResult> => {
    const { columns, rows, rowsAffected, lastInsertRowid } = await on.execute({ sql, args: args as InArgs });
    return { rows: toObjects(columns, rows), changes: rowsAffected, insertId: lastInsertRowid ?? null };
  };
  return {
    isLocal: client.protocol === "file",
    execute: (statement) => executing(client, statement),
    async transaction(mode) {
      const transaction = await client.transaction(mode);
      return {
        execute: (statement) => executing(transaction, statement),
        commit: () => transaction.commit(),
        rollback: () => transaction.rollback(),
        close: () => transaction.close(),
      };
    },
    reconnect: async () => await client.reconnect(),
    close: () => client.close(),
  };
}

/** Converts rows, which the client returns as arrays with named fields; kysely expects plain objects. */
function toObjects(columns: readonly string[], rows: readonly Row[]): Record<string, unknown>[] {
  return rows.map((row) => {
    const object: Record<string, unknown> = {};
    columns.forEach((column, i) => object[column] = row[i]);
    return object;
  });
}

/** The runtime's SQLite as a `SqlClient`; `open` makes each of its connections. Throws as `open` does. */
export function sqliteClient(open: () => SqliteDatabase): SqlClient {
  let database = open();
  const run = ({ sql, args }: SqlStatement): SqlResult => {
    const result = database.run(sql, args.map(bindable));
    result.rows.forEach(buffersForBytes);
    return result;
  };
  // Calls are synchronous: nothing comes between them, and what they throw rejects.
  const execute = (statement: SqlStatement) => Promise.resolve().then(() => run(statement));
  const plain = (sql: string) => execute({ sql, args: [] });
  return {
    isLocal: true,
    execute,
    async transaction(mode) {
      await plain(mode === "write" ? "BEGIN IMMEDIATE" : "BEGIN");
      let isOpen = true;
      const end = async (sql: string) => {
        await plain(sql);
        isOpen = false;
      };
      return {
        execute,
        commit: () => end("COMMIT"),
        rollback: () => end("ROLLBACK"),
        close() {
          if (!isOpen) return;
          isOpen = false;
          run({ sql: "ROLLBACK", args: [] });
        },
      };
    },
    reconnect() {
      database.close();
      return Promise.resolve().then(() => void (database = open()));
    },
    close: () => database.close(),
  };
}

function bindable(value: unknown): SqliteValue {
  if (value === undefined) return null;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return typeof value === "boolean" ? Number(value) : value as SqliteValue;
}

/** Puts buffers in place of byte arrays, as libSQL's client returns them. */
function buffersForBytes(row: Record<string, unknown>): void {
  for (const column in row) {
    const value = row[column];
    if (!(value instanceof Uint8Array)) continue;
    const isWhole = value.byteLength === value.buffer.byteLength;
    row[column] = isWhole ? value.buffer : value.slice().buffer;
  }
}

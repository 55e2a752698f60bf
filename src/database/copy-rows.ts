/** Copies all rows of one sound database into another of the same version. */
import { type Kysely, sql, type Transaction } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import { MillraceError } from "../errors.ts";
import type { Schema } from "./schema.ts";

/** Rows read and written at once: a request to a server stays below a few MiB. */
const BATCH_ROWS = 200;
/** SQLite takes 32,766 values in one statement. */
const MAX_VALUES = 30_000;
/** Filled by triggers, or by `migrate`. Shadow tables of the search begin with its name. */
const FILLED: ReadonlySet<string> = new Set(["schema_version", "playlist_version", "item_groups"]);
const SEARCH = "playlist_search";

type Database = Kysely<Schema> | Transaction<Schema>;
type Row = Record<string, unknown>;

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  /** Its primary key. */
  readonly key: readonly string[];
}

/**
 * Copies the rows of `from` to `to`; `local`, one of the two, is a file and says which tables there are. Rejects with
 * `conflict` when `to` holds rows already.
 */
export async function copyRows(from: Database, to: Database, local: Database): Promise<void> {
  const tables = await tablesOf(local);
  for (const { name } of tables) {
    const { rows } = await sql`SELECT 1 AS "one" FROM ${sql.table(name)} LIMIT 1`.execute(to);
    if (rows.length > 0) {
      throw new MillraceError("conflict", `the database holds data already (${name}); name an empty one`);
    }
  }
  for (const table of tables) await copyTable(from, to, table);
  await copySequences(from, to);
}

async function tablesOf(db: Database): Promise<Table[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid`
    .execute(db);
  const names = rows.map(({ name }) => name).filter((name) =>
    !FILLED.has(name) && !/^(?:sqlite|backup)_/.test(name) && !name.startsWith(SEARCH)
  );
  const tables: Table[] = [];
  for (const name of names) {
    const { rows: columns } = await sql<{ name: string; pk: number }>`SELECT name, pk FROM pragma_table_info(${name})`
      .execute(db);
    const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk).map((column) => column.name);
    tables.push({ name, columns: columns.map((column) => column.name), key: key.length > 0 ? key : ["rowid"] });
  }
  return tables;
}

async function copyTable(from: Database, to: Database, { name, columns, key }: Table): Promise<void> {
  const limit = Math.max(1, Math.min(BATCH_ROWS, Math.floor(MAX_VALUES / columns.length)));
  const list = sql.join(columns.map((column) => sql.ref(column)));
  const keys = key.map((column, i) => sql`${sql.ref(column)} AS ${sql.ref(`key_${i}`)}`);
  const order = sql.join(key.map((column) => sql.ref(column)));
  for (let after: Row | null = null;;) {
    const where: ReturnType<typeof sql> = after === null
      ? sql``
      : sql`WHERE (${order}) > (${sql.join(key.map((_, i) => (after as Row)[`key_${i}`]))})`;
    const { rows }: { rows: Row[] } = await sql<Row>`SELECT ${list}, ${sql.join(keys)} FROM ${sql.table(name)} ${where}
      ORDER BY ${order} LIMIT ${limit}`.execute(from);
    if (rows.length === 0) return;
    const values = rows.map((row) => sql`(${sql.join(columns.map((column) => row[column]))})`);
    await sql`INSERT INTO ${sql.table(name)} (${list}) VALUES ${sql.join(values)}`.execute(to);
    after = rows[rows.length - 1]!;
    await nextTurn();
  }
}

/** Ids of deleted rows are never given again. */
async function copySequences(from: Database, to: Database): Promise<void> {
  const { rows } = await sql<{ name: string; seq: number }>`SELECT name, seq FROM sqlite_sequence`.execute(from);
  for (const { name, seq } of rows) {
    await sql`DELETE FROM sqlite_sequence WHERE name = ${name}`.execute(to);
    await sql`INSERT INTO sqlite_sequence (name, seq) VALUES (${name}, ${seq})`.execute(to);
  }
}

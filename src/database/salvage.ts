/** Reads what can still be read of a damaged database into a new one. */
import { type Kysely, type RawBuilder, sql } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import { hasCode } from "../errors.ts";
import { migrate, MIGRATIONS } from "./migrations.ts";
import type { Schema } from "./schema.ts";

/** Rows read and written at once. */
const BATCH_ROWS = 200;
/** Failed reads of one table before the rest of it is given up: a damaged page costs one per row, a few dozen. */
const MAX_FAILURES = 20_000;

/** A table that is saved. Left out are those that an update of lists fills, and the index of titles, which triggers fill. */
interface SavedTable {
  readonly name: keyof Schema;
  /** Columns of the primary key. One numeric column: rows are looked for beyond damaged pages, id by id. */
  readonly key: readonly [string, ...string[]];
  readonly isNumbered: boolean;
  /** Columns that the engine parses. */
  readonly json: readonly string[];
}

function table(
  name: keyof Schema,
  key: SavedTable["key"],
  isNumbered = false,
  json: readonly string[] = [],
): SavedTable {
  return { name, key, isNumbered, json };
}

/** In the order of their worth. */
const TABLES: readonly SavedTable[] = [
  table("settings", ["key"], false, ["value"]),
  table("accounts", ["id"], true),
  table("external_playlists", ["id"], true),
  table("playlist_items", ["id"], true, ["tags", "languages", "countries", "imported", "more_groups"]),
  table("external_removed", ["external_playlist_id", "hash"]),
  table("guides", ["external_playlist_id", "url"]),
  table("guide_sources", ["id"], true),
  table("positions", ["infohash", "file_index"]),
  table("track_choices", ["infohash", "file_index"]),
  table("sign_ins", ["key_id"]),
  table("devices", ["id"], true),
  table("item_checks", ["hash"]),
];

/** Without it SQLite refuses every read of a file that is shorter than it says, or whose schema has a fault. */
export const SALVAGE_PRAGMAS: readonly string[] = ["PRAGMA writable_schema = ON"];

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

type Row = Record<string, unknown>;
/** What comes of one table. */
interface Outcome {
  kept: number;
  /** Something of it could not be read, or made no sense. */
  isDamaged: boolean;
}

/** What was saved. */
export interface Salvaged {
  /** Rows in all. */
  readonly total: number;
  /** Rows by table, those that had any. */
  readonly rows: Readonly<Record<string, number>>;
  /** Tables of which something is lost. */
  readonly damaged: readonly string[];
}

/**
 * Copies rows of `old` (opened with `SALVAGE_PRAGMAS`) into `fresh`, which has no tables yet, and brings `fresh` to the newest version. Whatever cannot be
 * read is left out, and lists are read whole at their next update. Rejects as `fresh` does.
 */
export async function salvage(old: Kysely<Schema>, fresh: Kysely<Schema>): Promise<Salvaged> {
  const version = await versionOf(old);
  await migrate(fresh, version);
  const rows: Record<string, number> = {};
  const damaged: string[] = [];
  for (const saved of TABLES) {
    const columns = await columnsOf(fresh, saved.name);
    if (columns.length === 0) continue;
    const outcome = { kept: 0, isDamaged: false };
    await save(old, fresh, saved, columns, outcome);
    if (outcome.kept > 0) rows[saved.name] = outcome.kept;
    if (outcome.isDamaged) damaged.push(saved.name);
  }
  await migrate(fresh);
  // Entries that were lost come back.
  await fresh.updateTable("external_playlists").set({ etag: "", last_modified: "", digest: "" }).execute();
  await fresh.updateTable("guide_sources").set({ etag: "", last_modified: "", next_update: 1 }).where(
    "next_update",
    ">",
    0,
  )
    .execute();
  return { total: Object.values(rows).reduce((sum, count) => sum + count, 0), rows, damaged };
}

/** The version of `old`; the newest when it is unreadable. */
async function versionOf(old: Kysely<Schema>): Promise<number> {
  const query = sql<{ version: number }>`SELECT CAST(version AS INTEGER) AS "version" FROM schema_version LIMIT 1`;
  const version = (await read(query, old))?.[0]?.version ?? 0;
  return version >= 1 && version <= MIGRATIONS.length ? version : MIGRATIONS.length;
}

/** How SQLite reports damaged pages, tables that are missing from a damaged schema, and files that end early. */
function isDamage(error: unknown): boolean {
  return hasCode(error, "corrupt") || hasCode(error, "io") || hasCode(error, "internal");
}

async function columnsOf(db: Kysely<Schema>, name: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM pragma_table_info(${name})`.execute(db);
  return rows.map((row) => row.name);
}

async function save(
  old: Kysely<Schema>,
  fresh: Kysely<Schema>,
  saved: SavedTable,
  columns: readonly string[],
  outcome: Outcome,
): Promise<void> {
  const list = sql.join(columns.map((name) => sql.ref(name)));
  const raw = sql.join(columns.map(rawColumn));
  for await (const rows of saved.isNumbered ? numbered(old, saved, raw, outcome) : keyed(old, saved, raw, outcome)) {
    const sound = rows.map(decoded).filter((row) => isSound(row, saved.json));
    if (sound.length < rows.length) outcome.isDamaged = true;
    // In one transaction: the disk is waited for once.
    const written = await fresh.transaction().execute(async (trx) => {
      let count = 0n;
      for (const row of sound) {
        const values = sql.join(columns.map((name) => row[name]));
        const { numAffectedRows = 0n } = await sql`INSERT OR IGNORE INTO ${sql.table(saved.name)} (${list})
          VALUES (${values})`.execute(trx);
        count += numAffectedRows;
      }
      return Number(count);
    });
    outcome.kept += written;
    if (written < sound.length) outcome.isDamaged = true;
    await nextTurn();
  }
}

/**
 * A column under a name of our own, with text as its bytes: damaged text need not be text. No release wrote bytes; they
 * become text that makes no sense.
 */
function rawColumn(name: string): RawBuilder<unknown> {
  const column = sql.ref(name);
  return sql`CASE typeof(${column}) WHEN 'text' THEN CAST(${column} AS BLOB) WHEN 'blob' THEN x'00' ELSE ${column} END
    AS ${column}`;
}

function decoded(row: Row): Row {
  const text = (value: unknown) => value instanceof ArrayBuffer ? DECODER.decode(value) : value;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, text(value)]));
}

/** False for values that no release wrote. */
function isSound(row: Row, json: readonly string[]): boolean {
  if (Object.values(row).includes("\0")) return false;
  try {
    for (const name of json) {
      const value = row[name];
      if (typeof value === "string" && value !== "") JSON.parse(value);
    }
    return true;
  } catch {
    return false;
  }
}

type Columns = ReturnType<typeof sql.join>;

/** The rows of a table whose key is its row number, in their order; what lies between damaged pages, too. */
async function* numbered(
  old: Kysely<Schema>,
  { name, key: [id] }: SavedTable,
  columns: Columns,
  outcome: Outcome,
): AsyncGenerator<readonly Row[]> {
  const from = sql`${sql.table(name)} NOT INDEXED`;
  const end = 1 + await lastId(old, name, id);
  let span = end;
  let failures = 0;
  for (let at = 0; at < end;) {
    const limit = Math.min(BATCH_ROWS, span);
    const window = Math.min(at + span, end);
    const rows = await read(
      sql<Row>`SELECT ${columns} FROM ${from} WHERE ${sql.ref(id)} >= ${at} AND ${sql.ref(id)} < ${window}
        ORDER BY ${sql.ref(id)} LIMIT ${limit}`,
      old,
    );
    if (rows === null) {
      outcome.isDamaged = true;
      if (++failures > MAX_FAILURES) return;
      if (failures % BATCH_ROWS === 0) await nextTurn();
      // A single row is passed over; the next one may be readable.
      if (span === 1) at++;
      span = Math.max(1, Math.floor(Math.min(span, BATCH_ROWS) / 4));
      continue;
    }
    at = rows.length === limit && limit < window - at ? Number(rows[rows.length - 1]![id]) + 1 : window;
    span = 2 * span;
    if (rows.length > 0) yield rows;
  }
}

/** The highest row number, as far as it can be found out; 0 for none. */
async function lastId(old: Kysely<Schema>, name: string, id: string): Promise<number> {
  const asked = [
    sql<{ last: number | null }>`SELECT max(${sql.ref(id)}) AS "last" FROM ${sql.table(name)} NOT INDEXED`,
    sql<{ last: number | null }>`SELECT CAST(seq AS INTEGER) AS "last" FROM sqlite_sequence WHERE name = ${name}`,
  ];
  for (const query of asked) {
    const last = Number((await read(query, old))?.[0]?.last ?? 0);
    if (Number.isSafeInteger(last) && last > 0) return last;
  }
  return 0;
}

/** The rows of a table with another key: from the first one to the damage, and from the last one back to it. */
async function* keyed(
  old: Kysely<Schema>,
  { name, key }: SavedTable,
  columns: Columns,
  outcome: Outcome,
): AsyncGenerator<readonly Row[]> {
  const names = sql.join(key.map((column) => sql.ref(column)));
  for (const [order, beyond] of [["ASC", ">"], ["DESC", "<"]] as const) {
    const by = sql.join(key.map((column) => sql`${sql.ref(column)} ${sql.raw(order)}`));
    let after: Row | null = null;
    for (let limit = BATCH_ROWS;;) {
      const where: ReturnType<typeof sql> = after === null
        ? sql``
        : sql`WHERE (${names}) ${sql.raw(beyond)} (${sql.join(key.map((column) => bound((after as Row)[column])))})`;
      const rows: readonly Row[] | null = await read(
        sql<Row>`SELECT ${columns} FROM ${sql.table(name)} ${where} ORDER BY ${by} LIMIT ${limit}`,
        old,
      );
      if (rows === null && limit === 1) break;
      if (rows === null) {
        outcome.isDamaged = true;
        limit = Math.max(1, Math.floor(limit / 4));
        continue;
      }
      if (rows.length > 0) yield rows;
      if (rows.length < limit) return;
      after = rows[rows.length - 1]!;
    }
  }
}

/** A raw value as it is in the table. */
function bound(value: unknown): RawBuilder<unknown> {
  return value instanceof ArrayBuffer ? sql`CAST(${new Uint8Array(value)} AS TEXT)` : sql`${value}`;
}

/** The rows of a query; null when what it needs is damaged. */
async function read<T>(query: ReturnType<typeof sql<T>>, old: Kysely<Schema>): Promise<readonly T[] | null> {
  try {
    return (await query.execute(old)).rows;
  } catch (error) {
    if (isDamage(error)) return null;
    throw error;
  }
}

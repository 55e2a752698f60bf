/**
 * Makes the texts that earlier releases stored well-formed. They kept titles that were cut inside a letter of two code units as
 * they came, and whoever reads such a text may fail. So these are read as bytes.
 */
import { type Kysely, sql, type Transaction } from "kysely";
import { equalBytes } from "../bytes/hex.ts";
import { nextTurn } from "../bytes/turn.ts";
import type { Schema } from "./schema.ts";
import { storable } from "./storable.ts";

/** Tables with texts of lists, and the columns by which their rows are found. */
const TABLES = [
  { table: "playlist_items", keys: ["id"] },
  { table: "external_playlists", keys: ["id"] },
  { table: "external_removed", keys: ["external_playlist_id", "hash"] },
] as const;
/** Rows looked at in one statement: some milliseconds. */
const PAGE_ROWS = 250;
/** UTF-8 of U+FFFD. */
const REPLACEMENT = [0xef, 0xbf, 0xbd];

type Row = Readonly<Record<string, ArrayBuffer | string | number | null>>;

/** Mends every text of `trx`, with turns for others in between. */
export async function makeWellFormed(trx: Transaction<Schema> | Kysely<Schema>): Promise<void> {
  for (const { table, keys } of TABLES) {
    const { rows: columns } = await sql<
      { name: string; type: string }
    >`SELECT name, type FROM pragma_table_info(${table})`
      .execute(trx);
    const texts = columns.filter(({ name, type }) => type === "TEXT" && !keys.some((key) => key === name));
    if (texts.length === 0) continue;
    let last: readonly (string | number)[] | null = null;
    for (;;) {
      const { rows }: { rows: Row[] } = await page(table, keys, texts.map(({ name }) => name), last).execute(trx);
      for (const row of rows) {
        for (const { name } of texts) {
          const bytes = row[name];
          if (!(bytes instanceof ArrayBuffer)) continue;
          const text = wellFormed(new Uint8Array(bytes));
          if (text === null) continue;
          const is = sql.join(keys.map((key) => sql`${sql.ref(key)} = ${row[key]}`), sql` AND `);
          await sql`UPDATE ${sql.table(table)} SET ${sql.ref(name)} = ${text} WHERE ${is}`.execute(trx);
        }
      }
      const end = rows.at(-1);
      if (end === undefined) break;
      last = keys.map((key) => end[key] as string | number);
      await nextTurn();
    }
  }
  // Left by an update that was interrupted: the next one reads its list again.
  const { rows } = await sql`SELECT 1 FROM sqlite_master WHERE name = 'external_entries'`.execute(trx);
  if (rows.length > 0) await trx.deleteFrom("external_entries").execute();
}

/** The rows after `last` in the order of `keys`, with the bytes of those texts that may be ill-formed. */
function page(
  table: string,
  keys: readonly string[],
  texts: readonly string[],
  last: readonly (string | number)[] | null,
) {
  const all = sql.join(keys.map((key) => sql.ref(key)));
  const cells = texts.map((name) => {
    const cell = sql.ref(name);
    // The first byte of a half (and of many letters of Korean), or a half as JSON writes it.
    return sql`CASE WHEN instr(CAST(${cell} AS BLOB), x'ED') OR instr(${cell}, '\\ud') OR instr(${cell}, '\\uD')
      THEN CAST(${cell} AS BLOB) END AS ${cell}`;
  });
  const after = last === null ? sql`` : sql`WHERE (${all}) > (${sql.join(last)})`;
  return sql<Row>`SELECT ${all}, ${sql.join(cells)} FROM ${
    sql.table(table)
  } ${after} ORDER BY ${all} LIMIT ${PAGE_ROWS}`;
}

/** What the UTF-8 in `bytes` should be, U+FFFD in place of each half of a surrogate pair; null when it is so already. */
export function wellFormed(bytes: Uint8Array): string | null {
  const mended: number[] = [];
  for (let at = 0; at < bytes.length;) {
    const isHalf = bytes[at] === 0xed && bytes[at + 1]! >= 0xa0;
    if (isHalf) mended.push(...REPLACEMENT);
    else mended.push(bytes[at]!);
    at += isHalf ? 3 : 1;
  }
  const text = storable(new TextDecoder().decode(new Uint8Array(mended))) as string;
  return equalBytes(new TextEncoder().encode(text), bytes) ? null : text;
}

/** Numbers of channels, for players and television software that sort and remember channels by number. */
import { type RawBuilder, sql } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import type { Db } from "./matches.ts";

/** Matches channel numbers: `5`, and `5.1` as in digital television. Clients that expect a number would stumble over `HD 5`. */
const NUMBER = /^\d{1,9}(?:\.\d{1,4})?$/;

/** SQL: the number that a list gave an item, as the index of numbers has it. */
const given = (table: string) => sql.raw<string | null>(`${table}.imported ->> '$.attributes."tvg-chno"'`);

/**
 * SQL: the oldest enabled item to which a list gave this number, or null. One that its list lacks at the moment keeps its
 * number: it may be back tomorrow.
 */
const holderOf = (number: RawBuilder<unknown>) =>
  sql`(SELECT min(holder.id) FROM playlist_items AS holder WHERE ${given("holder")} = ${number}
    AND ${given("holder")} IS NOT NULL AND holder.is_deleted = 0
    AND (holder.enabled = 1 OR holder.vanished_at IS NOT NULL))`;

/** Columns to select from `playlist_items`, from which `numberOf` makes an item's number. */
export const NUMBER_COLUMNS = {
  /** The number that a list gave it; null when it gave none, or an older item has it. */
  given_number: sql<string | null>`iif(playlist_items.id = ${holderOf(given("playlist_items"))},
    ${given("playlist_items")}, NULL)`,
  /** 1 when a list gave the item's id to another item as number. Not CAST: its affinity keeps SQLite from the index. */
  is_id_given: sql<number>`${holderOf(sql`('' || playlist_items.id)`)} IS NOT NULL`,
} as const;

/** What `numberOf` needs to know about an item. */
export interface NumberedRow {
  readonly id: number;
  readonly given_number: string | null;
  readonly is_id_given: number;
}

/**
 * The lasting number of an enabled item, which no other has: the `tvg-chno` of the list it came from unless an older item has
 * it, else the item's id, followed by `.1` (`.2`, …) when a list gave that number to another item.
 */
export async function numberOf(db: Db, { id, given_number, is_id_given }: NumberedRow): Promise<string> {
  if (given_number !== null && NUMBER.test(given_number)) return given_number;
  let number = String(id);
  if (!is_id_given) return number;
  for (let n = 1; await holder(db, number) !== null; n++) {
    number = `${id}.${n}`;
    // A list may have given thousands of these numbers to others.
    if (n % 50 === 0) await nextTurn();
  }
  return number;
}

/** Inverse of `numberOf`: the id whose number this is, even if there is no such item; null when no id has this number. */
export async function itemWithNumber(db: Db, number: string): Promise<number | null> {
  if (!NUMBER.test(number)) return null;
  const theirs = await holder(db, number);
  if (theirs !== null) return theirs;
  const id = Number(number.split(".")[0]);
  const item = await db.selectFrom("playlist_items").select(NUMBER_COLUMNS.given_number.as("given_number"))
    .where("id", "=", id).where("is_deleted", "=", 0).where("enabled", "=", 1).executeTakeFirst();
  const row = { id, given_number: item?.given_number ?? null, is_id_given: 1 };
  return await numberOf(db, row) === number ? id : null;
}

async function holder(db: Db, number: string): Promise<number | null> {
  const { rows } = await sql<{ id: number | null }>`SELECT ${holderOf(sql`${number}`)} AS id`.execute(db);
  return rows[0]?.id ?? null;
}

/**
 * Deletes any number of items for good, all or none, without holding up the event loop. Items are deleted nowhere else,
 * because their titles must leave the search index with them, and their groups `item_groups`, and no trigger does that.
 */
import { type Expression, type ExpressionBuilder, sql, type SqlBool, type Transaction } from "kysely";
import { StepSize } from "../bytes/step-size.ts";
import { nextTurn } from "../bytes/turn.ts";
import type { Schema } from "../database/schema.ts";
import { inStatements, STATEMENT_ENTRIES } from "./entry.ts";

/** Items deleted in one statement, at least and at most. */
const MIN_DELETED = 20;
const MAX_DELETED = 1000;
/** Items read in one statement while finding out which stay. */
const LOOKED_AT = 5000;
/** A table with fewer items is not emptied: deleting them one by one takes only some 30 ms. */
const MIN_EMPTIED = 2000;
/** Items that may stay when the table is emptied. */
const MAX_KEPT = 50_000;
/** An item that stays is written twice, 20 µs; deleting one takes 12 µs. */
const COST_OF_KEEPING = 2;

/** Condition that selects items. */
type Matching = (eb: ExpressionBuilder<Schema, "playlist_items">) => Expression<SqlBool>;

/**
 * Deletes the items that match, within `trx`; `before` is called with the items of each statement before it runs. Without
 * `before`, when most items match, the table is emptied instead and the rest put back: for 100,000 items that takes a
 * fifteenth of the time, and SQLite writes none of their pages.
 */
export async function deleteItems(
  trx: Transaction<Schema>,
  matching: Matching,
  before?: (those: Matching) => Promise<unknown>,
): Promise<void> {
  await trx.updateTable("playlist_version").set((eb) => ({ version: eb("version", "+", 1) })).execute();
  const kept = before === undefined ? await thoseThatStay(trx, matching) : null;
  if (kept !== null) return await emptyBut(trx, kept);
  const size = new StepSize(MIN_DELETED, MAX_DELETED);
  for (let after = 0;;) {
    const page = await trx.selectFrom("playlist_items").select("id").where("id", ">", after).where(matching)
      .orderBy("id").limit(size.value).execute();
    const last = page[page.length - 1];
    if (last === undefined) return;
    const from = after;
    const those: Matching = (eb) => eb.and([eb("id", ">", from), eb("id", "<=", last.id), matching(eb)]);
    await size.run(async () => {
      await before?.(those);
      const titles = trx.selectFrom("playlist_items").select(["id", "search_text"]).where(those);
      await sql`INSERT INTO playlist_search (playlist_search, rowid, search_text)
        SELECT 'delete', id, search_text FROM ${titles.as("gone")}`.execute(trx);
      const grouped = trx.selectFrom("playlist_items").select(["id", "more_groups"]).where(those)
        .where("more_groups", "is not", null);
      await sql`DELETE FROM item_groups WHERE (name, item_id) IN (
        SELECT value, gone.id FROM ${grouped.as("gone")}, json_each(gone.more_groups))`.execute(trx);
      await trx.deleteFrom("playlist_items").where(those).execute();
    });
    after = last.id;
    await nextTurn();
  }
}

/** Ids of the items that do not match; null when emptying the table does not pay: too many stay, or the table is small. */
async function thoseThatStay(trx: Transaction<Schema>, matching: Matching): Promise<number[] | null> {
  const kept: number[] = [];
  let count = 0;
  for (let after = 0;;) {
    const { last, looked, stays } = await trx
      .selectFrom((eb) =>
        eb.selectFrom("playlist_items").selectAll().where("id", ">", after).orderBy("id").limit(LOOKED_AT)
          .as("playlist_items")
      )
      .select((eb) => [
        eb.fn.max<number | null>("id").as("last"),
        eb.fn.countAll<number>().as("looked"),
        sql<string>`json_group_array(id) FILTER (WHERE NOT ${matching(eb)})`.as("stays"),
      ]).executeTakeFirstOrThrow();
    for (const id of JSON.parse(stays) as number[]) kept.push(id);
    count += looked;
    if (kept.length > MAX_KEPT) return null;
    if (last === null || looked < LOOKED_AT) break;
    after = last;
    await nextTurn();
  }
  return count < MIN_EMPTIED || COST_OF_KEEPING * kept.length > count - kept.length ? null : kept;
}

/** Deletes all items but those of `ids`. */
async function emptyBut(trx: Transaction<Schema>, ids: readonly number[]): Promise<void> {
  await sql`CREATE TABLE kept_items AS SELECT * FROM playlist_items LIMIT 0`.execute(trx);
  await inStatements(ids, async (part) => {
    await sql`INSERT INTO kept_items SELECT * FROM playlist_items
      WHERE id IN (SELECT value FROM json_each(${JSON.stringify(part)}))`.execute(trx);
  });
  // A DELETE without a condition, on a table without a delete trigger, frees all pages at once.
  await sql`DELETE FROM playlist_items`.execute(trx);
  await sql`INSERT INTO playlist_search (playlist_search) VALUES ('delete-all')`.execute(trx);
  await sql`DELETE FROM item_groups`.execute(trx);
  for (let from = 0; from < ids.length; from += STATEMENT_ENTRIES) {
    await nextTurn();
    await sql`INSERT INTO playlist_items SELECT * FROM kept_items
      WHERE rowid > ${from} AND rowid <= ${from + STATEMENT_ENTRIES} ORDER BY rowid`.execute(trx);
  }
  await sql`DROP TABLE kept_items`.execute(trx);
}

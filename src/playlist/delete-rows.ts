/** Deleting any number of items for good, all or none, without holding up the event loop. */
import type { Expression, ExpressionBuilder, SqlBool, Transaction } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import type { Schema } from "../database/schema.ts";

/** Items deleted in one statement: some tens of milliseconds, the index of titles included. */
const DELETED_AT_ONCE = 1000;

/** Deletes the items that match, within `trx`. */
export async function deleteItems(
  trx: Transaction<Schema>,
  matching: (eb: ExpressionBuilder<Schema, "playlist_items">) => Expression<SqlBool>,
): Promise<void> {
  for (let after = 0;;) {
    const page = await trx.selectFrom("playlist_items").select("id").where("id", ">", after).where(matching)
      .orderBy("id").limit(DELETED_AT_ONCE).execute();
    const last = page[page.length - 1];
    if (last === undefined) return;
    await trx.deleteFrom("playlist_items").where("id", ">", after).where("id", "<=", last.id).where(matching).execute();
    after = last.id;
    await nextTurn();
  }
}

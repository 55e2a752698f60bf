/** Deleting any number of items for good, all or none, without holding up the event loop. */
import type { Expression, ExpressionBuilder, SqlBool, Transaction } from "kysely";
import { StepSize } from "../bytes/step-size.ts";
import { nextTurn } from "../bytes/turn.ts";
import type { Schema } from "../database/schema.ts";

/** Items deleted in one statement, at least and at most. */
const MIN_DELETED = 20;
const MAX_DELETED = 1000;

/** Deletes the items that match, within `trx`. */
export async function deleteItems(
  trx: Transaction<Schema>,
  matching: (eb: ExpressionBuilder<Schema, "playlist_items">) => Expression<SqlBool>,
): Promise<void> {
  const size = new StepSize(MIN_DELETED, MAX_DELETED);
  for (let after = 0;;) {
    const page = await trx.selectFrom("playlist_items").select("id").where("id", ">", after).where(matching)
      .orderBy("id").limit(size.value).execute();
    const last = page[page.length - 1];
    if (last === undefined) return;
    const from = after;
    await size.run(() =>
      trx.deleteFrom("playlist_items").where("id", ">", from).where("id", "<=", last.id).where(matching).execute()
    );
    after = last.id;
    await nextTurn();
  }
}

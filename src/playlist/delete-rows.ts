/** Deleting any number of items for good, all or none, without holding up the event loop. */
import type { Expression, ExpressionBuilder, SqlBool, Transaction } from "kysely";
import { StepSize } from "../bytes/step-size.ts";
import { nextTurn } from "../bytes/turn.ts";
import type { Schema } from "../database/schema.ts";

/** Items deleted in one statement, at least and at most. */
const MIN_DELETED = 20;
const MAX_DELETED = 1000;

/** Which items. */
type Matching = (eb: ExpressionBuilder<Schema, "playlist_items">) => Expression<SqlBool>;

/** Deletes the items that match, within `trx`; `before` is called for those of each statement before it runs. */
export async function deleteItems(
  trx: Transaction<Schema>,
  matching: Matching,
  before: (those: Matching) => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  const size = new StepSize(MIN_DELETED, MAX_DELETED);
  for (let after = 0;;) {
    const page = await trx.selectFrom("playlist_items").select("id").where("id", ">", after).where(matching)
      .orderBy("id").limit(size.value).execute();
    const last = page[page.length - 1];
    if (last === undefined) return;
    const from = after;
    const those: Matching = (eb) => eb.and([eb("id", ">", from), eb("id", "<=", last.id), matching(eb)]);
    await size.run(async () => {
      await before(those);
      await trx.deleteFrom("playlist_items").where(those).execute();
    });
    after = last.id;
    await nextTurn();
  }
}

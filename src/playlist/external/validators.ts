/** Validators, by which the server and the engine itself recognise a list that is already in the playlist. */
import type { Expression, ExpressionBuilder, Kysely, SqlBool, Transaction } from "kysely";
import type { Schema } from "../../database/schema.ts";

/** A digest that no list has. It stands for a change to the items themselves, after which even the same list must be read. */
export const STALE_DIGEST = "stale";

/** Makes the next update of the matching lists read them whole, even if they have not changed since. */
export async function forgetValidators(
  db: Kysely<Schema> | Transaction<Schema>,
  digest: "" | typeof STALE_DIGEST,
  matching: (eb: ExpressionBuilder<Schema, "external_playlists">) => Expression<SqlBool>,
): Promise<void> {
  await db.updateTable("external_playlists").set({ etag: "", last_modified: "", digest }).where(matching).execute();
}

/** What tells the server, and the engine, that a list is the one that its items are of already. */
import type { Expression, ExpressionBuilder, Kysely, SqlBool, Transaction } from "kysely";
import type { Schema } from "../../database/schema.ts";

/** A digest that no list has: what was done to the items meanwhile is more than a list says. */
export const STALE_DIGEST = "stale";

/** Has the lists that match read whole at their next update, although they may not have changed since. */
export async function forgetValidators(
  db: Kysely<Schema> | Transaction<Schema>,
  digest: "" | typeof STALE_DIGEST,
  matching: (eb: ExpressionBuilder<Schema, "external_playlists">) => Expression<SqlBool>,
): Promise<void> {
  await db.updateTable("external_playlists").set({ etag: "", last_modified: "", digest }).where(matching).execute();
}

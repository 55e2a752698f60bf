/**
 * Decides whether the time since items vanished is believed. A clock that is a month ahead for one start, for want of a
 * battery, must not empty all that vanished into the trash, nor keep it out for a month.
 */
import { type Kysely, type RawBuilder, sql } from "kysely";
import { StepSize } from "../../bytes/step-size.ts";
import { nextTurn } from "../../bytes/turn.ts";
import type { Schema } from "../../database/schema.ts";
import type { Store } from "../../database/store.ts";

/** Setting: when the table was last looked at, Unix seconds. */
const LOOKED_AT = "external_playlists_looked_at";
/** The setting is written no more often than this, seconds: the disk shall sleep. */
const WRITTEN_EVERY_S = 3600;
/** Clocks of engines on one database may differ by this, seconds. */
const SLACK_S = 3600;

/** Items changed in one statement, at least and at most. */
const MIN_CHANGED = 100;
const MAX_CHANGED = 5000;

/**
 * True when no more than `longestS` passed since the last call on this database. Else, and for items that vanished in the
 * future, the time begins again: nobody knows how long the engine stood still or how wrong the clock was.
 */
export async function believedTime(store: Store, now: number, longestS: number): Promise<boolean> {
  const db = await store.open();
  const row = await db.selectFrom("settings").select("value").where("key", "=", LOOKED_AT).executeTakeFirst();
  const last = row === undefined ? now : Number(row.value);
  const isBelieved = now - last <= longestS && last - now <= SLACK_S;
  await beginAgain(db, now, sql`vanished_at > ${now + SLACK_S}`);
  if (!isBelieved) {
    await beginAgain(db, now, sql`vanished_at > ${now}`);
    await beginAgain(db, now, sql`vanished_at < ${now}`);
  }
  if (row === undefined || !isBelieved || now - last >= WRITTEN_EVERY_S) {
    const value = String(now);
    await db.insertInto("settings").values({ key: LOOKED_AT, value })
      .onConflict((clash) => clash.column("key").doUpdateSet({ value })).execute();
  }
  return isBelieved;
}

/** `which` is a range of `vanished_at` without `now`. */
async function beginAgain(db: Kysely<Schema>, now: number, which: RawBuilder<unknown>): Promise<void> {
  const size = new StepSize(MIN_CHANGED, MAX_CHANGED);
  for (;;) {
    const { numAffectedRows = 0n } = await size.run(() =>
      sql`UPDATE playlist_items SET vanished_at = ${now} WHERE id IN (SELECT id FROM playlist_items
        WHERE vanished_at IS NOT NULL AND ${which} LIMIT ${size.value})`.execute(db)
    );
    if (numAffectedRows === 0n) return;
    await nextTurn();
  }
}

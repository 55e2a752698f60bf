/** How the tables came to be: forward only. A migration that has been released is never changed. */
import { type Kysely, sql, type Transaction } from "kysely";
import { MillraceError } from "../errors.ts";
import type { Schema } from "./schema.ts";

/** Migration i brings version i to version i + 1; each is a list of statements. */
export const MIGRATIONS: readonly (readonly string[])[] = [
  ["CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"],
  [
    `CREATE TABLE playlist_items (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      owner TEXT NOT NULL, title TEXT NOT NULL, display_title TEXT, description TEXT NOT NULL, poster TEXT NOT NULL,
      category TEXT, subcategory TEXT NOT NULL, tags TEXT NOT NULL, languages TEXT, countries TEXT,
      tvg_id TEXT NOT NULL, tvg_name TEXT NOT NULL, tvg_logo TEXT NOT NULL,
      url TEXT, content_id TEXT, infohash TEXT NOT NULL, content_type TEXT NOT NULL, transport_type TEXT NOT NULL,
      is_live INTEGER NOT NULL, is_favorite INTEGER NOT NULL, is_multi_vod INTEGER NOT NULL,
      is_multi_tfile INTEGER NOT NULL, is_wrapped_url INTEGER NOT NULL, locked INTEGER NOT NULL,
      auto_search INTEGER NOT NULL, enabled INTEGER NOT NULL, is_deleted INTEGER NOT NULL,
      external_playlist_id INTEGER NOT NULL, media_group TEXT NOT NULL, hash TEXT NOT NULL, hash_v2 TEXT NOT NULL,
      created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    )`,
    "CREATE INDEX playlist_items_by_place ON playlist_items (is_deleted)",
    "CREATE INDEX playlist_items_by_category ON playlist_items (is_deleted, category)",
    "CREATE INDEX playlist_items_by_hash ON playlist_items (hash)",
    "CREATE INDEX playlist_items_by_hash_v2 ON playlist_items (hash_v2)",
    "CREATE INDEX playlist_items_by_group ON playlist_items (media_group)",
  ],
];

/** Version that a database made by another program has no place for. */
const NO_VERSION = -1;

/**
 * Brings the database to the newest version, or to `target` (tests). All or nothing. Rejects with `conflict` when it was
 * made by a newer release, `config` when it belongs to another program; either way it is left as it was.
 */
export async function migrate(db: Kysely<Schema>, target: number = MIGRATIONS.length): Promise<void> {
  const before = await currentVersion(db);
  requireUsable(before);
  if (before >= target) return;
  await db.transaction().execute(async (trx) => {
    // Another process may have been faster.
    const version = await currentVersion(trx);
    requireUsable(version);
    if (version === 0) await sql`CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)`.execute(trx);
    for (const statements of MIGRATIONS.slice(version, target)) {
      for (const statement of statements) await sql.raw(statement).execute(trx);
    }
    await trx.deleteFrom("schema_version").execute();
    await trx.insertInto("schema_version").values({ version: Math.max(version, target) }).execute();
  });
}

/** Version of the database: 0 when it is empty, -1 when it is not ours. */
export async function currentVersion(db: Kysely<Schema> | Transaction<Schema>): Promise<number> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM sqlite_master WHERE type = 'table'`.execute(db);
  const names = rows.map(({ name }) => name);
  if (!names.includes("schema_version")) return names.length === 0 ? 0 : NO_VERSION;
  const row = await db.selectFrom("schema_version").select("version").executeTakeFirst();
  return typeof row?.version === "number" ? row.version : NO_VERSION;
}

/** Throws `config` or `conflict`, as `migrate` does, for a database of such a version. */
export function requireUsable(version: number): void {
  if (version === NO_VERSION) {
    throw new MillraceError("config", "the database belongs to another program; it is left as it is");
  }
  if (version > MIGRATIONS.length) {
    throw new MillraceError("conflict", "the database was made by a newer release; it is left as it is");
  }
}

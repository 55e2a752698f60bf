/** The history of the tables, forward only. A released migration is never changed. */
import { type Kysely, sql, type Transaction } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import { MillraceError } from "../errors.ts";
import { mediaGroup, searchText } from "./names.ts";
import type { Schema } from "./schema.ts";
import { makeWellFormed } from "./well-formed.ts";

/** A statement, or a function for what one statement cannot do. */
type Step = string | ((trx: Transaction<Schema>) => Promise<void>);

/** Its work is done before any other step: `migrate` mends the texts of earlier versions, which those would read. */
const MENDED: readonly Step[] = [];

/** Migration i upgrades version i to version i + 1. */
export const MIGRATIONS: readonly (readonly Step[])[] = [
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
  [
    "ALTER TABLE playlist_items ADD COLUMN search_text TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE playlist_items ADD COLUMN imported TEXT",
    "ALTER TABLE playlist_items ADD COLUMN edited INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE playlist_items ADD COLUMN vanished_at INTEGER",
    "ALTER TABLE playlist_items ADD COLUMN enabled_before INTEGER",
    renameItems,
    "CREATE INDEX playlist_items_by_source ON playlist_items (external_playlist_id, hash)",
    "CREATE INDEX playlist_items_vanished ON playlist_items (vanished_at) WHERE vanished_at IS NOT NULL",
    // Finds substrings of at least three characters (SQLite, FTS5, section 4.3.4).
    `CREATE VIRTUAL TABLE playlist_search
      USING fts5(search_text, content='playlist_items', content_rowid='id', tokenize='trigram')`,
    "INSERT INTO playlist_search(playlist_search) VALUES ('rebuild')",
    `CREATE TRIGGER playlist_search_insert AFTER INSERT ON playlist_items BEGIN
      INSERT INTO playlist_search(rowid, search_text) VALUES (new.id, new.search_text);
    END`,
    `CREATE TRIGGER playlist_search_delete AFTER DELETE ON playlist_items BEGIN
      INSERT INTO playlist_search(playlist_search, rowid, search_text) VALUES ('delete', old.id, old.search_text);
    END`,
    `CREATE TRIGGER playlist_search_update AFTER UPDATE OF search_text ON playlist_items
      WHEN old.search_text IS NOT new.search_text BEGIN
      INSERT INTO playlist_search(playlist_search, rowid, search_text) VALUES ('delete', old.id, old.search_text);
      INSERT INTO playlist_search(rowid, search_text) VALUES (new.id, new.search_text);
    END`,
    `CREATE TABLE external_playlists (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      type TEXT NOT NULL, category TEXT NOT NULL, name TEXT NOT NULL, url TEXT NOT NULL,
      login TEXT NOT NULL, password TEXT NOT NULL, update_interval INTEGER NOT NULL,
      updated_at INTEGER NOT NULL, last_update INTEGER NOT NULL, next_update INTEGER NOT NULL,
      failures INTEGER NOT NULL, last_error TEXT NOT NULL, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
      allow_private INTEGER NOT NULL
    )`,
    `CREATE TABLE external_entries (
      external_playlist_id INTEGER NOT NULL, position INTEGER NOT NULL, hash TEXT NOT NULL, nth INTEGER NOT NULL,
      name TEXT NOT NULL, fields TEXT NOT NULL, item_id INTEGER, PRIMARY KEY (external_playlist_id, position)
    ) WITHOUT ROWID`,
    "CREATE INDEX external_entries_by_item ON external_entries (item_id)",
    `CREATE TABLE external_removed (
      external_playlist_id INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (external_playlist_id, hash)
    ) WITHOUT ROWID`,
    `CREATE TABLE guides (
      external_playlist_id INTEGER NOT NULL, url TEXT NOT NULL, PRIMARY KEY (external_playlist_id, url)
    ) WITHOUT ROWID`,
  ],
  [
    `CREATE TABLE accounts (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      email TEXT NOT NULL UNIQUE, password TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    )`,
    `CREATE TABLE sign_ins (
      key_id TEXT PRIMARY KEY, account_id INTEGER, login TEXT NOT NULL, issuer TEXT, subject TEXT NOT NULL,
      session_id TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
    ) WITHOUT ROWID`,
    "CREATE INDEX sign_ins_by_account ON sign_ins (account_id)",
    "CREATE INDEX sign_ins_by_end ON sign_ins (expires_at)",
  ],
  // It is unknown who named the addresses of older items.
  ["ALTER TABLE playlist_items ADD COLUMN allow_private INTEGER NOT NULL DEFAULT 0"],
  [
    `CREATE TABLE positions (
      infohash TEXT NOT NULL, file_index INTEGER NOT NULL, position_s INTEGER NOT NULL, duration_s INTEGER NOT NULL,
      updated_at INTEGER NOT NULL, PRIMARY KEY (infohash, file_index)
    ) WITHOUT ROWID`,
    "CREATE INDEX positions_by_time ON positions (updated_at)",
  ],
  [
    "ALTER TABLE external_playlists ADD COLUMN digest TEXT NOT NULL DEFAULT ''",
    // Items that came from lists had this type already; items that callers added did not.
    "UPDATE playlist_items SET transport_type = 'direct' WHERE transport_type = 'http'",
  ],
  // Most of the cost of 100,000 items is in the indexes: these have less to write, and items can be deleted by id.
  [
    ...["playlist_items_by_hash", "playlist_items_by_hash_v2", "playlist_items_by_source"].map((name) =>
      `DROP INDEX ${name}`
    ),
    // 48 bits tell nearly all contents apart, in a quarter of the pages; see `hashIs`.
    "CREATE INDEX playlist_items_by_hash ON playlist_items (substr(hash, 1, 12))",
    "CREATE INDEX playlist_items_by_hash_v2 ON playlist_items (substr(hash_v2, 1, 12))",
    // Each index has ascending ids: lists are read and deleted from one id to the next.
    "CREATE INDEX playlist_items_by_source ON playlist_items (external_playlist_id)",
  ],
  [
    `CREATE TABLE item_checks (
      hash TEXT PRIMARY KEY, state TEXT NOT NULL, peers INTEGER, message TEXT NOT NULL, checked_at INTEGER NOT NULL,
      seen_at INTEGER NOT NULL
    ) WITHOUT ROWID`,
    "CREATE INDEX item_checks_by_time ON item_checks (checked_at)",
  ],
  [
    // A trigger on deletion keeps SQLite from emptying the table at once; `deleteItems` keeps the index of titles up to date.
    "DROP TRIGGER playlist_search_delete",
    // 24 bits still tell nearly all contents apart: among half a million items, one in thirty shares them with another.
    "DROP INDEX playlist_items_by_hash",
    "DROP INDEX playlist_items_by_hash_v2",
    "CREATE INDEX playlist_items_by_hash ON playlist_items (substr(hash, 1, 6))",
    "CREATE INDEX playlist_items_by_hash_v2 ON playlist_items (substr(hash_v2, 1, 6))",
  ],
  // Unknown of lists that are here already; their next update shows it.
  ["ALTER TABLE external_playlists ADD COLUMN from_public INTEGER NOT NULL DEFAULT 0"],
  [
    // What was found out about the items holds until this changes. `deleteItems` counts deletions, because a trigger on
    // deletion keeps SQLite from emptying the table at once.
    "CREATE TABLE playlist_version (version INTEGER NOT NULL)",
    "INSERT INTO playlist_version VALUES (0)",
    ...["INSERT", "UPDATE"].map((change) =>
      `CREATE TRIGGER playlist_version_${change.toLowerCase()} AFTER ${change} ON playlist_items BEGIN
        UPDATE playlist_version SET version = version + 1;
      END`
    ),
    // The numbers that lists gave to channels; see `ChannelNumbers`.
    `CREATE INDEX playlist_items_by_number ON playlist_items (imported ->> '$.attributes."tvg-chno"')
      WHERE imported ->> '$.attributes."tvg-chno"' IS NOT NULL AND is_deleted = 0 AND enabled = 1`,
  ],
  ["ALTER TABLE external_playlists ADD COLUMN shrunk_at INTEGER NOT NULL DEFAULT 0"],
  // Some values of `tvg-id` are none; which ids are on entries of many names shows when the lists are read whole again.
  ["UPDATE external_playlists SET etag = '', last_modified = '', digest = ''"],
  [
    ...["hash", "hash_v2"].flatMap((name) => [
      `ALTER TABLE playlist_items ADD COLUMN first_${name} TEXT`,
      `CREATE INDEX playlist_items_by_first_${name} ON playlist_items (first_${name}) WHERE first_${name} IS NOT NULL`,
    ]),
    "ALTER TABLE external_removed ADD COLUMN tvg_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE external_removed ADD COLUMN title TEXT",
  ],
  [
    // Items that vanished from their lists keep their numbers.
    "DROP INDEX playlist_items_by_number",
    `CREATE INDEX playlist_items_by_number ON playlist_items (imported ->> '$.attributes."tvg-chno"')
      WHERE imported ->> '$.attributes."tvg-chno"' IS NOT NULL AND is_deleted = 0
        AND (enabled = 1 OR vanished_at IS NOT NULL)`,
  ],
  // More letters are folded, and numbers, groups and radio stations are read from lists in more ways.
  [renameItems, "UPDATE external_playlists SET etag = '', last_modified = '', digest = ''"],
  ["ALTER TABLE external_playlists ADD COLUMN user_agent TEXT NOT NULL DEFAULT ''"],
  MENDED,
  ["ALTER TABLE playlist_items ADD COLUMN entry_key INTEGER"],
  ["ALTER TABLE playlist_items ADD COLUMN file_index INTEGER"],
  // Titles are found in more spellings.
  [renameItems],
  [
    `CREATE TABLE devices (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      account_id INTEGER NOT NULL, login TEXT NOT NULL, name TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE,
      created_at INTEGER NOT NULL, seen_at INTEGER NOT NULL
    )`,
    "CREATE INDEX devices_by_account ON devices (account_id)",
  ],
  [
    "ALTER TABLE guides ADD COLUMN allow_private INTEGER NOT NULL DEFAULT 0",
    `CREATE TABLE guide_sources (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      url TEXT NOT NULL UNIQUE, is_given INTEGER NOT NULL, allow_private INTEGER NOT NULL,
      update_interval INTEGER NOT NULL, last_update INTEGER NOT NULL, next_update INTEGER NOT NULL,
      failures INTEGER NOT NULL DEFAULT 0, last_error TEXT NOT NULL DEFAULT '', etag TEXT NOT NULL DEFAULT '',
      last_modified TEXT NOT NULL DEFAULT '', generation INTEGER NOT NULL DEFAULT 0,
      channels INTEGER NOT NULL DEFAULT 0, programmes INTEGER NOT NULL DEFAULT 0
    )`,
    `CREATE TABLE guide_channels (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      source INTEGER NOT NULL, key TEXT NOT NULL, xmltv_id TEXT NOT NULL, name TEXT NOT NULL, icon TEXT NOT NULL,
      is_kept INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL, UNIQUE (source, key)
    )`,
    "CREATE INDEX guide_channels_by_source ON guide_channels (source)",
    "CREATE TABLE guide_names (name TEXT NOT NULL, channel INTEGER NOT NULL, PRIMARY KEY (channel, name)) WITHOUT ROWID",
    `CREATE TABLE guide_matches (
      media_group TEXT NOT NULL, rank INTEGER NOT NULL, source INTEGER NOT NULL, channel INTEGER NOT NULL,
      PRIMARY KEY (media_group, rank, source)
    ) WITHOUT ROWID`,
    "CREATE INDEX guide_matches_by_channel ON guide_matches (channel)",
    `CREATE TABLE programmes (
      id INTEGER PRIMARY KEY,
      channel INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, title TEXT NOT NULL,
      subtitle TEXT NOT NULL, description TEXT NOT NULL, details TEXT NOT NULL, generation INTEGER NOT NULL,
      UNIQUE (channel, start)
    )`,
  ],
  [
    "ALTER TABLE playlist_items ADD COLUMN more_groups TEXT",
    `CREATE TABLE item_groups (
      name TEXT NOT NULL, item_id INTEGER NOT NULL, PRIMARY KEY (name, item_id)
    ) WITHOUT ROWID`,
    // `deleteItems` removes those of deleted items, because a trigger on deletion keeps SQLite from emptying the table at once.
    `CREATE TRIGGER item_groups_insert AFTER INSERT ON playlist_items WHEN new.more_groups IS NOT NULL BEGIN
      INSERT OR IGNORE INTO item_groups SELECT value, new.id FROM json_each(new.more_groups);
    END`,
    `CREATE TRIGGER item_groups_update AFTER UPDATE OF more_groups ON playlist_items
      WHEN old.more_groups IS NOT new.more_groups BEGIN
      DELETE FROM item_groups WHERE item_id = old.id AND name IN (SELECT value FROM json_each(old.more_groups));
      INSERT OR IGNORE INTO item_groups SELECT value, new.id FROM json_each(new.more_groups);
    END`,
    // The user's own imports are not read again. Of several groups all but the first are in `subcategory`.
    `UPDATE playlist_items
      SET more_groups = '[' || replace(json_quote(subcategory), '; ', '","') || ']'
      WHERE external_playlist_id = -1 AND subcategory <> ''
        AND coalesce(imported ->> '$.attributes."group-title"', '') || coalesce(imported ->> '$.group', '') LIKE '%;%'`,
    "UPDATE external_playlists SET etag = '', last_modified = '', digest = ''",
  ],
  [
    "ALTER TABLE playlist_items ADD COLUMN sort_key REAL",
    "CREATE INDEX playlist_items_by_sort_key ON playlist_items (sort_key) WHERE sort_key IS NOT NULL",
  ],
  ["ALTER TABLE external_playlists ADD COLUMN last_error_code TEXT NOT NULL DEFAULT ''"],
  // While a list is staged its entries have no items.
  [
    "DROP INDEX external_entries_by_item",
    "CREATE INDEX external_entries_by_item ON external_entries (item_id) WHERE item_id IS NOT NULL",
  ],
  ["ALTER TABLE external_playlists ADD COLUMN max_connections INTEGER NOT NULL DEFAULT 0"],
  [
    `CREATE TABLE track_choices (
      infohash TEXT NOT NULL, file_index INTEGER NOT NULL, sound TEXT, subtitles TEXT, updated_at INTEGER NOT NULL,
      PRIMARY KEY (infohash, file_index)
    ) WITHOUT ROWID`,
    "CREATE INDEX track_choices_by_time ON track_choices (updated_at)",
  ],
];

/** From this version of the database on its texts are well-formed. */
export const WELL_FORMED = MIGRATIONS.indexOf(MENDED) + 1;

/** Version of a database that another program made. */
const NO_VERSION = -1;
/** Items that `renameItems` handles at once. */
const RENAMED_AT_ONCE = 500;

/**
 * Upgrades the database to the newest version, or to `target` (tests). All or nothing. Rejects with `conflict` when a
 * newer release made it, `config` when it belongs to another program; either way it is left unchanged.
 */
export async function migrate(db: Kysely<Schema>, target: number = MIGRATIONS.length): Promise<void> {
  const before = await currentVersion(db);
  requireUsable(before);
  if (before >= target) return;
  await db.transaction().execute(async (trx) => {
    // Another process may have migrated it meanwhile.
    const version = await currentVersion(trx);
    requireUsable(version);
    if (version === 0) await sql`CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)`.execute(trx);
    if (version > 0 && version < WELL_FORMED && target >= WELL_FORMED) await makeWellFormed(trx);
    for (const steps of MIGRATIONS.slice(version, target)) {
      for (const step of steps) {
        if (typeof step === "string") await sql.raw(step).execute(trx);
        else await step(trx);
      }
      // On a local file all of it completes at once: a new database would keep sockets waiting for a tenth of a second.
      await nextTurn();
    }
    await trx.deleteFrom("schema_version").execute();
    await trx.insertInto("schema_version").values({ version: Math.max(version, target) }).execute();
  });
}

/** Recomputes the key for comparing names, for all items. */
async function renameItems(trx: Transaction<Schema>): Promise<void> {
  for (let after = 0;;) {
    const page = await trx.selectFrom("playlist_items").select(["id", "title", "tvg_id"]).where("id", ">", after)
      .orderBy("id").limit(RENAMED_AT_ONCE).execute();
    const last = page[page.length - 1];
    if (last === undefined) return;
    const names = page.map(({ id, title, tvg_id }) => ({
      id,
      text: searchText(title),
      media: mediaGroup({ title, tvgId: tvg_id }),
    }));
    await sql`UPDATE playlist_items SET search_text = made.value ->> 'text', media_group = made.value ->> 'media'
      FROM json_each(${JSON.stringify(names)}) AS made WHERE playlist_items.id = made.value ->> 'id'`.execute(trx);
    after = last.id;
  }
}

/** Version of the database: 0 when it is empty, -1 when it is not ours. */
export async function currentVersion(db: Kysely<Schema> | Transaction<Schema>): Promise<number> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM sqlite_master WHERE type = 'table'`.execute(db);
  const names = rows.map(({ name }) => name);
  if (!names.includes("schema_version")) return names.length === 0 ? 0 : NO_VERSION;
  const row = await db.selectFrom("schema_version").select("version").executeTakeFirst();
  return typeof row?.version === "number" ? row.version : NO_VERSION;
}

/** Throws `config` or `conflict`, as `migrate` does, for such a version. */
export function requireUsable(version: number): void {
  if (version === NO_VERSION) {
    throw new MillraceError("config", "the database belongs to another program; it is left unchanged");
  }
  if (version > MIGRATIONS.length) {
    throw new MillraceError(
      "conflict",
      `the database was made by a newer release (its version is ${version}, this release knows ${MIGRATIONS.length}); it is ` +
        "left unchanged: use that release, or restore a backup that this one made",
    );
  }
}

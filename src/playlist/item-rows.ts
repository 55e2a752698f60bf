/** Writing many items in one statement. */
import { type Kysely, sql, type Transaction } from "kysely";
import type { Schema } from "../database/schema.ts";
import type { EntryFields } from "./entry.ts";

/** Columns of a new item: what its entry says, and whose it is. */
export interface NewRow extends EntryFields {
  readonly owner: string;
  readonly external_playlist_id: number;
  /** See `PlaylistItemsTable`. */
  readonly allow_private: number;
  /** Unix seconds. */
  readonly created_at: number;
  readonly updated_at: number;
}

/** What entries say nothing of. */
const REST = {
  description: "''",
  poster: "''",
  tags: "'[]'",
  is_favorite: "0",
  is_multi_vod: "0",
  is_multi_tfile: "0",
  is_wrapped_url: "0",
  locked: "0",
  auto_search: "0",
  enabled: "1",
  is_deleted: "0",
} as const;

/** Columns that an entry decides. */
export const ENTRY_COLUMNS: readonly (keyof EntryFields)[] = [
  "title",
  "category",
  "subcategory",
  "languages",
  "countries",
  "tvg_id",
  "tvg_name",
  "tvg_logo",
  "url",
  "content_id",
  "infohash",
  "content_type",
  "transport_type",
  "is_live",
  "media_group",
  "hash",
  "hash_v2",
  "search_text",
  "imported",
];

const COLUMNS: readonly (keyof NewRow)[] = [
  ...ENTRY_COLUMNS,
  "owner",
  "external_playlist_id",
  "allow_private",
  "created_at",
  "updated_at",
];

/**
 * The rows go as one JSON value: thousands of bound parameters would cost more than the statement itself. Each is an array,
 * without the names, and parsed once, by jsonb(), not for each of its columns; the limit keeps SQLite from putting the call
 * into each of them all the same.
 */
const INSERT = `INSERT INTO playlist_items (${[...COLUMNS, ...Object.keys(REST)].join(", ")})
  SELECT ${[...COLUMNS.map((_, at) => `value ->> ${at}`), ...Object.values(REST)].join(", ")}
  FROM (SELECT jsonb(value) AS value FROM json_each(`;

/** Adds `rows`, in their order. */
export async function insertRows(
  db: Kysely<Schema> | Transaction<Schema>,
  rows: readonly NewRow[],
): Promise<void> {
  if (rows.length === 0) return;
  const values = JSON.stringify(rows.map((row) => COLUMNS.map((name) => row[name])));
  await sql`${sql.raw(INSERT)}${values}) LIMIT -1 OFFSET 0)`.execute(db);
}

/** Writing many items in one statement. */
import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import type { Schema } from "../database/schema.ts";
import type { EntryFields } from "./entry.ts";

/** Columns with the same value in all items that are written together. */
export interface SharedColumns {
  readonly owner: string;
  readonly external_playlist_id: number;
  /** See `PlaylistItemsTable`. */
  readonly allow_private: number;
  /** When they were made, Unix seconds. */
  readonly now: number;
}

/** Values of the columns that do not come from entries. */
const REST = {
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

/** Columns whose values come from the entry. */
export const ENTRY_COLUMNS: readonly (keyof EntryFields)[] = [
  "title",
  "category",
  "subcategory",
  "more_groups",
  "languages",
  "countries",
  "tvg_id",
  "tvg_name",
  "tvg_logo",
  "url",
  "content_id",
  "infohash",
  "file_index",
  "content_type",
  "transport_type",
  "is_live",
  "media_group",
  "hash",
  "hash_v2",
  "search_text",
  "imported",
];

/** Columns of new items that a refresh does not write, with what most entries have. */
const NEW_COLUMNS = { description: "", poster: "", entry_key: null, sort_key: null } as const;
const INSERTED = [...ENTRY_COLUMNS, "description", "poster", "entry_key", "sort_key"] as const;

/**
 * The entries are passed as one JSON value: thousands of bound parameters would cost more than the statement itself. Each
 * entry is an array without column names. jsonb() parses it once instead of once per column; the limit keeps SQLite from
 * inlining the call into every column.
 */
const INSERT = `INSERT INTO playlist_items (owner, external_playlist_id, allow_private, created_at, updated_at,
    ${[...INSERTED, ...Object.keys(REST)].join(", ")})
  SELECT shared.*, ${[...INSERTED.map((_, at) => `value ->> ${at}`), ...Object.values(REST)].join(", ")}
  FROM (SELECT jsonb(value) AS value FROM json_each(`;

/** Adds items of `entries`, in their order. */
export async function insertRows(
  db: Kysely<Schema> | Transaction<Schema>,
  entries: readonly EntryFields[],
  shared: SharedColumns,
): Promise<void> {
  if (entries.length > 0) await insertText(db, sql`${rowsText(entries)}`, shared);
}

/** The rows of items of `entries`, as `insertText` takes them. */
export function rowsText(entries: readonly EntryFields[]): string {
  return JSON.stringify(entries.map((entry) => {
    const whole = { ...NEW_COLUMNS, ...entry };
    return INSERTED.map((name) => whole[name]);
  }));
}

/** Adds the items of rows that `rowsText` made, in their order; returns how many. `text` may be a query for that. */
export async function insertText(
  db: Kysely<Schema> | Transaction<Schema>,
  text: RawBuilder<unknown>,
  { owner, external_playlist_id, allow_private, now }: SharedColumns,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`${sql.raw(INSERT)}${text}) LIMIT -1 OFFSET 0),
    (SELECT ${owner}, ${external_playlist_id}, ${allow_private}, ${now}, ${now}) AS shared`.execute(db);
  return Number(numAffectedRows);
}

/**
 * Items as JSON, written by SQLite itself: 100,000 rows as objects would take a second of the engine's only thread and a
 * gigabyte of memory; as text they are a few hundred pages.
 */
import { type RawBuilder, sql } from "kysely";

/** Conversion of a column to a JSON value; `plain` columns are taken as they are. */
type Kind = "plain" | "flag" | "list";

/** The fields of section 2.8 of the HTTP API, in its order. Column and field have the same name. */
const FIELDS: readonly (readonly [string, Kind])[] = [
  ["id", "plain"],
  ["title", "plain"],
  ["display_title", "plain"],
  ["description", "plain"],
  ["poster", "plain"],
  ["tvg_id", "plain"],
  ["tvg_name", "plain"],
  ["tvg_logo", "plain"],
  ["subcategory", "plain"],
  ["category", "plain"],
  ["languages", "plain"],
  ["countries", "plain"],
  ["url", "plain"],
  ["content_id", "plain"],
  ["infohash", "plain"],
  ["tags", "list"],
  ["content_type", "plain"],
  ["transport_type", "plain"],
  ["is_live", "plain"],
  ["is_favorite", "flag"],
  ["is_multi_vod", "flag"],
  ["is_multi_tfile", "flag"],
  ["locked", "flag"],
  ["is_deleted", "flag"],
  ["auto_search", "flag"],
  ["enabled", "flag"],
  ["is_wrapped_url", "plain"],
  ["external_playlist_id", "plain"],
  ["created_at", "plain"],
  ["updated_at", "plain"],
];

/** Stands for the address of a picture in the expressions below. */
const LOGO = "@logo@";

const ICONS = `CASE WHEN tvg_logo <> '' AND poster <> '' THEN json_array(${LOGO}, poster)
  WHEN tvg_logo <> '' THEN json_array(${LOGO}) WHEN poster <> '' THEN json_array(poster) ELSE json('[]') END`;

/** SQL: the item is searched for, or has nothing to play yet. */
const SHOW_AUTOSEARCH = "auto_search OR (infohash = '' AND content_id IS NULL AND url IS NULL)";

// SQLite evaluates json() of a constant once per query, but parses any other argument again for every row.
const flag = (expression: string) => `iif(${expression}, json('true'), json('false'))`;
const list = (column: string) => `iif(${column} = '[]', json('[]'), json(${column}))`;

const trashed = FIELDS.map(([name, kind]) =>
  `'${name}', ${name === "tvg_logo" ? LOGO : kind === "flag" ? flag(name) : kind === "list" ? list(name) : name}`
);

/** An item of the trash; one of the playlist has a few more fields. */
const TRASHED = `json_object(${trashed.join(", ")})`;
const LISTED = `json_object(${
  [
    ...trashed,
    `'icons', ${ICONS}`,
    "'hash', hash",
    "'hash_v2', hash_v2",
    `'show_autosearch', ${flag(SHOW_AUTOSEARCH)}`,
  ].join(", ")
})`;

/**
 * SQL expression for the JSON of an item of the trash or the playlist. A picture that was uploaded with an item (up to 170 KB
 * as a `data:` URL) is replaced by its address: `logoUrl` followed by the item's id and a version, so that clients can cache
 * it and a new picture has a new address. Without `logoUrl` the `data:` URL stays.
 */
export function itemJson(place: "trash" | "playlist", logoUrl?: string): RawBuilder<string> {
  const logo = logoUrl === undefined
    ? sql.raw("tvg_logo")
    : sql`iif(substr(tvg_logo, 1, 5) = 'data:', ${logoUrl} || id || '&v=' || updated_at, tvg_logo)`;
  const parts = (place === "trash" ? TRASHED : LISTED).split(LOGO).map((part) => sql.raw(part));
  return sql.join(parts, logo) as RawBuilder<string>;
}

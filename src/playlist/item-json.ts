/**
 * Items as JSON, written by SQLite itself: a hundred thousand rows as objects would take a second of the engine's only
 * thread and a gigabyte of memory; as text they are a few hundred pages.
 */

/** How a column becomes a value; `plain` columns as they are. */
type Kind = "plain" | "flag" | "list";

/** Section 2.8, in its order. Column and field have the same name. */
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

const ICONS = `CASE WHEN tvg_logo <> '' AND poster <> '' THEN json_array(tvg_logo, poster)
  WHEN tvg_logo <> '' THEN json_array(tvg_logo) WHEN poster <> '' THEN json_array(poster) ELSE json('[]') END`;

/** An item that is searched for, or has nothing to play yet. */
const SHOW_AUTOSEARCH = "auto_search OR (infohash = '' AND content_id IS NULL AND url IS NULL)";

// What is constant inside json() SQLite makes once a page; anything else it parses again for every row.
const flag = (expression: string) => `iif(${expression}, json('true'), json('false'))`;
const list = (column: string) => `iif(${column} = '[]', json('[]'), json(${column}))`;

const trashed = FIELDS.map(([name, kind]) =>
  `'${name}', ${kind === "flag" ? flag(name) : kind === "list" ? list(name) : name}`
);

/** SQL expression: an element of the trash. */
export const TRASH_ITEM_JSON = `json_object(${trashed.join(", ")})`;

/** SQL expression: an element of the playlist, which has some fields more. */
export const LISTED_ITEM_JSON = `json_object(${
  [
    ...trashed,
    `'icons', ${ICONS}`,
    "'hash', hash",
    "'hash_v2', hash_v2",
    `'show_autosearch', ${flag(SHOW_AUTOSEARCH)}`,
  ].join(", ")
})`;

/**
 * Items as JSON, written by SQLite itself: 100,000 rows as objects would take a second of the engine's only thread and a
 * gigabyte of memory; as text they are a few hundred pages.
 */
import { type RawBuilder, sql } from "kysely";
import { nowAndNextJson } from "./guide/programmes.ts";

/** How items are written. */
export interface ItemJsonOptions {
  readonly logoUrl?: string | undefined;
  readonly guideAtS?: number | undefined;
}

/** Conversion of a column to a JSON value; `plain` columns are taken as they are. */
type Kind = "plain" | "flag" | "list";

/** The fields of section 2.8 of the HTTP API, in its order, and our own after them. Column and field have the same name. */
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
  ["file_index", "plain"],
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
    "'hash', coalesce(first_hash, hash)",
    "'hash_v2', coalesce(first_hash_v2, hash_v2)",
    `'show_autosearch', ${flag(SHOW_AUTOSEARCH)}`,
  ].join(", ")
})`;

/** Elements of a list in a text column, which separates them by commas or semicolons, as JSON. */
const listIn = (column: string) =>
  `iif(coalesce(${column}, '') = '', json('[]'),
    json('[' || replace(replace(replace(json_quote(${column}), ';', ','), ', ', ','), ',', '","') || ']'))`;

/** What a check says about an item that is stored with its hash; nothing when it was never checked. */
const check = (column: string) =>
  `(SELECT ${column} FROM item_checks WHERE item_checks.hash = playlist_items.hash AND state <> 'unknown')`;

/**
 * SQL expression for the JSON of a torrent or broadcast as clients that search for channels read it. `status` is 2 when the
 * last check found it alive, else 1; `availability` is 0 when it was silent, else 1. An item that was never checked is as
 * available as the user takes it to be, at the time `nowS`: clients hide what they have not heard of for days.
 */
export function foundJson(nowS: number): RawBuilder<string> {
  const [before, after] = `json_object('name', title, 'infohash', infohash,
    'status', iif(${check("state")} = 'alive', 2, 1), 'availability', iif(${check("state")} = 'silent', 0, 1),
    'availability_updated_at', coalesce(${check("checked_at")}, CAST(@now@ AS INTEGER)),
    'categories', iif(coalesce(category, '') = '', json('[]'),
      iif(more_groups IS NULL, json_array(category), json('[' || json_quote(category) || ',' || substr(more_groups, 2)))),
    'languages', ${listIn("languages")}, 'countries', ${listIn("countries")},
    'channel_id', (SELECT min(member.id) FROM playlist_items AS member
      WHERE member.media_group = playlist_items.media_group), 'bitrate', 0)`.split("@now@");
  return sql`${sql.raw(before!)}${nowS}${sql.raw(after!)}`;
}

/** SQL expression for the JSON list of an item's pictures. `logoUrl` as for `itemJson`. */
export function iconsJson(logoUrl?: string): RawBuilder<string> {
  return sql.join(ICONS.split(LOGO).map((part) => sql.raw(part)), logoOf(logoUrl)) as RawBuilder<string>;
}

/**
 * SQL expression for the JSON of an item of the trash or the playlist. A picture that was uploaded with an item (up to 170 KB
 * as a `data:` URL) is replaced by its address: `logoUrl` followed by the item's id and a version, so that clients can cache
 * it and a new picture has a new address. Without `logoUrl` the `data:` URL stays. With `guideAtS`, Unix seconds, the field
 * `epg` has the programme that is on then, and the next one.
 */
export function itemJson(
  place: "trash" | "playlist",
  { logoUrl, guideAtS }: ItemJsonOptions = {},
): RawBuilder<string> {
  const parts = (place === "trash" ? TRASHED : LISTED).split(LOGO).map((part) => sql.raw(part));
  const item = sql.join(parts, logoOf(logoUrl)) as RawBuilder<string>;
  return guideAtS === undefined ? item : sql`json_insert(${item}, '$.epg', json(${nowAndNextJson(guideAtS)}))`;
}

function logoOf(logoUrl: string | undefined): RawBuilder<unknown> {
  return logoUrl === undefined
    ? sql.raw("tvg_logo")
    : sql`iif(substr(tvg_logo, 1, 5) = 'data:', ${logoUrl} || id || '&v=' || updated_at, tvg_logo)`;
}

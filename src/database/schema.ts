/** Tables of the database, as kysely sees them. `migrations.ts` makes them. */
import type { Generated } from "kysely";

/** Settings by name; values are JSON. */
export interface SettingsTable {
  key: string;
  value: string;
}

/** Playlist items, those in the trash included. Booleans are 0 and 1, times Unix seconds. */
export interface PlaylistItemsTable {
  /** Never used twice, also after a deletion. */
  id: Generated<number>;
  /** Empty: everybody's. */
  owner: string;
  title: string;
  display_title: string | null;
  description: string;
  poster: string;
  category: string | null;
  subcategory: string;
  /** JSON list of strings. */
  tags: string;
  languages: string | null;
  countries: string | null;
  tvg_id: string;
  tvg_name: string;
  tvg_logo: string;
  url: string | null;
  content_id: string | null;
  /** Empty: not known. */
  infohash: string;
  content_type: string;
  transport_type: string;
  /** 1 live, 0 VOD, -1 unknown. */
  is_live: number;
  is_favorite: number;
  is_multi_vod: number;
  is_multi_tfile: number;
  is_wrapped_url: number;
  locked: number;
  auto_search: number;
  enabled: number;
  /** 1: in the trash. */
  is_deleted: number;
  /** -1: the user's own. */
  external_playlist_id: number;
  /** Items of one channel share it. */
  media_group: string;
  hash: string;
  hash_v2: string;
  created_at: number;
  updated_at: number;
}

/** All tables. */
export interface Schema {
  settings: SettingsTable;
  playlist_items: PlaylistItemsTable;
  schema_version: { version: number };
}

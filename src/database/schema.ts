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
  /** 1: its address came from a caller who may name private ones; items of external playlists have their list's. */
  allow_private: Generated<number>;
  /** Items of one channel share it. */
  media_group: string;
  hash: string;
  hash_v2: string;
  created_at: number;
  updated_at: number;
  /** Title as `foldText` gives it: what searches look into. */
  search_text: Generated<string>;
  /** What an M3U list said of it (`ImportedEntry`, JSON); null when it came from no list. */
  imported: Generated<string | null>;
  /** Sum of `EDITED` bits: what the user changed and a refresh leaves alone. */
  edited: Generated<number>;
  /** When its external playlist was first seen without it; null while it is there. */
  vanished_at: Generated<number | null>;
  /** `enabled` as it was, and will be when the item comes back; null unless it vanished. */
  enabled_before: Generated<number | null>;
}

/** Lists that are fetched again and again. Times are Unix seconds, 0 never. */
export interface ExternalPlaylistsTable {
  id: Generated<number>;
  /** `content` or `broadcast`. */
  type: string;
  category: string;
  name: string;
  url: string;
  login: string;
  /** Sealed by `SecretBox`; empty when there is none. */
  password: string;
  /** Seconds; 0: by hand alone. */
  update_interval: number;
  updated_at: number;
  last_update: number;
  next_update: number;
  /** Failed updates in a row. */
  failures: number;
  last_error: string;
  etag: string;
  last_modified: string;
  /** 1: added by a caller who may name private addresses. */
  allow_private: number;
}

/** Entries of a list that is being read, until the items are matched with them. */
export interface ExternalEntriesTable {
  external_playlist_id: number;
  position: number;
  hash: string;
  /** How many entries before it have the same hash. */
  nth: number;
  /** What it is matched by when its address changed. */
  name: string;
  /** Columns of the item, JSON. */
  fields: string;
  item_id: number | null;
}

/** Who can sign in by email and password. Times are Unix seconds. */
export interface AccountsTable {
  id: Generated<number>;
  /** Lower-case. */
  email: string;
  /** Hashed, in the PHC string format. */
  password: string;
  created_at: number;
  updated_at: number;
}

/** Who is signed in, one row an engine. Times are Unix seconds. */
export interface SignInsTable {
  /** Thumbprint of the key in the state directory of the engine that it belongs to. */
  key_id: string;
  /** Null: an identity provider vouched for the user. */
  account_id: number | null;
  login: string;
  /** The identity provider; null for local accounts. */
  issuer: string | null;
  subject: string;
  session_id: string;
  created_at: number;
  expires_at: number;
}

/** All tables. */
export interface Schema {
  settings: SettingsTable;
  playlist_items: PlaylistItemsTable;
  external_playlists: ExternalPlaylistsTable;
  external_entries: ExternalEntriesTable;
  /** Items that the user deleted for good and that a refresh is not to bring back. */
  external_removed: { external_playlist_id: number; hash: string };
  /** Programme guides that lists name; -1: imported lists. */
  guides: { external_playlist_id: number; url: string };
  accounts: AccountsTable;
  sign_ins: SignInsTable;
  schema_version: { version: number };
}

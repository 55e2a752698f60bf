/** Tables of the database, as kysely sees them. `migrations.ts` makes them. */
import type { Generated } from "kysely";

/** Settings by name; values are JSON. */
export interface SettingsTable {
  key: string;
  value: string;
}

/** Playlist items, including those in the trash. Booleans are 0 and 1, times Unix seconds. */
export interface PlaylistItemsTable {
  /** Never reused, even after a deletion. */
  id: Generated<number>;
  /** Empty: belongs to everybody. */
  owner: string;
  title: string;
  display_title: string | null;
  description: string;
  poster: string;
  category: string | null;
  subcategory: string;
  /** Further groups of its entry, a JSON list; null when there are none. Triggers keep `item_groups` up to date. */
  more_groups: Generated<string | null>;
  /** JSON list of strings. */
  tags: string;
  languages: string | null;
  countries: string | null;
  tvg_id: string;
  tvg_name: string;
  tvg_logo: string;
  url: string | null;
  content_id: string | null;
  /** Empty: unknown. */
  infohash: string;
  /** File of the torrent that it plays; null: the one that playback chooses. */
  file_index: Generated<number | null>;
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
  /** -1: added by the user. */
  external_playlist_id: number;
  /**
   * 1: a caller who may name private addresses gave its address. -1: a list did that a server of the Internet gave. 0
   * for items of external playlists, where the list's columns count.
   */
  allow_private: Generated<number>;
  /** Shared by all items of one channel. */
  media_group: string;
  /** Of its present address, id or title: `contentHashes`. */
  hash: string;
  hash_v2: string;
  /** Its hashes as first received, which the API shows; null while they are the same. */
  first_hash: Generated<string | null>;
  first_hash_v2: Generated<string | null>;
  created_at: number;
  updated_at: number;
  /** Title in the form of `searchText`, used by searches. */
  search_text: Generated<string>;
  /** The entry of an M3U list that it came from (`ImportedEntry`, JSON); null when it did not come from a list. */
  imported: Generated<string | null>;
  /** Stands for the id in the order of the library (`playlist/external/order.ts`); null: the id itself. */
  sort_key: Generated<number | null>;
  /** Key of the entry of its external list that it is up to date with (`entryKey`); null: unknown, or no such list. */
  entry_key: Generated<number | null>;
  /** Sum of `EDITED` bits: fields the user changed, which a refresh leaves alone. */
  edited: Generated<number>;
  /** When its external playlist was first seen without it; null while the playlist has it. */
  vanished_at: Generated<number | null>;
  /** Value of `enabled` to restore when the item comes back; null unless it vanished. */
  enabled_before: Generated<number | null>;
}

/** Lists that are fetched periodically. Times are Unix seconds, 0 never. */
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
  /** Seconds; 0: only by hand. */
  update_interval: number;
  updated_at: number;
  last_update: number;
  next_update: number;
  /** Failed updates in a row. */
  failures: number;
  last_error: string;
  /** The code of that error (`ErrorCode`); empty without one, and in rows of older releases. */
  last_error_code: Generated<string>;
  etag: string;
  last_modified: string;
  /** Size, address and SHA-256 of the list that the items came from, as `ListDigest` writes them; empty when unknown. */
  digest: Generated<string>;
  /** 1: added by a caller who may name private addresses. */
  allow_private: number;
  /** The name under which it is fetched; empty: the engine's own. */
  user_agent: Generated<string>;
  /** When an update was first refused because the list had lost most of its items; 0 when the last update was not. */
  shrunk_at: Generated<number>;
  /** 1: a server of the Internet gave it once; its items may not name private addresses. */
  from_public: Generated<number>;
  /** Connections that its provider allows at once; 0: any number. */
  max_connections: Generated<number>;
}

/** Entries of a list that is being read, until they are matched with the items. */
export interface ExternalEntriesTable {
  external_playlist_id: number;
  position: number;
  hash: string;
  /** How many earlier entries have the same hash. */
  nth: number;
  /** The key by which it is matched if its address changed. */
  name: string;
  /** Columns of the item, JSON. */
  fields: string;
  item_id: number | null;
}

/** Accounts that can sign in by email and password. Times are Unix seconds. */
export interface AccountsTable {
  id: Generated<number>;
  /** Lower-case. */
  email: string;
  /** Hashed, in the PHC string format. */
  password: string;
  created_at: number;
  updated_at: number;
}

/** Current sign-ins, one row per engine. Times are Unix seconds. */
export interface SignInsTable {
  /** Thumbprint of the key in the state directory of its engine. */
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

/** Devices that are signed in to the page. Times are Unix seconds. */
export interface DevicesTable {
  id: Generated<number>;
  account_id: number;
  login: string;
  name: string;
  /** SHA-256 of its token, hexadecimal. */
  token_hash: string;
  created_at: number;
  seen_at: number;
}

/** The positions at which playback of files stopped. Seconds; `updated_at` Unix seconds. */
export interface PositionsTable {
  infohash: string;
  file_index: number;
  position_s: number;
  duration_s: number;
  updated_at: number;
}

/**
 * What viewers chose to hear and read in files; without infohash: last in any file. Null: nothing yet. `updated_at` Unix
 * seconds.
 */
export interface TrackChoicesTable {
  infohash: string;
  file_index: number;
  sound: string | null;
  subtitles: string | null;
  updated_at: number;
}

/** The results of looking for peers that share a content. Times are Unix seconds. */
export interface ItemChecksTable {
  /** `hash` of the items. */
  hash: string;
  /** `alive`, `silent` or `unknown`. */
  state: string;
  peers: number | null;
  message: string;
  checked_at: number;
  /** When it was last alive; 0: never. */
  seen_at: number;
}

/** An item that the user deleted permanently and that a refresh must not bring back. */
export interface ExternalRemovedTable {
  external_playlist_id: number;
  /** As the item's. */
  hash: string;
  /** By which it is found again when its address changes; empty in rows of older releases. */
  tvg_id: Generated<string>;
  /** The title in the list; null in rows of older releases. */
  title: Generated<string | null>;
}

/** Programme guides that are fetched periodically. Times are Unix seconds, 0 never. */
export interface GuideSourcesTable {
  id: Generated<number>;
  url: string;
  /** 1: a caller gave it; 0: a list names it, and it goes when no list does any more. */
  is_given: number;
  /** 1: the caller that gave it may name private addresses. */
  allow_private: number;
  /** Seconds; 0: only by hand. */
  update_interval: number;
  last_update: number;
  next_update: number;
  /** Failed updates in a row. */
  failures: Generated<number>;
  last_error: Generated<string>;
  etag: Generated<string>;
  last_modified: Generated<string>;
  /** Number of its newest update; what an update finds gets its number. */
  generation: Generated<number>;
  /** Channels of the guide, and programmes kept, after its last update. */
  channels: Generated<number>;
  programmes: Generated<number>;
}

/** Channels of guides, also those that the library lacks. */
export interface GuideChannelsTable {
  id: Generated<number>;
  source: number;
  /** Its id in the form of `channelId`. */
  key: string;
  /** Its id as the guide writes it. */
  xmltv_id: string;
  name: string;
  icon: string;
  /** 1: its programmes were kept at the last update. */
  is_kept: Generated<number>;
  generation: number;
}

/** Programmes of channels in the library. Times are Unix seconds. */
export interface ProgrammesTable {
  id: Generated<number>;
  channel: number;
  start: number;
  stop: number;
  /** Of the guide's first language. */
  title: string;
  subtitle: string;
  description: string;
  /** `ProgrammeDetails`, JSON. */
  details: string;
  generation: number;
}

/** All tables. */
export interface Schema {
  settings: SettingsTable;
  playlist_items: PlaylistItemsTable;
  external_playlists: ExternalPlaylistsTable;
  external_entries: ExternalEntriesTable;
  external_removed: ExternalRemovedTable;
  /** The `more_groups` of all items, to look for. */
  item_groups: { name: string; item_id: number };
  /** Programme guides named by lists; -1: imported lists. */
  guides: {
    external_playlist_id: number;
    url: string;
    /** 1: a caller who may name private addresses imported the list. */
    allow_private: Generated<number>;
  };
  guide_sources: GuideSourcesTable;
  guide_channels: GuideChannelsTable;
  /** Names of guides' channels, normalised. */
  guide_names: { name: string; channel: number };
  /** The channel of each guide that is a channel of the library. */
  guide_matches: {
    media_group: string;
    /** 0: by id, in a guide that a caller gave; 1: by id, in one that a list names; 2 and 3: by name. */
    rank: number;
    source: number;
    channel: number;
  };
  programmes: ProgrammesTable;
  accounts: AccountsTable;
  sign_ins: SignInsTable;
  devices: DevicesTable;
  positions: PositionsTable;
  track_choices: TrackChoicesTable;
  item_checks: ItemChecksTable;
  /** One row, whose number grows with every change of `playlist_items`. */
  playlist_version: { version: number };
  schema_version: { version: number };
}

/** Playlist items as the API shows them: section 2.8. */
import { z } from "zod";
import type { PlaylistItem } from "../../../playlist/items.ts";

/** Elements of the trash. */
export const TRASH_ITEM = z.object({
  id: z.int(),
  title: z.string(),
  display_title: z.string().nullable(),
  description: z.string(),
  poster: z.string(),
  tvg_id: z.string(),
  tvg_name: z.string(),
  tvg_logo: z.string(),
  category: z.string().nullable(),
  subcategory: z.string(),
  languages: z.string().nullable(),
  countries: z.string().nullable(),
  url: z.string().nullable(),
  content_id: z.string().nullable(),
  infohash: z.string(),
  tags: z.array(z.string()),
  content_type: z.string(),
  transport_type: z.string(),
  is_live: z.int(),
  is_favorite: z.boolean(),
  is_multi_vod: z.boolean(),
  is_multi_tfile: z.boolean(),
  locked: z.boolean(),
  is_deleted: z.boolean(),
  auto_search: z.boolean(),
  enabled: z.boolean(),
  is_wrapped_url: z.int(),
  external_playlist_id: z.int(),
  created_at: z.int(),
  updated_at: z.int(),
});

/** Elements of the playlist have some fields more. */
export const LISTED_ITEM = TRASH_ITEM.extend({
  icons: z.array(z.string()),
  hash: z.string(),
  hash_v2: z.string(),
  show_autosearch: z.boolean(),
});

/** A row as an element of the trash. */
export function trashItem(row: PlaylistItem): z.input<typeof TRASH_ITEM> {
  const { owner: _owner, media_group: _group, hash: _hash, hash_v2: _hashV2, ...shown } = row;
  return {
    ...shown,
    tags: JSON.parse(row.tags) as string[],
    is_favorite: row.is_favorite === 1,
    is_multi_vod: row.is_multi_vod === 1,
    is_multi_tfile: row.is_multi_tfile === 1,
    locked: row.locked === 1,
    is_deleted: row.is_deleted === 1,
    auto_search: row.auto_search === 1,
    enabled: row.enabled === 1,
  };
}

/** A row as an element of the playlist. `show_autosearch`: searching is on, or the item has nothing to play yet. */
export function listedItem(row: PlaylistItem): z.input<typeof LISTED_ITEM> {
  const hasContent = row.infohash !== "" || row.content_id !== null || row.url !== null;
  return {
    ...trashItem(row),
    icons: [row.tvg_logo, row.poster].filter((icon) => icon !== ""),
    hash: row.hash,
    hash_v2: row.hash_v2,
    show_autosearch: row.auto_search === 1 || !hasContent,
  };
}

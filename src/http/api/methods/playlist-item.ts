/** Playlist items as the API shows them: section 2.8. */
import * as z from "zod";
import type { ApiParts } from "../parts.ts";

/** A programme of a guide. */
export const PROGRAMME = z.object({
  start: z.int().describe("Unix seconds"),
  stop: z.int().describe("Unix seconds"),
  language: z.string().describe("As the guide writes it; empty: unknown"),
  title: z.string(),
  subtitle: z.string(),
  description: z.string(),
  categories: z.array(z.string()),
  icon: z.string().describe("Address of a picture; empty: none"),
  episode: z.string().describe("S02E05, or as the guide writes it; empty: unknown"),
  year: z.int().nullable(),
}).meta({ id: "Programme" });

/** What is on a channel, and what is next. */
export const NOW_AND_NEXT = {
  now: PROGRAMME.nullable().describe("What is on; null: unknown"),
  next: PROGRAMME.nullable().describe("What begins next within a day; null: unknown"),
};

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
  file_index: z.int().nullable().describe(
    "File of the torrent, as _idx of playback; null: the one that playback chooses",
  ),
}).meta({ id: "TrashItem" });

/** Elements of the playlist have some fields more. */
export const LISTED_ITEM = TRASH_ITEM.extend({
  icons: z.array(z.string()),
  hash: z.string().describe(
    "SHA-1 of infohash:…, else content_id:…, url:… or title:… (letters and digits) as the item came in; never changes",
  ),
  hash_v2: z.string().describe("The same with SHA-256"),
  show_autosearch: z.boolean(),
  epg: z.object(NOW_AND_NEXT).optional().describe("Our addition, with show_epg alone"),
}).meta({ id: "PlaylistItem" });

/** The time for which a response says what is on, Unix seconds. */
export async function guideTime({ guide, clock }: Pick<ApiParts, "guide" | "clock">): Promise<number> {
  await guide.noticeChanges();
  return Math.floor(clock.now() / 1000);
}

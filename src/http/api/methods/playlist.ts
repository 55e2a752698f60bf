/** "Playlist" of section 4.4: items, flags, trash. */
import * as z from "zod";
import type { ItemFlag } from "../../../playlist/items.ts";
import { locateItem } from "../../../playlist/locate.ts";
import { jsonStream } from "../json-stream.ts";
import { type ApiCall, type Handled, type Method, methodsWith } from "../method.ts";
import { Noted } from "../noted.ts";
import { ITEM_ID, NONE, OK, OWNER, SHORT_TEXT } from "../schemas.ts";
import { logoUrl, readLogo } from "../logo.ts";
import { ADD_PARAMS, LOGO_FILE, newItem, PICTURE, TAGS } from "./playlist-add.ts";
import { guideTime, LISTED_ITEM, TRASH_ITEM } from "./playlist-item.ts";

type Parts = "clock" | "content" | "guide" | "playlist";
const defineMethod = methodsWith<Parts>();

/** Most ids in one call. */
const MAX_IDS = 10_000;

const IDS = z.array(ITEM_ID).min(1).max(MAX_IDS).describe("Numbers of the items");
/** Items without an owner belong to everybody, so a final deletion by one owner must spare them. */
const THEIRS = SHORT_TEXT.optional().describe("Deletes only items of this owner, not those that belong to everybody");
/** Whether a player could open it: headers for the player may follow a `|`. */
function isAddress(text: string): boolean {
  const { url } = locateItem(text);
  return url === null || URL.canParse(url.split("|", 1)[0]!);
}

const GROUPS = z.boolean().optional().describe("Acts on all items of the same channel");
const TRUE = z.literal(true);

/** Defines a playlist method: private, and open to callers on other machines. */
function playlistMethod<Params extends z.ZodObject, Result extends z.ZodType>(
  name: string,
  summary: string,
  params: Params,
  result: Result,
  handle: (params: z.output<Params>, call: ApiCall<Parts>) => Promise<Handled<Result>>,
): Method {
  return defineMethod({ name, summary, public: false, remote: true, params, result, handle });
}

async function setFlag(
  flag: ItemFlag,
  ids: readonly number[],
  params: { value: boolean; owner?: string | undefined; use_media_groups?: boolean | undefined },
  { parts }: ApiCall<Parts>,
): Promise<true> {
  await parts.playlist.setFlag(flag, ids, params.value, {
    owner: params.owner,
    useMediaGroups: params.use_media_groups,
  });
  return true;
}

const FLAG = {
  value: z.boolean().describe("Whether to set the flag or clear it"),
  use_media_groups: GROUPS,
  owner: OWNER,
};
const ONE_FLAG = z.object({ id: ITEM_ID, ...FLAG });

/** The methods of the playlist and its trash. */
export const PLAYLIST_METHODS: readonly Method[] = [
  playlistMethod(
    "playlist_add_item",
    "Adds an item; returns its id.",
    ADD_PARAMS,
    ITEM_ID,
    async (params, call) => await call.parts.playlist.add(await newItem(params, call)),
  ),
  playlistMethod(
    "playlist_update_item",
    "Changes an item. When a whole media group is changed, only the named item gets title, category, tvg_id and address.",
    z.object({
      id: ITEM_ID,
      logo_file: LOGO_FILE.optional(),
      title: SHORT_TEXT.min(1).optional().describe("New title"),
      category: SHORT_TEXT.optional().describe("New category; empty: none"),
      tvg_id: SHORT_TEXT.optional().describe("Id in programme guides; empty: none"),
      tvg_logo: PICTURE.optional(),
      address: z.string().max(8192).refine(isAddress, "an address, a magnet link or an id is expected").optional()
        .describe("What it plays from now on: an address, a magnet link or an id"),
      poster: PICTURE.optional(),
      auto_search: z.boolean().optional().describe("Whether its content is searched for"),
      is_favorite: z.boolean().optional().describe("Whether it is a favourite"),
      use_media_groups: GROUPS,
      tags: TAGS.optional(),
    }),
    TRUE,
    async (params, { parts }) => {
      await parts.playlist.update(params.id, {
        title: params.title,
        category: params.category,
        tvgId: params.tvg_id,
        address: params.address,
        poster: params.poster,
        tvgLogo: params.logo_file === undefined ? params.tvg_logo : await readLogo(params.logo_file),
        tags: params.tags,
        autoSearch: params.auto_search,
        isFavorite: params.is_favorite,
      }, { useMediaGroups: params.use_media_groups });
      return true as const;
    },
  ),
  playlistMethod(
    "playlist_delete_item",
    "Moves an item to the trash.",
    z.object({ id: ITEM_ID, use_media_groups: GROUPS }),
    OK,
    async (params, { parts }) => {
      await parts.playlist.remove([params.id], { useMediaGroups: params.use_media_groups });
      return "ok" as const;
    },
  ),
  playlistMethod(
    "playlist_delete_items",
    "Moves items to the trash: all of them, or none when one is missing or locked.",
    z.object({ owner: OWNER, ids: IDS }),
    OK,
    async ({ owner, ids }, { parts }) => {
      await parts.playlist.remove(ids, { owner });
      return "ok" as const;
    },
  ),
  playlistMethod(
    "playlist_restore_item",
    "Brings an item back from the trash.",
    z.object({ owner: OWNER, id: ITEM_ID }),
    OK,
    async ({ owner, id }, { parts }) => {
      await parts.playlist.restore(id, owner);
      return "ok" as const;
    },
  ),
  playlistMethod(
    "playlist_trash_get",
    "Returns the items in the trash.",
    z.object({ owner: OWNER }),
    z.object({ data: z.array(TRASH_ITEM) }),
    ({ owner }, { parts, ownUrl }) => {
      const items = parts.playlist.json({ owner, trash: true, logoUrl: logoUrl(ownUrl) });
      return Promise.resolve(jsonStream('{"data":[', items, "]}"));
    },
  ),
  playlistMethod(
    "playlist_trash_clear",
    "Empties the trash for good.",
    z.object({ owner: THEIRS }),
    OK,
    async ({ owner }, { parts }) => {
      await parts.playlist.clearTrash(owner);
      return "ok" as const;
    },
  ),
  playlistMethod(
    "playlist_get",
    "Returns the playlist or a page of it, the oldest items first and those of an external list in its order; total_items counts all matching items.",
    z.object({
      owner: OWNER,
      offset: z.int().min(0).optional().describe("Items skipped at the beginning"),
      limit: z.int().min(0).optional().describe("Most items returned; default all"),
      query: SHORT_TEXT.optional().describe("Part of the title"),
      category: SHORT_TEXT.optional().describe("Only items of this category, or with a further group of that name"),
      is_favorite: z.boolean().optional().describe("true: only favourites; false: only the others"),
      show_epg: z.boolean().default(false).describe("Our addition: adds what is on each item, and what is next"),
    }),
    z.object({ total_items: z.int(), playlist: z.array(LISTED_ITEM) }),
    async ({ is_favorite: isFavorite, show_epg, ...params }, { parts, ownUrl }) => {
      const guideAtS = show_epg ? await guideTime(parts) : undefined;
      const { total, items } = await parts.playlist.list({ ...params, isFavorite, logoUrl: logoUrl(ownUrl), guideAtS });
      return jsonStream(`{"total_items":${total},"playlist":[`, items, "]}");
    },
  ),
  playlistMethod(
    "playlist_get_categories",
    "Returns the categories of the playlist by name, with the number of their items.",
    z.object({ owner: OWNER }),
    z.object({ categories: z.array(z.object({ name: z.string(), items: z.int() })) }),
    async ({ owner }, { parts }) => ({ categories: [...await parts.playlist.categories(owner)] }),
  ),
  playlistMethod(
    "playlist_get_version",
    "Returns a number that changes with every change of an item, for pages that look whether there is news.",
    NONE,
    z.object({ version: z.int() }),
    async (_params, { parts }) => ({ version: await parts.playlist.version() }),
  ),
  {
    ...playlistMethod(
      "playlist_clear",
      "Deletes all items of the playlist for good except locked ones; kept_locked beside the result counts those.",
      z.object({ owner: THEIRS }),
      OK,
      async ({ owner }, { parts }) => {
        const { keptLocked } = await parts.playlist.clear(owner);
        return keptLocked === 0 ? "ok" as const : new Noted("ok" as const, { kept_locked: keptLocked });
      },
    ),
    notes: z.object({ kept_locked: z.int().optional().describe("Locked items that stay") }),
  },
  playlistMethod(
    "playlist_item_set_favorite",
    "Marks an item as favourite, or removes the mark.",
    ONE_FLAG,
    TRUE,
    (params, call) => setFlag("is_favorite", [params.id], params, call),
  ),
  playlistMethod(
    "playlist_item_set_enabled",
    "Enables or disables an item.",
    ONE_FLAG,
    TRUE,
    (params, call) => setFlag("enabled", [params.id], params, call),
  ),
  playlistMethod(
    "playlist_items_set_enabled",
    "Enables or disables items: all of them, or none when one is missing or locked.",
    z.object({ ids: IDS, ...FLAG }),
    TRUE,
    (params, call) => setFlag("enabled", params.ids, params, call),
  ),
  playlistMethod(
    "playlist_item_set_locked",
    "Locks an item against every change but this one, or unlocks it.",
    ONE_FLAG,
    TRUE,
    (params, call) => setFlag("locked", [params.id], params, call),
  ),
  playlistMethod(
    "playlist_item_set_auto_search",
    "Turns the search for an item's content on or off.",
    z.object({ id: ITEM_ID, value: FLAG.value, owner: SHORT_TEXT.describe("Owner of the item") }),
    OK,
    async (params, call) => {
      await setFlag("auto_search", [params.id], params, call);
      return "ok" as const;
    },
  ),
];

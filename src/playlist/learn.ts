/** Handles items whose content was unknown when they were added: selects them for analysis, and stores what it finds. */
import type { Selectable, Updateable } from "kysely";
import type { PlaylistItemsTable } from "../database/schema.ts";
import type { Store } from "../database/store.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { IS_FROM_PUBLIC } from "./private-addresses.ts";

/** The facts that an analysis found. Unknown ones leave the item as it is. */
export interface ItemFacts {
  readonly contentId: string | null;
  readonly infohash: string | null;
  /** As in `LocatedItem`. */
  readonly transportType: string;
  /** 1 live, 0 VOD, -1 unknown. */
  readonly isLive: number;
  /** True when its transport file holds several media files; null when unknown. */
  readonly isMulti: boolean | null;
}

type Row = Selectable<PlaylistItemsTable>;

/** An item and where it came from: `IS_FROM_PUBLIC`. */
type ItemToAnalyze = Row & { readonly is_from_public: number };

/**
 * Returns at most `limit` items of `ids` in their order; with `useMediaGroups` each is followed by the others of its channel.
 * No item comes twice. Rejects with `not_found`.
 */
export async function itemsToAnalyze(
  store: Store,
  ids: readonly number[],
  useMediaGroups: boolean,
  limit: number,
): Promise<ItemToAnalyze[]> {
  const db = await store.open();
  const items = () => db.selectFrom("playlist_items").selectAll().select(IS_FROM_PUBLIC.as("is_from_public"));
  const found = new Map<number, ItemToAnalyze>();
  for (const id of ids) {
    const item = await items().where("id", "=", id).where("is_deleted", "=", 0).executeTakeFirst();
    if (item === undefined) throw new MillraceError("not_found", `no item ${id} in the playlist`);
    found.set(id, item);
    if (!useMediaGroups) continue;
    const others = await items().where("media_group", "=", item.media_group).where("is_deleted", "=", 0)
      .orderBy("id").limit(limit).execute();
    for (const other of others) if (!found.has(other.id)) found.set(other.id, other);
    if (found.size >= limit) break;
  }
  return [...found.values()].slice(0, limit);
}

/** The query of `analyze_content` for the content of `item`; null when it has no address. */
export function analysisQuery(item: Pick<Row, "content_id" | "infohash" | "url">): string | null {
  if (item.url !== null && /^magnet:/i.test(item.url)) return item.url;
  if (item.content_id !== null) return item.content_id;
  if (item.infohash !== "") return `item:?infohash=${item.infohash}`;
  // Headers for the player follow a bar.
  return item.url?.split("|", 1)[0] ?? null;
}

/**
 * Stores what was found out. The content's hashes stay, since lists find the item again by them. Rejects with `conflict` for
 * a locked item, `not_found` for a deleted one.
 */
export async function learn(store: Store, clock: Clock, id: number, facts: ItemFacts): Promise<void> {
  const db = await store.open();
  await db.transaction().execute(async (trx) => {
    const item = await trx.selectFrom("playlist_items").selectAll().where("id", "=", id).executeTakeFirst();
    if (item === undefined) throw new MillraceError("not_found", `no item ${id} in the playlist`);
    if (item.locked === 1) throw new MillraceError("conflict", `item ${id} is locked`);
    const set: Updateable<PlaylistItemsTable> = { transport_type: facts.transportType };
    if (facts.contentId !== null) set.content_id = facts.contentId;
    if (facts.infohash !== null) set.infohash = facts.infohash;
    if (facts.isLive !== -1) {
      set.is_live = facts.isLive;
      set.content_type = facts.isLive === 1 ? "live" : "vod";
    }
    if (facts.isMulti !== null) {
      set.is_multi_tfile = Number(facts.isMulti);
      set.is_multi_vod = Number(facts.isMulti && facts.isLive === 0);
    }
    const changed = (Object.keys(set) as (keyof Row)[]).some((name) => set[name] !== item[name]);
    if (!changed) return;
    set.updated_at = Math.floor(clock.now() / 1000);
    await trx.updateTable("playlist_items").set(set).where("id", "=", id).execute();
  });
}

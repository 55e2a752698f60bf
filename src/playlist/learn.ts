/** Items whose content was not known when they came in, and what an analysis finds out about them later. */
import type { Selectable, Updateable } from "kysely";
import type { PlaylistItemsTable } from "../database/schema.ts";
import type { Store } from "../database/store.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";

/** What was found out. What is unknown stays as it is. */
export interface ItemFacts {
  readonly contentId: string | null;
  readonly infohash: string | null;
  /** As in `LocatedItem`. */
  readonly transportType: string;
  /** 1 live, 0 VOD, -1 unknown. */
  readonly isLive: number;
  /** Several media files in one transport file; null: unknown. */
  readonly isMulti: boolean | null;
}

type Row = Selectable<PlaylistItemsTable>;

/**
 * Items of `ids`, in their order, each followed by the others of its channel when `useMediaGroups`; each once, `limit` at
 * most. Rejects with `not_found`.
 */
export async function itemsToAnalyze(
  store: Store,
  ids: readonly number[],
  useMediaGroups: boolean,
  limit: number,
): Promise<Row[]> {
  const db = await store.open();
  const found = new Map<number, Row>();
  for (const id of ids) {
    const item = await db.selectFrom("playlist_items").selectAll().where("id", "=", id).where("is_deleted", "=", 0)
      .executeTakeFirst();
    if (item === undefined) throw new MillraceError("not_found", `no item ${id} in the playlist`);
    found.set(id, item);
    if (!useMediaGroups) continue;
    const others = await db.selectFrom("playlist_items").selectAll().where("media_group", "=", item.media_group)
      .where("is_deleted", "=", 0).orderBy("id").limit(limit).execute();
    for (const other of others) if (!found.has(other.id)) found.set(other.id, other);
    if (found.size >= limit) break;
  }
  return [...found.values()].slice(0, limit);
}

/** What `analyze_content` is asked for the content of `item`; null when there is nothing to ask for. */
export function analysisQuery(item: Pick<Row, "content_id" | "infohash" | "url">): string | null {
  if (item.content_id !== null) return item.content_id;
  if (item.infohash !== "") return item.url?.startsWith("magnet:") ? item.url : `item:?infohash=${item.infohash}`;
  // What follows a bar are headers for the player.
  return item.url?.split("|", 1)[0] ?? null;
}

/**
 * Stores what was found out; the content's hashes stay, since lists know the item by them. Rejects with `conflict` for a
 * locked item, `not_found` for one that is gone.
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

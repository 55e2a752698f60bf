/** What users change about one item besides its flags: its words and its address, which lists leave alone from then on. */
import { type Selectable, sql, type Transaction, type Updateable } from "kysely";
import { mediaGroup, searchText } from "../database/names.ts";
import type { PlaylistItemsTable, Schema } from "../database/schema.ts";
import type { ImportedEntry } from "./entry.ts";
import { type LocatedItem, locateItem } from "./locate.ts";
import { EDITED } from "./overlay.ts";

type PlaylistItem = Selectable<PlaylistItemsTable>;

/** Absent fields stay. */
export interface ItemWords {
  readonly title?: string | undefined;
  /** Empty: none. */
  readonly category?: string | undefined;
  readonly tvgId?: string | undefined;
  /** Anything that an entry of a list may have as its address. */
  readonly address?: string | undefined;
}

/** Changes the item `id`, which exists. */
export async function editItem(trx: Transaction<Schema>, id: number, words: ItemWords): Promise<void> {
  const { title, category, tvgId, address } = words;
  const bits = (title === undefined ? 0 : EDITED.title) | (category === undefined ? 0 : EDITED.category) |
    (tvgId === undefined ? 0 : EDITED.guide) | (address === undefined ? 0 : EDITED.address);
  if (bits === 0) return;
  const item = await trx.selectFrom("playlist_items").select(["title", "tvg_id", "media_group", "imported"])
    .where("id", "=", id).executeTakeFirstOrThrow();
  // Its list may have the id on many channels: then it was none before, too.
  const knownId = item.media_group.startsWith("id:") ? item.tvg_id : "";
  const set: Updateable<PlaylistItemsTable> = {
    media_group: mediaGroup({ title: title ?? item.title, tvgId: tvgId ?? knownId }),
    imported: withWords(item.imported, words),
    ...title === undefined ? {} : { title, search_text: searchText(title) },
    ...category === undefined ? {} : { category: category || null, more_groups: null },
    ...tvgId === undefined ? {} : { tvg_id: tvgId },
    ...address === undefined ? {} : addressColumns(locateItem(address)),
  };
  await trx.updateTable("playlist_items").set(set).where("id", "=", id).execute();
  await markEdited(trx, [id], bits);
}

/** Marks items of lists, so that the next refresh leaves alone what `bits` of `EDITED` stand for. */
export async function markEdited(trx: Transaction<Schema>, ids: readonly number[], bits: number): Promise<void> {
  await trx.updateTable("playlist_items").set((eb) => ({ edited: eb("edited", "|", bits) }))
    .where("id", "in", sql<number>`(SELECT value FROM json_each(${JSON.stringify(ids)}))`)
    .where("external_playlist_id", ">=", 0).execute();
}

/** The columns that a refresh keeps of an item that the user edited, beside its title and logo. */
export function editedColumns(item: PlaylistItem, imported: string): Partial<PlaylistItem> {
  const has = (bit: number) => (item.edited & bit) !== 0;
  const { category, tvg_id: tvgId } = item;
  const { url, content_id, infohash, transport_type, content_type, is_live } = item;
  return {
    ...has(EDITED.category) ? { category, more_groups: null } : {},
    ...has(EDITED.guide) ? { tvg_id: tvgId } : {},
    ...has(EDITED.address) ? { url, content_id, infohash, transport_type, content_type, is_live } : {},
    imported: withWords(imported, {
      ...has(EDITED.category) ? { category: category ?? "" } : {},
      ...has(EDITED.guide) ? { tvgId } : {},
    }),
  };
}

/** An entry as it was read, with the user's words: the exported list has those. */
function withWords(imported: string | null, { category, tvgId }: ItemWords): string | null {
  if (imported === null || (category === undefined && tvgId === undefined)) return imported;
  const entry = JSON.parse(imported) as ImportedEntry;
  const attributes = { ...entry.attributes };
  if (category !== undefined) attributes["group-title"] = category;
  if (tvgId !== undefined) attributes["tvg-id"] = tvgId;
  return JSON.stringify({ ...entry, attributes, group: category === undefined ? entry.group : "" });
}

function addressColumns({ content_id, infohash, url, transport_type, content_type, is_live }: LocatedItem) {
  return { content_id, infohash, url, transport_type, content_type, is_live };
}

/** Turns an entry of an M3U list into the columns of an item, and back. */
import { nextTurn } from "../bytes/turn.ts";
import { mediaGroup, searchText } from "../database/names.ts";
import { type GroupNames, groupsOf } from "./group-names.ts";
import { contentHashes } from "./identity.ts";
import { locateItem } from "./locate.ts";
import type { M3uEntry } from "./m3u/m3u-entry.ts";

/** The part of an entry that is kept besides the item's own columns, as JSON in the column `imported`. */
export type ImportedEntry = Omit<M3uEntry, "url">;

/** Columns of an item whose values come from its entry. Booleans are 0 and 1. */
export interface EntryFields {
  readonly title: string;
  readonly category: string | null;
  readonly subcategory: string;
  /** As in `PlaylistItemsTable`. */
  readonly more_groups: string | null;
  readonly languages: string | null;
  readonly countries: string | null;
  readonly tvg_id: string;
  readonly tvg_name: string;
  readonly tvg_logo: string;
  readonly url: string | null;
  readonly content_id: string | null;
  readonly infohash: string;
  readonly file_index: number | null;
  readonly content_type: string;
  readonly transport_type: string;
  readonly is_live: number;
  readonly media_group: string;
  readonly hash: string;
  readonly hash_v2: string;
  readonly search_text: string;
  /** `ImportedEntry`, JSON. */
  readonly imported: string;
  /** See `PlaylistItemsTable`. */
  readonly entry_key?: number;
  readonly sort_key?: number | null;
  /** Of items that another engine, or this one, exported; lists do not have them. */
  readonly description?: string;
  readonly poster?: string;
}

/** Facts that the list as a whole states about its entries. */
export interface ListFacts {
  /** Attributes of the header, which hold for entries that lack them. */
  readonly header: Readonly<Record<string, string>>;
  /** Category of all items; an entry's own group then becomes its subcategory. Empty: the group is the category. */
  readonly category: string;
  /** True when entries are live unless they say otherwise. */
  readonly isBroadcast: boolean;
  /** Spellings of categories. */
  readonly groups: GroupNames;
}

/**
 * Entries written in one transaction. Indexes are written at random places, once for each transaction that touches a page:
 * with a hundred entries per transaction the import takes a third more time. Other writers wait for one transaction, a
 * tenth of a second.
 */
export const BATCH_ENTRIES = 2000;
/** Entries written in one statement: a few milliseconds in which the engine does nothing else. */
export const STATEMENT_ENTRIES = 200;
/** Most text of one batch, characters: several times what 2000 entries usually have, but one may carry 16 MiB of directives. */
const BATCH_CHARS = 2 * 1024 * 1024;

/** Runs `write` on parts of `all`, one after the other, and yields to the event loop after each. */
export async function inStatements<T>(all: readonly T[], write: (part: readonly T[]) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += STATEMENT_ENTRIES) {
    await write(all.slice(from, from + STATEMENT_ENTRIES));
    await nextTurn();
  }
}

/** Entries that are written together: few enough not to keep other writers waiting, small enough to be held several times over. */
export class EntryBatch {
  #entries: M3uEntry[] = [];
  #chars = 0;

  /** Adds an entry; true when the batch is full. */
  push(entry: M3uEntry): boolean {
    this.#entries.push(entry);
    this.#chars += entry.url.length + entry.title.length + entry.group.length;
    for (const directive of entry.directives) this.#chars += directive.length;
    for (const value of Object.values(entry.attributes)) this.#chars += value.length;
    return this.#entries.length === BATCH_ENTRIES || this.#chars >= BATCH_CHARS;
  }

  /** Returns the entries added since the last call. */
  take(): readonly M3uEntry[] {
    const entries = this.#entries;
    this.#entries = [];
    this.#chars = 0;
    return entries;
  }
}

/** Attributes of exported entries, for what M3U has no word for. They describe the item, and are not kept with its entry. */
export const EXPORTED = {
  /** The item came from an external list: importing it again does not make it the user's own. */
  external: "x-external",
  /** 1, 0 or -1. */
  live: "x-live",
  transport: "x-transport",
  category: "x-category",
  subcategory: "x-subcategory",
  poster: "x-poster",
  description: "x-description",
} as const;
/** Header attributes that entries inherit, as players read them. */
const INHERITED = ["catchup", "catchup-type", "catchup-days", "catchup-source", "tvg-shift"];
/** Names and other short texts, characters, as in the API. */
const MAX_TEXT_CHARS = 1000;
/** Descriptions, characters. */
const MAX_DESCRIPTION_CHARS = 10_000;
/** What an address alone does not show. */
const TRANSPORTS = ["hls", "dash", "direct"] as const;
/** Addresses, characters. */
const MAX_ADDRESS_CHARS = 8192;

/** Name of the entry's group; empty without one. */
export function groupOf({ attributes, group }: Pick<M3uEntry, "attributes" | "group">): string {
  return (attributes["group-title"] || group).slice(0, MAX_TEXT_CHARS);
}

/** Attributes in which lists give the number of a channel. */
const NUMBERS = ["tvg-chno", "ch-number", "channel-number"];

/** Puts the number of the channel into `tvg-chno`, where the index of numbers looks for it. */
function setNumber(attributes: Record<string, string>): void {
  const number = NUMBERS.map((name) => attributes[name]).find((value) => value);
  if (number !== undefined) attributes["tvg-chno"] = number;
  else delete attributes["tvg-chno"];
}

/** Returns the columns of the item that `entry` describes. */
export function entryFields(entry: M3uEntry, list: ListFacts): EntryFields {
  const attributes: Record<string, string> = { ...entry.attributes };
  const exported: Partial<Record<keyof typeof EXPORTED, string>> = {};
  for (const [key, name] of Object.entries(EXPORTED) as [keyof typeof EXPORTED, string][]) {
    const value = attributes[name];
    if (value !== undefined) exported[key] = value;
    delete attributes[name];
  }
  for (const name of INHERITED) {
    const value = list.header[name];
    if (value && attributes[name] === undefined) attributes[name] = value;
  }
  setNumber(attributes);
  const { url, ...kept } = entry;
  const imported: ImportedEntry = { ...kept, attributes };
  const located = locateItem(url, entry.durationSeconds);
  const transport = TRANSPORTS.find((one) => one === exported.transport && located.transport_type !== "bt");
  const isEndless = list.isBroadcast || /^(?:1|true|yes)$/i.test(attributes["radio"] ?? "");
  const stated = /^(?:-1|0|1)$/.test(exported.live ?? "") ? Number(exported.live) : null;
  const isLive = stated ?? (located.is_live === -1 && isEndless ? 1 : located.is_live);
  const title = entry.title.slice(0, MAX_TEXT_CHARS);
  const tvgId = short(attributes["tvg-id"]);
  const [group = "", ...more] = groupsOf(groupOf(entry));
  const category = list.category || list.groups.of(exported.category ?? group) || null;
  // Where the list, or the engine that exported the entry, has a category of its own, its groups are only text.
  const isText = list.category !== "" || exported.subcategory !== undefined;
  const further = new Set(isText ? [] : more.map((name) => list.groups.of(name)).filter((name) => name !== category));
  const { hash, hashV2 } = contentHashes({
    infohash: located.infohash,
    contentId: located.content_id,
    url: located.url,
    title,
  });
  return {
    title,
    category,
    subcategory: exported.subcategory ?? (list.category === "" ? more : [group, ...more]).join("; "),
    more_groups: further.size === 0 ? null : JSON.stringify([...further]),
    languages: short(attributes["tvg-language"]) || null,
    countries: short(attributes["tvg-country"]) || null,
    tvg_id: tvgId,
    tvg_name: short(attributes["tvg-name"]),
    tvg_logo: pictureAddress(attributes["tvg-logo"] || attributes["logo"]),
    url: located.url,
    content_id: located.content_id,
    infohash: located.infohash,
    file_index: located.file_index,
    content_type: isLive === 1 ? "live" : isLive === 0 ? "vod" : "unknown",
    transport_type: transport ?? located.transport_type,
    is_live: isLive,
    media_group: mediaGroup({ title, tvgId }),
    hash,
    hash_v2: hashV2,
    search_text: searchText(title),
    imported: JSON.stringify(imported),
    ...exported.poster === undefined ? {} : { poster: exported.poster.slice(0, MAX_ADDRESS_CHARS) },
    ...exported.description === undefined ? {} : { description: exported.description.slice(0, MAX_DESCRIPTION_CHARS) },
  };
}

/** The name by which an item is found again when its list is read again and its address has changed. */
export function entryName(fields: Pick<EntryFields, "tvg_id">, imported: Pick<ImportedEntry, "title">): string {
  return `${fields.tvg_id.toLowerCase()} ${imported.title}`;
}

function short(text = ""): string {
  return text.slice(0, MAX_TEXT_CHARS);
}

function pictureAddress(text = ""): string {
  return /^https?:\/\/./i.test(text) && text.length <= MAX_ADDRESS_CHARS ? text : "";
}

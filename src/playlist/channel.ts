/** The items of one channel, which replace each other when one does not play. */
import { sql } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import type { Store } from "../database/store.ts";
import { itemWithNumber, NUMBER_COLUMNS, type NumberedRow, numberOf } from "./channel-numbers.ts";
import { selectorOf } from "./export.ts";
import { among, listed } from "./listing.ts";
import { type Db, libraryVersion, matchesOf } from "./matches.ts";
import type { ImportedEntry } from "./entry.ts";
import { HAS_STREAM } from "./playable.ts";
import { MAY_NAME_PRIVATE } from "./private-addresses.ts";
import { addressWithHeaders } from "./stated-headers.ts";

/** Most items of one channel that are tried: more working sources than any list has for a channel. */
const MAX_MEMBERS = 16;
/** Items of one channel among which they are chosen, oldest first. */
const MAX_LOOKED_AT = 2000;
/** Channels of a lineup read in one statement. */
const READ_AT_ONCE = 250;
/** Channels of one lineup: ten times what television servers take. */
const MAX_CHANNELS = 5000;
/** Channels whose last played item is remembered. */
const MAX_REMEMBERED = 1000;

/** An entry of the lineup. */
export interface LineupEntry {
  /** Number of the channel. */
  readonly number: string;
  readonly title: string;
}

/** An item that this engine can play. */
export interface ChannelMember {
  readonly id: number;
  readonly title: string;
  readonly mediaGroup: string;
  /**
   * Selector of playback, as in an address. `direct_url`: it comes by HTTP, and the fields that its list states stand
   * behind a `|`.
   */
  readonly selector: readonly [name: "content_id" | "infohash" | "url" | "magnet" | "direct_url", value: string];
  /** The attributes of its entry in a list; empty for what comes from peers. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Its address as the library has it; null: it has none. */
  readonly url: string | null;
  /** File of its torrent; null: the one that playback chooses. */
  readonly fileIndex: number | null;
  /** True when the caller that gave its address may name addresses in the private network. */
  readonly mayNamePrivate: boolean;
  /** The list that it came from, and how many connections that allows at once (0: any number); null: none. */
  readonly account: {
    readonly list: number;
    readonly name: string;
    readonly maxConnections: number;
  } | null;
}

/** Names a channel: by one of its items, or by its media group. */
export type ChannelName = { readonly item: number } | { readonly group: string };

/** Which of a channel's sources come first: what peers share, addresses, or neither. */
export type ChannelOrder = "library" | "peers-first" | "peers-last";

/** Looks channels up, and remembers which item of each played last. */
export class Channels {
  readonly #store: Store;
  readonly #order: ChannelOrder;
  /** By media group; the one that was used longest ago is first. */
  readonly #lastPlayed = new Map<string, number>();
  #lineup: { readonly version: number; readonly entries: Promise<readonly LineupEntry[]> } | null = null;

  constructor(store: Store, order: ChannelOrder = "library") {
    this.#store = store;
    this.#order = order;
  }

  /**
   * The enabled items of a channel that this engine can play: the item that was named, then the one that played last, then
   * favourites, then the oldest; with an order of kinds, all of the first kind before all others. Empty when there is none.
   */
  async members(name: ChannelName): Promise<ChannelMember[]> {
    const named = "item" in name ? name.item : null;
    const db = await this.#store.read();
    const group = "group" in name ? name.group : (await db.selectFrom("playlist_items").select("media_group")
      .where("id", "=", name.item).where("is_deleted", "=", 0).executeTakeFirst())?.media_group;
    if (group === undefined) return [];
    const last = this.#lastPlayed.get(group) ?? -1;
    // A list may name all its 100,000 items alike: only the oldest are looked at, besides the two that come first anyway.
    const { rows: some } = await sql<{ ids: string }>`SELECT json_group_array(id) AS ids FROM (
      SELECT id FROM playlist_items WHERE media_group = ${group} ORDER BY id LIMIT ${MAX_LOOKED_AT})`.execute(db);
    const looked = sql<number>`(SELECT value FROM json_each(${some[0]!.ids}) UNION VALUES (${named ?? -1}), (${last}))`;
    const rows = await db.selectFrom("playlist_items").select([
      "id",
      "title",
      "url",
      "content_id",
      "infohash",
      "file_index",
      "media_group",
      "transport_type",
      "imported",
      "external_playlist_id",
      MAY_NAME_PRIVATE.as("may_name_private"),
    ]).where("id", "in", looked).where("media_group", "=", group).where("is_deleted", "=", 0)
      .where(sql<boolean>`${HAS_STREAM}`)
      // A disabled item plays only when it is the one that was named.
      .where((eb) => eb.or([eb("enabled", "=", 1), eb("id", "=", named ?? -1)]))
      .orderBy((eb) => eb("id", "=", named ?? -1), "desc")
      .orderBy((eb) => eb("id", "=", last), "desc")
      .orderBy("is_favorite", "desc").orderBy("id").limit(MAX_MEMBERS).execute();
    const lists = await db.selectFrom("external_playlists").select(["id", "name", "max_connections"])
      .where("id", "in", rows.map(({ external_playlist_id: list }) => list)).execute();
    const accounts = new Map(
      lists.map(({ id: list, name, max_connections: maxConnections }) => [list, { list, name, maxConnections }]),
    );
    const members = rows.flatMap((row) => {
      const entry = row.transport_type === "bt" || row.imported === null
        ? null
        : JSON.parse(row.imported) as ImportedEntry;
      const selector = streamOf(row, entry);
      if (selector === null) return [];
      const attributes = entry?.attributes ?? {};
      const { id, title, media_group: mediaGroup, file_index: fileIndex, url } = row;
      const mayNamePrivate = Boolean(row.may_name_private);
      const account = accounts.get(row.external_playlist_id) ?? null;
      return [{ id, title, mediaGroup, selector, attributes, url, fileIndex, mayNamePrivate, account }];
    });
    if (this.#order === "library") return members;
    const isFirst = ({ selector: [kind] }: ChannelMember) => (kind === "direct_url") === (this.#order === "peers-last");
    return [...members.filter(isFirst), ...members.filter((member) => !isFirst(member))];
  }

  /**
   * One entry per channel that this engine can play, by number, named after its oldest item that plays; films and folders of
   * files are left out. Made once per change of the library.
   */
  async lineup(): Promise<readonly LineupEntry[]> {
    const db = await this.#store.read();
    const version = await libraryVersion(db);
    if (this.#lineup?.version === version) return await this.#lineup.entries;
    const lineup = { version, entries: this.#readLineup(db) };
    this.#lineup = lineup;
    let isUnchanged = false;
    try {
      const entries = await lineup.entries;
      isUnchanged = await libraryVersion(db) === version;
      return entries;
    } finally {
      if (!isUnchanged && this.#lineup === lineup) this.#lineup = null;
    }
  }

  async #readLineup(db: Db): Promise<readonly LineupEntry[]> {
    const where = sql`playlist_items.is_deleted = 0 AND enabled = 1 AND is_live <> 0
      AND ${HAS_STREAM} AND NOT (is_live = -1 AND is_multi_tfile = 1)`;
    const selection = { ...listed(false), where, perChannel: true, limit: MAX_CHANNELS };
    const ids = await matchesOf(this.#store).of(db, selection);
    const entries: LineupEntry[] = [];
    for (let at = 0; at < ids.length; at += READ_AT_ONCE) {
      const { given_number, is_id_given } = NUMBER_COLUMNS;
      const { rows } = await sql<LineupRow>`SELECT playlist_items.id, title, url, content_id, infohash,
        ${given_number} AS given_number, ${is_id_given} AS is_id_given
        FROM ${among(ids.subarray(at, at + READ_AT_ONCE))} WHERE ${where}`.execute(db);
      for (const row of rows) {
        if (selectorOf(row) !== null) entries.push({ number: await numberOf(db, row), title: row.title });
      }
      await nextTurn();
    }
    return entries.sort((a, b) => byNumber(a.number, b.number));
  }

  /** The item with this channel number; null when there is none. */
  async itemOf(number: string): Promise<number | null> {
    return await itemWithNumber(await this.#store.read(), number);
  }

  /** Notes that `member` plays, so that it comes first in its channel next time. */
  played({ id, mediaGroup }: ChannelMember): void {
    this.#lastPlayed.delete(mediaGroup);
    this.#lastPlayed.set(mediaGroup, id);
    if (this.#lastPlayed.size <= MAX_REMEMBERED) return;
    for (const oldest of this.#lastPlayed.keys()) {
      this.#lastPlayed.delete(oldest);
      return;
    }
  }
}

/** The parameters of playback for `row`, which a list names by `entry`. */
function streamOf(
  row: Pick<LineupRow, "url" | "content_id" | "infohash"> & { readonly transport_type: string },
  entry: ImportedEntry | null,
): ChannelMember["selector"] | null {
  const { url } = row;
  if (row.transport_type === "bt") return selectorOf(row);
  if (url === null) return null;
  return ["direct_url", entry === null ? url : addressWithHeaders(url, entry)];
}

/** `9`, `10`, `10.1`, `10.2`, `10.10`. */
function byNumber(a: string, b: string): number {
  const [[major = 0, minor = -1], [otherMajor = 0, otherMinor = -1]] = [parts(a), parts(b)];
  return major - otherMajor || minor - otherMinor;
}

function parts(number: string): number[] {
  return number.split(".").map(Number);
}

interface LineupRow extends NumberedRow {
  readonly title: string;
  readonly url: string | null;
  readonly content_id: string | null;
  readonly infohash: string;
}

/** The items of one channel, which replace each other when one does not play. */
import type { Store } from "../database/store.ts";
import { ChannelNumbers } from "./channel-numbers.ts";
import { selectorOf } from "./export.ts";
import { MAY_NAME_PRIVATE } from "./private-addresses.ts";

/** Most items of one channel that are tried: more working sources than any list has for a channel. */
const MAX_MEMBERS = 16;
/** Channels of one lineup: ten times what television servers take. */
const MAX_CHANNELS = 5000;
/** Channels whose last played item is remembered. */
const MAX_REMEMBERED = 1000;

/** An item that this engine can play. */
export interface ChannelMember {
  readonly id: number;
  readonly title: string;
  readonly mediaGroup: string;
  /** Selector of playback, as in an address. */
  readonly selector: readonly [name: "content_id" | "infohash" | "url" | "magnet", value: string];
  /** True when the caller that gave its address may name addresses in the private network. */
  readonly mayNamePrivate: boolean;
}

/** Names a channel: by one of its items, or by its media group. */
export type ChannelName = { readonly item: number } | { readonly group: string };

/** Looks channels up, and remembers which item of each played last. */
export class Channels {
  readonly #store: Store;
  /** By media group; the one that was used longest ago is first. */
  readonly #lastPlayed = new Map<string, number>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * The enabled items of a channel that this engine can play: the item that was named, then the one that played last, then
   * favourites, then the oldest. Empty when there is none.
   */
  async members(name: ChannelName): Promise<ChannelMember[]> {
    const named = "item" in name ? name.item : null;
    const db = await this.#store.read();
    const group = "group" in name ? name.group : (await db.selectFrom("playlist_items").select("media_group")
      .where("id", "=", name.item).where("is_deleted", "=", 0).executeTakeFirst())?.media_group;
    if (group === undefined) return [];
    const last = this.#lastPlayed.get(group) ?? -1;
    const rows = await db.selectFrom("playlist_items").select([
      "id",
      "title",
      "url",
      "content_id",
      "infohash",
      "media_group",
      MAY_NAME_PRIVATE.as("may_name_private"),
    ]).where("media_group", "=", group).where("is_deleted", "=", 0).where("transport_type", "=", "bt")
      // A disabled item plays only when it is the one that was named.
      .where((eb) => eb.or([eb("enabled", "=", 1), eb("id", "=", named ?? -1)]))
      .orderBy((eb) => eb("id", "=", named ?? -1), "desc")
      .orderBy((eb) => eb("id", "=", last), "desc")
      .orderBy("is_favorite", "desc").orderBy("id").limit(MAX_MEMBERS).execute();
    return rows.flatMap((row) => {
      const selector = selectorOf(row);
      if (selector === null) return [];
      const { id, title, media_group: mediaGroup } = row;
      return [{ id, title, mediaGroup, selector, mayNamePrivate: Boolean(row.may_name_private) }];
    });
  }

  /** One entry per channel that this engine can play, named after its oldest enabled item; films are left out. */
  async lineup(): Promise<{ readonly number: string; readonly title: string }[]> {
    const db = await this.#store.read();
    const numbers = await ChannelNumbers.load(db);
    const rows = await db.selectFrom("playlist_items")
      // SQLite takes the other columns from the row that has the minimum.
      .select((eb) => [eb.fn.min("id").as("id"), "title", "url", "content_id", "infohash"])
      .where("is_deleted", "=", 0).where("enabled", "=", 1).where("transport_type", "=", "bt").where("is_live", "!=", 0)
      .groupBy("media_group").orderBy("id").limit(MAX_CHANNELS).execute();
    return rows.filter((row) => selectorOf(row) !== null).map(({ id, title }) => ({ number: numbers.of(id), title }));
  }

  /** The item with this channel number; null when there is none. */
  async itemOf(number: string): Promise<number | null> {
    return (await ChannelNumbers.load(await this.#store.read())).itemOf(number);
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

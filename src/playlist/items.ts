/**
 * The playlist and its trash: section 3.2 of the HTTP API. Every change is one transaction. Items without an owner belong
 * to everybody; naming an owner leaves out the items of other owners.
 */
import { type ExpressionBuilder, type Selectable, sql, type Transaction, type Updateable } from "kysely";
import { mediaGroup, searchText } from "../database/names.ts";
import type { PlaylistItemsTable, Schema } from "../database/schema.ts";
import type { Snapshot } from "../database/readers.ts";
import type { Store } from "../database/store.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { Categories, type Category } from "./categories.ts";
import { deleteItems } from "./delete-rows.ts";
import { editItem, type ItemWords, markEdited } from "./edit.ts";
import { forgetValidators, STALE_DIGEST } from "./external/validators.ts";
import { inStatements } from "./entry.ts";
import { type Icon, iconOf, type IconRequest } from "./icon.ts";
import { contentHashes } from "./identity.ts";
import { isSelected, itemsJson, type ListRequest, selectionOf } from "./listing.ts";
import { type Db, libraryVersion, matchesOf } from "./matches.ts";
import { EDITED } from "./overlay.ts";

/** A row of the table. */
export type PlaylistItem = Selectable<PlaylistItemsTable>;

/** A new item; absent fields are empty or unknown. */
export interface NewItem {
  readonly title: string;
  readonly owner?: string;
  readonly description?: string;
  readonly poster?: string;
  readonly category?: string | null;
  readonly subcategory?: string;
  readonly tags?: readonly string[];
  readonly tvgLogo?: string;
  readonly url?: string | null;
  readonly contentId?: string | null;
  readonly infohash?: string;
  /** File of the torrent; null: the one that playback chooses. */
  readonly fileIndex?: number | null;
  /** As in `LocatedItem`. */
  readonly transportType: string;
  readonly isLive: number;
  /** True when its transport file holds several media files. */
  readonly isMulti?: boolean;
  readonly autoSearch?: boolean;
  /** True when it takes over favourite and enabled from its media group. */
  readonly useMediaGroups?: boolean;
}

/** Changes for `update`; absent fields stay. When a whole media group is changed, only the named item gets the words. */
export interface ItemChanges extends ItemWords {
  readonly poster?: string | undefined;
  readonly tvgLogo?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly autoSearch?: boolean | undefined;
  readonly isFavorite?: boolean | undefined;
}

/** Flags with methods of their own. */
export type ItemFlag = "is_favorite" | "enabled" | "locked" | "auto_search";

/** Narrows or widens the set of items that a call acts on. */
export interface Scope {
  readonly owner?: string | undefined;
  /** Acts on all items of the same channel. */
  readonly useMediaGroups?: boolean | undefined;
}

type Where = ExpressionBuilder<Schema, "playlist_items">;

/** Condition for the items that `owner` sees: its own and everybody's; with `isExact` only its own. Without an owner: all. */
const ownedBy = (owner: string | undefined, isExact = false) => (eb: Where) =>
  owner === undefined || owner === "" ? eb.lit(true) : eb("owner", "in", isExact ? [owner] : ["", owner]);

/** The playlist and its trash in the database. */
export class Playlist {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #categories: Categories;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#categories = new Categories(store);
  }

  /** True when the database was damaged and set aside, so that this run began with an empty playlist. */
  get wasReplaced(): boolean {
    return this.#store.wasReplaced;
  }

  /** Returns whether the playlist can be read. */
  async isLoaded(): Promise<boolean> {
    try {
      const db = await this.#store.read();
      await db.selectFrom("playlist_items").select("id").limit(1).execute();
      return true;
    } catch {
      return false;
    }
  }

  /** Adds an item; returns its id. */
  async add(item: NewItem): Promise<number> {
    const db = await this.#store.open();
    const located = {
      infohash: item.infohash ?? "",
      contentId: item.contentId ?? null,
      url: item.url ?? null,
      title: item.title,
    };
    const { hash, hashV2 } = contentHashes(located);
    const group = mediaGroup({ title: item.title, tvgId: "" });
    const now = this.#now();
    return await db.transaction().execute(async (trx) => {
      const like = item.useMediaGroups
        ? await trx.selectFrom("playlist_items").select(["is_favorite", "enabled"]).where("media_group", "=", group)
          .where("is_deleted", "=", 0).limit(1).executeTakeFirst()
        : undefined;
      const row = await trx.insertInto("playlist_items").values({
        owner: item.owner ?? "",
        title: item.title,
        display_title: null,
        description: item.description ?? "",
        poster: item.poster ?? "",
        category: item.category ?? null,
        subcategory: item.subcategory ?? "",
        tags: JSON.stringify(item.tags ?? []),
        languages: null,
        countries: null,
        tvg_id: "",
        tvg_name: "",
        tvg_logo: item.tvgLogo ?? "",
        url: located.url,
        content_id: located.contentId,
        infohash: located.infohash,
        file_index: item.fileIndex ?? null,
        content_type: item.isLive === 1 ? "live" : item.isLive === 0 ? "vod" : "unknown",
        transport_type: item.transportType,
        is_live: item.isLive,
        is_favorite: like?.is_favorite ?? 0,
        is_multi_vod: Number(item.isMulti === true && item.isLive !== 1),
        is_multi_tfile: Number(item.isMulti ?? false),
        is_wrapped_url: 0,
        locked: 0,
        auto_search: Number(item.autoSearch ?? false),
        enabled: like?.enabled ?? 1,
        is_deleted: 0,
        external_playlist_id: -1,
        media_group: group,
        hash,
        hash_v2: hashV2,
        created_at: now,
        updated_at: now,
        search_text: searchText(item.title),
      }).returning("id").executeTakeFirstOrThrow();
      return row.id;
    });
  }

  /** One item of the playlist. Rejects with `not_found`. */
  async get(id: number): Promise<PlaylistItem> {
    const db = await this.#store.read();
    const item = await db.selectFrom("playlist_items").selectAll().where("id", "=", id).where("is_deleted", "=", 0)
      .executeTakeFirst();
    if (item === undefined) throw notFound(id, "playlist");
    return item;
  }

  /** Changes an item. Rejects with `not_found`, or `conflict` for a locked item. */
  async update(id: number, changes: ItemChanges, scope: Scope = {}): Promise<void> {
    const { title, category, tvgId, address, ...shared } = changes;
    await this.#change([id], scope, async (trx, ids) => {
      const now = this.#now();
      const set: Updateable<PlaylistItemsTable> = { updated_at: now };
      if (shared.poster !== undefined) set.poster = shared.poster;
      if (shared.tvgLogo !== undefined) set.tvg_logo = shared.tvgLogo;
      if (shared.tags !== undefined) set.tags = JSON.stringify(shared.tags);
      if (shared.autoSearch !== undefined) set.auto_search = Number(shared.autoSearch);
      if (shared.isFavorite !== undefined) set.is_favorite = Number(shared.isFavorite);
      await trx.updateTable("playlist_items").set(set).where("id", "in", among(ids)).execute();
      if (shared.tvgLogo !== undefined) await markEdited(trx, ids, EDITED.logo);
      if (ids.includes(id)) await editItem(trx, id, { title, category, tvgId, address });
    });
  }

  /**
   * Sets one flag.
   *
   * @throws `not_found`, `conflict`: as `update`; except that `locked` of a locked item can be changed
   */
  async setFlag(flag: ItemFlag, ids: readonly number[], value: boolean, scope: Scope = {}): Promise<void> {
    await this.#change(ids, scope, async (trx, all) => {
      await trx.updateTable("playlist_items").set({ [flag]: Number(value), updated_at: this.#now() })
        .where("id", "in", among(all)).execute();
      if (flag === "locked" && !value) {
        // Changes that their lists made while they were locked take effect at the next update.
        const theirs = trx.selectFrom("playlist_items").select("external_playlist_id").where("id", "in", among(all));
        await forgetValidators(trx, STALE_DIGEST, (eb) => eb("id", "in", theirs));
      }
      if (flag !== "enabled") return;
      // The user's choice for an item that vanished from its list also holds when it comes back.
      await trx.updateTable("playlist_items").set({ enabled_before: Number(value) }).where("id", "in", among(all))
        .where("vanished_at", "is not", null).execute();
    }, flag === "locked");
  }

  /** Moves items to the trash. Rejects as `update`; then none is moved. */
  async remove(ids: readonly number[], scope: Scope = {}): Promise<void> {
    await this.#change(ids, scope, async (trx, all) => {
      // Clearing vanished_at marks it as deleted by the user, so that its list does not bring it back.
      await trx.updateTable("playlist_items").set({ is_deleted: 1, vanished_at: null, updated_at: this.#now() })
        .where("id", "in", among(all)).execute();
    });
  }

  /** Brings an item back from the trash. Rejects with `not_found`. */
  async restore(id: number, owner?: string): Promise<void> {
    const db = await this.#store.open();
    const now = this.#now();
    const restored = await db.updateTable("playlist_items").set((eb) => ({
      is_deleted: 0,
      updated_at: now,
      // An item that its list no longer has gets another week.
      vanished_at: eb.case().when("vanished_at", "is", null).then(null).else(now).end(),
    })).where("id", "=", id).where("is_deleted", "=", 1).where(ownedBy(owner)).returning("id").execute();
    if (restored.length === 0) throw notFound(id, "trash");
  }

  /**
   * Empties the trash for good, or only the items of `owner`. Items of an external playlist that the user deleted are
   * remembered, so that the next update does not bring them back.
   */
  async clearTrash(owner?: string): Promise<void> {
    const db = await this.#store.open();
    await db.transaction().execute(async (trx) => {
      const trashed = (eb: Where) => eb.and([eb("is_deleted", "=", 1), ownedBy(owner, true)(eb)]);
      await deleteItems(
        trx,
        trashed,
        (those) =>
          trx.insertInto("external_removed").columns(["external_playlist_id", "hash", "tvg_id", "title"]).expression((
            eb,
          ) =>
            eb.selectFrom("playlist_items").select(["external_playlist_id", "hash", "tvg_id"])
              .select(sql<string>`imported ->> 'title'`.as("title")).where(those)
              .where("external_playlist_id", ">=", 0).where("vanished_at", "is", null)
          ).onConflict((clash) => clash.doNothing()).execute(),
      );
    });
  }

  /** Permanently deletes all items of the playlist, or those of `owner`; keeps and counts locked ones. The trash stays. */
  async clear(owner?: string): Promise<{ readonly keptLocked: number }> {
    const db = await this.#store.open();
    return await db.transaction().execute(async (trx) => {
      const theirs = ownedBy(owner, true);
      await deleteItems(trx, (eb) => eb.and([eb("is_deleted", "=", 0), eb("locked", "=", 0), theirs(eb)]));
      if (!owner) {
        await trx.deleteFrom("guides").where("external_playlist_id", "=", -1).execute();
        // The next update brings their items back.
        await forgetValidators(trx, STALE_DIGEST, (eb) => eb.lit(true));
      }
      const { kept } = await trx.selectFrom("playlist_items").select((eb) => eb.fn.countAll<number>().as("kept"))
        .where("is_deleted", "=", 0).where("locked", "=", 1).where(theirs).executeTakeFirstOrThrow();
      return { keptLocked: kept };
    });
  }

  /** See `Categories`. */
  categories(owner?: string): Promise<readonly Category[]> {
    return this.#categories.of(owner ? isSelected({ owner }) : null);
  }

  /** A number that changes with every change of an item. */
  async version(): Promise<number> {
    return await libraryVersion(await this.#store.read());
  }

  /** Number of items that match, whatever `offset` and `limit` are. */
  async count(request: ListRequest = {}): Promise<number> {
    return (await matchesOf(this.#store).of(await this.#store.read(), selectionOf(request))).length;
  }

  /** The matching items as `itemsJson` yields them and the number of matches without `offset` and `limit`, from one snapshot. */
  async list(request: ListRequest = {}): Promise<{ total: number; items: AsyncGenerator<Uint8Array<ArrayBuffer>> }> {
    const { offset = 0, limit = Infinity } = request;
    const snapshot = await this.#store.snapshot();
    try {
      const ids = await matchesOf(this.#store).of(snapshot.db, selectionOf(request));
      const page = ids.subarray(offset, Math.min(ids.length, offset + limit));
      return { total: ids.length, items: this.#itemsOf(snapshot, page, request) };
    } catch (error) {
      await snapshot.release();
      throw error;
    }
  }

  /** Only the items that `list` returns. */
  async *json(request: ListRequest = {}): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    yield* (await this.list(request)).items;
  }

  async *#itemsOf(
    snapshot: Snapshot,
    ids: Float64Array,
    request: ListRequest,
  ): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    try {
      yield* itemsJson(snapshot.db, ids, request, this.#store.isRemote ? "text" : "bytes");
    } finally {
      await snapshot.release();
    }
  }

  /** See `iconOf`. */
  icon(request: IconRequest): Promise<Icon | null> {
    return iconOf(this.#store, request);
  }

  #now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  /** Runs `apply` on the ids, or on their whole media groups, in parts, if all exist and none is locked. */
  async #change(
    ids: readonly number[],
    scope: Scope,
    apply: (trx: Transaction<Schema>, ids: readonly number[]) => Promise<void>,
    evenLocked = false,
  ): Promise<void> {
    if (ids.length === 0) return;
    const db = await this.#store.open();
    await db.transaction().execute(async (trx) => {
      const found = await this.#select(trx, scope.owner).where("id", "in", among(ids)).execute();
      const there = new Set(found.map((item) => item.id));
      const missing = ids.find((id) => !there.has(id));
      if (missing !== undefined) throw notFound(missing, "playlist");
      const all = scope.useMediaGroups
        ? await this.#select(trx, scope.owner).where("media_group", "in", found.map((item) => item.media_group))
          .execute()
        : found;
      const locked = evenLocked ? undefined : all.find((item) => item.locked === 1);
      if (locked !== undefined) throw new MillraceError("conflict", `item ${locked.id} is locked`);
      await inStatements(all.map((item) => item.id), (part) => apply(trx, part));
    });
  }

  #select(db: Db, owner: string | undefined) {
    return db.selectFrom("playlist_items").select(["id", "locked", "media_group"]).where("is_deleted", "=", 0)
      .where(ownedBy(owner));
  }
}

/** The ids as one JSON value: a channel may have more items than a statement can have parameters. */
function among(ids: readonly number[]) {
  return sql<number>`(SELECT value FROM json_each(${JSON.stringify(ids)}))`;
}

function notFound(id: number, place: "playlist" | "trash"): MillraceError {
  return new MillraceError("not_found", `no item ${id} in the ${place}`);
}

/**
 * The playlist and its trash: section 3.2 of the HTTP API. Every change is one transaction. Items without an owner are
 * everybody's; naming an owner leaves out those of others.
 */
import {
  type ExpressionBuilder,
  type Kysely,
  type RawBuilder,
  type Selectable,
  sql,
  type Transaction,
  type Updateable,
} from "kysely";
import type { PlaylistItemsTable, Schema } from "../database/schema.ts";
import type { Store } from "../database/store.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { LISTED_ITEM_JSON, TRASH_ITEM_JSON } from "./item-json.ts";
import { contentHashes, mediaGroup } from "./identity.ts";

/** A row. */
export type PlaylistItem = Selectable<PlaylistItemsTable>;

/** A new item; what is left out is empty or unknown. */
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
  readonly transportType: string;
  readonly isLive: number;
  /** Several media files in one transport file. */
  readonly isMulti?: boolean;
  readonly autoSearch?: boolean;
  /** Takes over favourite and enabled from its media group. */
  readonly useMediaGroups?: boolean;
}

/** What `update` changes; absent fields stay. With a media group, the title stays each item's own. */
export interface ItemChanges {
  readonly title?: string | undefined;
  readonly poster?: string | undefined;
  readonly tvgLogo?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly autoSearch?: boolean | undefined;
  readonly isFavorite?: boolean | undefined;
}

/** Flags with methods of their own. */
export type ItemFlag = "is_favorite" | "enabled" | "locked" | "auto_search";

/** Which items a call is about, besides their ids. */
export interface Scope {
  readonly owner?: string | undefined;
  /** Acts on all items of the same channel. */
  readonly useMediaGroups?: boolean | undefined;
}

/** A page of the playlist. */
export interface ListRequest {
  readonly owner?: string | undefined;
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
  /** Part of the title, any case of ASCII letters. */
  readonly query?: string | undefined;
  readonly category?: string | undefined;
  /** The trash instead of the playlist. Default false. */
  readonly trash?: boolean;
}

/** Items written at once: some 400 KB, and a few milliseconds in which the engine does nothing else. */
const PAGE_ITEMS = 500;

type Db = Kysely<Schema> | Transaction<Schema>;
type Where = ExpressionBuilder<Schema, "playlist_items">;

const ownedBy = (owner: string | undefined) => (eb: Where) =>
  owner === undefined || owner === "" ? eb.lit(true) : eb("owner", "in", ["", owner]);

/** See the module. */
export class Playlist {
  private readonly store: Store;
  private readonly clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.store = store;
    this.clock = clock;
  }

  /** Whether the playlist can be read. */
  async isLoaded(): Promise<boolean> {
    try {
      const db = await this.store.open();
      await db.selectFrom("playlist_items").select("id").limit(1).execute();
      return true;
    } catch {
      return false;
    }
  }

  /** Answers the new item's id. */
  async add(item: NewItem): Promise<number> {
    const db = await this.store.open();
    const located = {
      infohash: item.infohash ?? "",
      contentId: item.contentId ?? null,
      url: item.url ?? null,
      title: item.title,
    };
    const { hash, hashV2 } = await contentHashes(located);
    const group = mediaGroup({ title: item.title, tvgId: "" });
    const now = this.now();
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
      }).returning("id").executeTakeFirstOrThrow();
      return row.id;
    });
  }

  /** One item of the playlist. Rejects with `not_found`. */
  async get(id: number): Promise<PlaylistItem> {
    const db = await this.store.open();
    const item = await db.selectFrom("playlist_items").selectAll().where("id", "=", id).where("is_deleted", "=", 0)
      .executeTakeFirst();
    if (item === undefined) throw notFound(id, "playlist");
    return item;
  }

  /** Rejects with `not_found`, or `conflict` for a locked item. */
  async update(id: number, changes: ItemChanges, scope: Scope = {}): Promise<void> {
    const { title, ...shared } = changes;
    await this.change([id], scope, async (trx, ids) => {
      const now = this.now();
      const set: Updateable<PlaylistItemsTable> = { updated_at: now };
      if (shared.poster !== undefined) set.poster = shared.poster;
      if (shared.tvgLogo !== undefined) set.tvg_logo = shared.tvgLogo;
      if (shared.tags !== undefined) set.tags = JSON.stringify(shared.tags);
      if (shared.autoSearch !== undefined) set.auto_search = Number(shared.autoSearch);
      if (shared.isFavorite !== undefined) set.is_favorite = Number(shared.isFavorite);
      await trx.updateTable("playlist_items").set(set).where("id", "in", ids).execute();
      if (title === undefined) return;
      const { tvg_id } = await trx.selectFrom("playlist_items").select("tvg_id").where("id", "=", id)
        .executeTakeFirstOrThrow();
      await trx.updateTable("playlist_items").set({ title, media_group: mediaGroup({ title, tvgId: tvg_id }) })
        .where("id", "=", id).execute();
    });
  }

  /** Sets one flag. Rejects as `update`; locked items take a change of `locked` alone. */
  async setFlag(flag: ItemFlag, ids: readonly number[], value: boolean, scope: Scope = {}): Promise<void> {
    await this.change(ids, scope, async (trx, all) => {
      await trx.updateTable("playlist_items").set({ [flag]: Number(value), updated_at: this.now() })
        .where("id", "in", all).execute();
    }, flag === "locked");
  }

  /** Moves items to the trash. Rejects as `update`; then none is moved. */
  async remove(ids: readonly number[], scope: Scope = {}): Promise<void> {
    await this.change(ids, scope, async (trx, all) => {
      await trx.updateTable("playlist_items").set({ is_deleted: 1, updated_at: this.now() }).where("id", "in", all)
        .execute();
    });
  }

  /** Brings an item back from the trash. Rejects with `not_found`. */
  async restore(id: number, owner?: string): Promise<void> {
    const db = await this.store.open();
    const restored = await db.updateTable("playlist_items").set({ is_deleted: 0, updated_at: this.now() })
      .where("id", "=", id).where("is_deleted", "=", 1).where(ownedBy(owner)).returning("id").execute();
    if (restored.length === 0) throw notFound(id, "trash");
  }

  /** Empties the trash for good. */
  async clearTrash(owner?: string): Promise<void> {
    const db = await this.store.open();
    await db.deleteFrom("playlist_items").where("is_deleted", "=", 1).where(ownedBy(owner)).execute();
  }

  /** Deletes all items of the playlist for good, but locked ones. The trash stays. */
  async clear(owner?: string): Promise<void> {
    const db = await this.store.open();
    await db.deleteFrom("playlist_items").where("is_deleted", "=", 0).where("locked", "=", 0).where(ownedBy(owner))
      .execute();
  }

  /** How many items match; `offset` and `limit` do not count. */
  async count(request: ListRequest = {}): Promise<number> {
    const db = await this.store.open();
    const { rows } = await sql<{ total: number }>`SELECT count(*) AS total FROM playlist_items WHERE ${
      matching(request)
    }`
      .execute(db);
    return rows[0]?.total ?? 0;
  }

  /**
   * The items that match as JSON objects separated by commas, oldest first, in parts. What changes meanwhile may or may
   * not be seen; no item comes twice.
   */
  async *json(request: ListRequest = {}): AsyncGenerator<string> {
    const db = await this.store.open();
    const where = matching(request);
    const item = sql.raw(request.trash === true ? TRASH_ITEM_JSON : LISTED_ITEM_JSON);
    let left = request.limit ?? Infinity;
    let after = 0;
    if (request.offset !== undefined && request.offset > 0) {
      const skipped = await sql<{ id: number }>`
        SELECT id FROM playlist_items WHERE ${where} ORDER BY id LIMIT 1 OFFSET ${request.offset - 1}`.execute(db);
      if (skipped.rows[0] === undefined) return;
      after = skipped.rows[0].id;
    }
    for (let separator = ""; left > 0; separator = ",") {
      const size = Math.min(PAGE_ITEMS, left);
      const { rows } = await sql<{ body: string | null; last: number; count: number }>`
        SELECT group_concat(item, ',') AS body, max(id) AS last, count(*) AS count FROM (
          SELECT id, ${item} AS item FROM playlist_items WHERE ${where} AND id > ${after} ORDER BY id LIMIT ${size}
        )`.execute(db);
      const page = rows[0];
      if (page === undefined || page.body === null) return;
      yield separator + page.body;
      if (page.count < size) return;
      after = page.last;
      left -= page.count;
    }
  }

  /** Address of the logo, else the poster, of the first item that fits one of the names given; null when none has any. */
  async icon(name: { id?: number | undefined; commonName?: string | undefined; hash?: string | undefined }) {
    const db = await this.store.open();
    const hash = name.hash?.toLowerCase() ?? null;
    const group = name.commonName ? mediaGroup({ title: name.commonName, tvgId: "" }) : null;
    const row = await db.selectFrom("playlist_items").select(["tvg_logo", "poster"]).where("is_deleted", "=", 0)
      .where((eb) => eb.or([eb("tvg_logo", "<>", ""), eb("poster", "<>", "")]))
      .where((eb) =>
        eb.or([
          eb("id", "=", name.id ?? -1),
          eb("hash", "=", hash),
          eb("hash_v2", "=", hash),
          eb("media_group", "=", group),
        ])
      ).orderBy("id").limit(1).executeTakeFirst();
    return row === undefined ? null : row.tvg_logo || row.poster;
  }

  private now(): number {
    return Math.floor(this.clock.now() / 1000);
  }

  /** Runs `apply` on the ids, or on their whole groups, when all exist and none is locked. */
  private async change(
    ids: readonly number[],
    scope: Scope,
    apply: (trx: Transaction<Schema>, ids: number[]) => Promise<void>,
    evenLocked = false,
  ): Promise<void> {
    if (ids.length === 0) return;
    const db = await this.store.open();
    await db.transaction().execute(async (trx) => {
      const found = await this.select(trx, scope.owner).where("id", "in", ids).execute();
      const missing = ids.find((id) => !found.some((item) => item.id === id));
      if (missing !== undefined) throw notFound(missing, "playlist");
      const all = scope.useMediaGroups
        ? await this.select(trx, scope.owner).where("media_group", "in", found.map((item) => item.media_group))
          .execute()
        : found;
      const locked = evenLocked ? undefined : all.find((item) => item.locked === 1);
      if (locked !== undefined) throw new MillraceError("conflict", `item ${locked.id} is locked`);
      await apply(trx, all.map((item) => item.id));
    });
  }

  private select(db: Db, owner: string | undefined) {
    return db.selectFrom("playlist_items").select(["id", "locked", "media_group"]).where("is_deleted", "=", 0)
      .where(ownedBy(owner));
  }
}

function matching(request: ListRequest): RawBuilder<unknown> {
  const { owner, category, query } = request;
  const conditions = [sql`is_deleted = ${request.trash === true ? 1 : 0}`];
  if (owner !== undefined && owner !== "") conditions.push(sql`owner IN ('', ${owner})`);
  if (category !== undefined) conditions.push(sql`category = ${category}`);
  if (query) conditions.push(sql`title LIKE ${`%${query.replaceAll(/[\\%_]/g, "\\$&")}%`} ESCAPE '\\'`);
  return sql.join(conditions, sql` AND `);
}

function notFound(id: number, place: "playlist" | "trash"): MillraceError {
  return new MillraceError("not_found", `no item ${id} in the ${place}`);
}

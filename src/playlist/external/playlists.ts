/** Adds, edits, lists and deletes external playlists: section 3.3 of the HTTP API. `updater.ts` fetches them. */
import { percentDecoded } from "../../bytes/percent.ts";
import { type Selectable, sql, type Transaction } from "kysely";
import { nextTurn } from "../../bytes/turn.ts";
import type { ExternalPlaylistsTable, Schema } from "../../database/schema.ts";
import type { Store } from "../../database/store.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";
import { deleteItems } from "../delete-rows.ts";
import { requireUpdateInterval } from "../refresh-time.ts";
import type {
  ExternalPlaylist,
  ExternalPlaylistEdit,
  ExternalType,
  NewExternalPlaylist,
  Sealer,
} from "./external-playlist.ts";

/** A row of the table. */
export type ExternalRow = Selectable<ExternalPlaylistsTable>;

/** Most lists of one engine. */
const MAX_PLAYLISTS = 1000;
/** Items whose category is changed in one statement. */
const CHANGED_AT_ONCE = 1000;
/** SQL: the groups of an imported item, and the first of them. The next update gives each its usual spelling. */
const GROUP = `coalesce(nullif(imported ->> '$.attributes."group-title"', ''), imported ->> '$.group', '')`;
const FIRST_GROUP = `trim(substr(${GROUP}, 1, instr(${GROUP} || ';', ';') - 1))`;

/** The external playlists in the database. */
export class ExternalPlaylists {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #sealer: Sealer;

  constructor(store: Store, clock: Clock, sealer: Sealer) {
    this.#store = store;
    this.#clock = clock;
    this.#sealer = sealer;
  }

  /** Adds a list; returns its id. Rejects with `invalid_argument`, or `conflict` when there are too many. */
  async add(list: NewExternalPlaylist): Promise<number> {
    requireUpdateInterval(list.updateInterval);
    const { url, login, password } = separated(list);
    requireUserAgent(list.userAgent);
    const sealed = password === "" ? "" : await this.#sealer.seal(password, url);
    const db = await this.#store.open();
    const now = this.#now();
    return await db.transaction().execute(async (trx) => {
      const { count } = await trx.selectFrom("external_playlists").select((eb) => eb.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      if (count >= MAX_PLAYLISTS) throw new MillraceError("conflict", `there are ${MAX_PLAYLISTS} playlists already`);
      const { id } = await trx.insertInto("external_playlists").values({
        type: list.type,
        category: list.category,
        name: list.name,
        url,
        login,
        password: sealed,
        user_agent: list.userAgent ?? "",
        max_connections: list.maxConnections ?? 0,
        update_interval: list.updateInterval,
        updated_at: now,
        last_update: 0,
        next_update: list.updateInterval === 0 ? 0 : now + list.updateInterval,
        failures: 0,
        last_error: "",
        etag: "",
        last_modified: "",
        allow_private: Number(list.allowPrivate),
      }).returning("id").executeTakeFirstOrThrow();
      return id;
    });
  }

  /**
   * Edits a list. All its items except locked ones get a new category at once. A list that moves to another server loses login
   * and password unless they are given: they were meant for the old one. Rejects with `not_found` or
   * `invalid_argument`.
   */
  async edit(id: number, edit: ExternalPlaylistEdit): Promise<void> {
    requireUpdateInterval(edit.updateInterval);
    requireUserAgent(edit.userAgent);
    const row = await this.row(id);
    const moved = edit.url === undefined || edit.url === "" ? null : separated({ ...edit, url: edit.url });
    const url = moved?.url ?? row.url;
    const staysThere = new URL(url).origin === new URL(row.url).origin;
    const login = edit.login ?? (moved?.login || (staysThere ? row.login : ""));
    const given = edit.password || moved?.password;
    const isKept = !given && staysThere && row.password !== "" && login !== "";
    const text = isKept && url !== row.url ? await this.#sealer.open(row.password, row.url) : given;
    const password = login === "" ? "" : text ? await this.#sealer.seal(text, url) : isKept ? row.password : "";
    const db = await this.#store.open();
    const now = this.#now();
    await db.transaction().execute(async (trx) => {
      const edited = await trx.updateTable("external_playlists").set({
        category: edit.category,
        name: edit.name,
        login,
        password,
        ...(url === row.url ? {} : { url, allow_private: Number(edit.allowPrivate ?? false) }),
        ...(edit.userAgent === undefined ? {} : { user_agent: edit.userAgent }),
        ...(edit.maxConnections === undefined ? {} : { max_connections: edit.maxConnections }),
        update_interval: edit.updateInterval,
        updated_at: now,
        ...(edit.updateInterval === row.update_interval
          ? {}
          : { next_update: edit.updateInterval === 0 ? 0 : now + edit.updateInterval }),
        // Another login may bring another list, and another category other items: the list has to be read whole again.
        etag: "",
        last_modified: "",
        digest: "",
      }).where("id", "=", id).returning("id").execute();
      if (edited.length === 0) throw notFound(id);
      if (edit.category === row.category) return;
      await recategorize(trx, id, edit.category, now);
    });
  }

  /**
   * Notes that a server of the Internet gave the list, before its entries become items. It stays so until the list is
   * deleted: items that are locked or gone from a later answer are still that server's.
   */
  async cameFromPublic(id: number): Promise<void> {
    const db = await this.#store.open();
    await db.updateTable("external_playlists").set({ from_public: 1 }).where("id", "=", id).execute();
  }

  /** Deletes the list and everything that came from it, locked items and the trash included. Rejects with `not_found`. */
  async delete(id: number): Promise<void> {
    const db = await this.#store.open();
    await db.transaction().execute(async (trx) => {
      const deleted = await trx.deleteFrom("external_playlists").where("id", "=", id).returning("id").execute();
      if (deleted.length === 0) throw notFound(id);
      await deleteItems(trx, (eb) => eb("external_playlist_id", "=", id));
      for (const table of ["external_entries", "external_removed", "guides"] as const) {
        await trx.deleteFrom(table).where("external_playlist_id", "=", id).execute();
      }
    });
  }

  /** All lists, or the one with `id`. Rejects with `not_found`. */
  async get(id?: number): Promise<ExternalPlaylist[]> {
    if (id !== undefined) return [shown(await this.row(id))];
    const db = await this.#store.read();
    return (await db.selectFrom("external_playlists").selectAll().orderBy("id").execute()).map(shown);
  }

  /** The row of a list. Rejects with `not_found`. */
  async row(id: number): Promise<ExternalRow> {
    const db = await this.#store.read();
    const row = await db.selectFrom("external_playlists").selectAll().where("id", "=", id).executeTakeFirst();
    if (row === undefined) throw notFound(id);
    return row;
  }

  #now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }
}

async function recategorize(trx: Transaction<Schema>, id: number, category: string, now: number): Promise<void> {
  const group = sql.raw(GROUP);
  const first = sql.raw(FIRST_GROUP);
  for (let after = 0;;) {
    const page = await trx.selectFrom("playlist_items").select("id").where("external_playlist_id", "=", id)
      .where("id", ">", after).orderBy("id").limit(CHANGED_AT_ONCE).execute();
    const last = page[page.length - 1];
    if (last === undefined) return;
    await sql`UPDATE playlist_items SET
      category = ${category === "" ? sql`nullif(${first}, '')` : sql`${category}`},
      subcategory = ${category === "" ? sql`''` : group}, more_groups = NULL, updated_at = ${now}
      WHERE id > ${after} AND id <= ${last.id} AND external_playlist_id = ${id} AND locked = 0`.execute(trx);
    after = last.id;
    await nextTurn();
  }
}

function shown(row: ExternalRow): ExternalPlaylist {
  const { id, category, name, url, login, user_agent: userAgent } = row;
  return {
    id,
    type: row.type as ExternalType,
    category,
    name,
    url,
    login,
    userAgent,
    maxConnections: row.max_connections,
    updateInterval: row.update_interval,
    updatedAt: row.updated_at,
    lastUpdate: row.last_update,
    nextUpdate: row.next_update,
    lastError: row.last_error,
    lastErrorCode: row.last_error_code,
  };
}

/** The address without its credentials, which are used where `login` and `password` were not given. */
function separated(
  list: Pick<NewExternalPlaylist, "url" | "login" | "password">,
): { url: string; login: string; password: string } {
  const url = URL.canParse(list.url) ? new URL(list.url) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new MillraceError("invalid_argument", "invalid url: an http or https address is expected");
  }
  const given = { login: list.login ?? "", password: list.password ?? "" };
  const own = { login: percentDecoded(url.username), password: percentDecoded(url.password) };
  url.username = url.password = "";
  return { url: url.href, ...(given.login === "" ? own : given) };
}

/** Throws `invalid_argument` for a name that no request can carry. */
function requireUserAgent(name = ""): void {
  if (/^[\x20-\x7e]*$/.test(name)) return;
  throw new MillraceError("invalid_argument", "invalid user_agent: letters, digits and signs of ASCII are expected");
}

function notFound(id: number): MillraceError {
  return new MillraceError("not_found", `no external playlist ${id}`);
}

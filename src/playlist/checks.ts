/** Finds out which items are alive: a sweep looks for peers that share them; the results are kept by content. */
import { sql } from "kysely";
import { deadline } from "../bytes/deadline.ts";
import { forEachLimited } from "../bytes/limited.ts";
import { nextTurn } from "../bytes/turn.ts";
import type { Store } from "../database/store.ts";
import { abortError, MillraceError } from "../errors.ts";
import type { Clock, Logger } from "../ports.ts";
import type { ChannelMember } from "./channel.ts";
import type { ImportedEntry } from "./entry.ts";
import { selectorOf } from "./export.ts";
import { LASTING_HASH } from "./identity.ts";
import { among, isSelected, type ItemFilter, selectionOf } from "./listing.ts";
import { matchesOf } from "./matches.ts";
import { MAY_NAME_PRIVATE } from "./private-addresses.ts";
import { addressWithHeaders } from "./stated-headers.ts";
import type { TaskList, TaskProgress } from "./tasks.ts";

/** Most items of one sweep: it takes three hours if every one of them is silent. */
export const MAX_SWEPT = 1000;
/** Items read in one statement while choosing them. */
const READ_AT_ONCE = 1000;
/** Contents whose result is kept; beyond that the oldest result is forgotten. */
export const MAX_CHECKS = 100_000;
/** Items checked at once: few, so that streams that play keep their peers and bandwidth. */
const PARALLEL = 2;
/** Deadline for one item, ms: a DHT lookup takes up to ten seconds. */
const ITEM_TIMEOUT_MS = 20_000;
/** Longest message kept, characters. */
const MAX_MESSAGE = 200;
/** Kind of the task. */
const KIND = "playlist_check";

/** Result of a check; `unknown`: only a player could find out. */
export type CheckState = "alive" | "silent" | "unknown";

/** The result of looking for a content. */
export interface Sign {
  readonly state: CheckState;
  /** Peers that were connected when the search ended; null for content that comes by HTTP. */
  readonly peers: number | null;
  /** Why, in words; empty when there is nothing to say. */
  readonly message: string;
}

/** The content to look for. */
export interface CheckTarget {
  readonly transportType: string;
  /** Name and value of a parameter of playback. */
  readonly selector: readonly [name: "content_id" | "infohash" | "url" | "magnet", value: string];
  /** Address of items that come by HTTP, with the fields that its list states behind a `|`; null: unknown. */
  readonly url: string | null;
  /** True when its address may lead into the private network. */
  readonly mayNamePrivate: boolean;
  /** As in `ChannelMember`. */
  readonly account: ChannelMember["account"];
}

/** Looks for peers that share a content. Rejects when there are none, and with the signal's reason. */
export type ItemProbe = (wanted: CheckTarget, signal: AbortSignal) => Promise<Sign>;

/** The latest result about an item. Times are Unix seconds. */
export interface ItemCheck extends Sign {
  readonly id: number;
  readonly checkedAt: number;
  /** When it was last alive; 0: never. */
  readonly seenAt: number;
}

/** The items to sweep: those of `ids`, or those that the filter finds. */
export interface SweepRequest extends ItemFilter {
  readonly ids?: readonly number[] | undefined;
}

interface Row {
  readonly id: number;
  readonly hash: string;
  readonly transport_type: string;
  readonly content_id: string | null;
  readonly infohash: string;
  readonly url: string | null;
  /** `ImportedEntry`, JSON; null when no list names it. */
  readonly imported: string | null;
  readonly may_name_private: number;
  /** `ChannelMember.account`, JSON. */
  readonly account: string | null;
  /** 0: never. */
  readonly checked_at: number;
}

/** Checks items of the playlist and remembers the results. */
export class ItemChecks {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #tasks: TaskList;
  readonly #probe: ItemProbe;
  #running: number | null = null;

  constructor(parts: { store: Store; clock: Clock; log: Logger; tasks: TaskList; probe: ItemProbe }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#tasks = parts.tasks;
    this.#probe = parts.probe;
  }

  /**
   * Begins a sweep of at most `MAX_SWEPT` items and returns its task. Items that were never checked come first, then those
   * checked longest ago. Throws `conflict` while another sweep runs, and as `TaskList.start`.
   */
  sweep(request: SweepRequest): number {
    if (this.#running !== null) {
      throw new MillraceError("conflict", `task ${this.#running} is checking items; wait for its end or cancel it`);
    }
    const id = this.#tasks.start(KIND, (progress) => this.#run(request, progress), () => {
      this.#running = null;
      return Promise.resolve();
    }, "elsewhere");
    this.#running = id;
    return id;
  }

  /** The results about items of `ids`; those that were never checked are left out. */
  async get(ids: readonly number[]): Promise<ItemCheck[]> {
    const db = await this.#store.read();
    const rows = await db.selectFrom("playlist_items").innerJoin(
      "item_checks",
      (join) => join.on("item_checks.hash", "=", LASTING_HASH),
    )
      .select(["playlist_items.id", "state", "peers", "message", "checked_at", "seen_at"])
      .where("playlist_items.id", "in", [...ids]).execute();
    return rows.map(({ id, state, peers, message, checked_at, seen_at }) => ({
      id,
      state: state as CheckState,
      peers,
      message,
      checkedAt: checked_at,
      seenAt: seen_at,
    }));
  }

  async #run(request: SweepRequest, progress: TaskProgress): Promise<void> {
    const rows = await this.#choose(request, progress.signal);
    progress.total = rows.length;
    await forEachLimited(rows, PARALLEL, async (row) => {
      const sign = await this.#look(row, progress.signal);
      await this.#keep(row.hash, sign);
      progress.done++;
      if (sign.state !== "alive") progress.skipped++;
    });
  }

  async #choose({ ids, ...filter }: SweepRequest, signal: AbortSignal): Promise<readonly Row[]> {
    const db = await this.#store.read();
    const from = ids === undefined
      ? await matchesOf(this.#store).of(db, selectionOf(filter))
      : Float64Array.from(new Set(ids)).sort();
    // By content: items that share one are checked once, by the oldest.
    let chosen = new Map<string, Row>();
    let neverChecked = 0;
    for (let at = 0; at < from.length && neverChecked < MAX_SWEPT; at += READ_AT_ONCE) {
      const { rows } = await sql<Row>`SELECT playlist_items.id, ${LASTING_HASH} AS hash, transport_type, content_id,
          infohash, url, imported, ${MAY_NAME_PRIVATE} AS may_name_private, (
          SELECT json_object('list', id, 'name', name, 'maxConnections', max_connections) FROM external_playlists
          WHERE external_playlists.id = playlist_items.external_playlist_id) AS account, coalesce(checked_at, 0) AS checked_at
        FROM ${among(from.subarray(at, at + READ_AT_ONCE))}
        LEFT JOIN item_checks ON item_checks.hash = ${LASTING_HASH} WHERE ${isSelected(filter)}`.execute(db);
      for (const row of rows) {
        if (chosen.has(row.hash)) continue;
        chosen.set(row.hash, row);
        if (row.checked_at === 0) neverChecked++;
      }
      chosen = new Map(
        [...chosen].sort(([, a], [, b]) => a.checked_at - b.checked_at || a.id - b.id).slice(0, MAX_SWEPT),
      );
      await nextTurn();
      if (signal.aborted) throw abortError(signal);
    }
    return [...chosen.values()];
  }

  async #look(row: Row, signal: AbortSignal): Promise<Sign> {
    const selector = selectorOf(row);
    if (selector === null) return { state: "unknown", peers: null, message: "it has no address yet" };
    const { transport_type: transportType } = row;
    const url = row.url === null || row.imported === null || transportType === "bt"
      ? row.url
      : addressWithHeaders(row.url, JSON.parse(row.imported) as ImportedEntry);
    const mayNamePrivate = Boolean(row.may_name_private);
    const account = row.account === null ? null : JSON.parse(row.account) as CheckTarget["account"];
    const late = deadline(
      this.#clock,
      ITEM_TIMEOUT_MS,
      signal,
      () => new MillraceError("timeout", "no answer in time"),
    );
    try {
      const sign = await this.#probe({ transportType, selector, url, mayNamePrivate, account }, late.signal);
      // An aborted search proves nothing about the item.
      if (signal.aborted) throw abortError(signal);
      return sign;
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      const peers = transportType === "bt" ? 0 : null;
      if (error instanceof MillraceError) return { state: "silent", peers, message: error.message };
      this.#log.log("error", "an item could not be checked", { id: row.id, error });
      return { state: "unknown", peers, message: "internal error" };
    } finally {
      late.cancel();
    }
  }

  async #keep(hash: string, { state, peers, message }: Sign): Promise<void> {
    const db = await this.#store.open();
    const now = Math.floor(this.#clock.now() / 1000);
    const values = { state, peers, message: message.slice(0, MAX_MESSAGE), checked_at: now };
    const seen = state === "alive" ? { seen_at: now } : {};
    await db.insertInto("item_checks").values({ hash, seen_at: 0, ...values, ...seen })
      .onConflict((clash) => clash.column("hash").doUpdateSet({ ...values, ...seen })).execute();
    const firstTooMany = db.selectFrom("item_checks").select("checked_at").orderBy("checked_at", "desc")
      .limit(1).offset(MAX_CHECKS);
    await db.deleteFrom("item_checks").where("checked_at", "<=", firstTooMany).execute();
  }
}

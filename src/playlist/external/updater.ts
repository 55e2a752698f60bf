/** Fetches an external playlist and brings its items up to date. A failure changes only the time of the next try. */
import { match } from "./match.ts";
import { clearStage, stage, type Staged } from "./stage.ts";
import { applyEntries, markVanished } from "./apply.ts";
import type { Store } from "../../database/store.ts";
import { faultFields } from "../../bytes/guarded-clock.ts";
import { deadline } from "../../bytes/deadline.ts";
import { withoutCredentials } from "../../bytes/url-credentials.ts";
import { hasCode, MillraceError } from "../../errors.ts";
import type { Clock, Logger } from "../../ports.ts";
import { addGuides, ungroup } from "../import.ts";
import { nextUpdateAt } from "../refresh-time.ts";
import type { SpoolParts } from "../spool.ts";
import type { TaskError } from "../tasks.ts";
import { orderOf, storeSortKeys } from "./order.ts";
import { LossError, requireCredible } from "./loss.ts";
import { differingList, type FetchedList } from "./fetched-list.ts";
import { forgetValidators } from "./validators.ts";
import type { ExternalPlaylists, ExternalRow } from "./playlists.ts";
import type { OpenUrl, Sealer } from "./external-playlist.ts";

/**
 * How long to wait for the server of a list: panels make lists of 70,000 entries for minutes, before or after the head of
 * their answer. One that sends less than this for a minute is broken.
 */
export const LIST_PATIENCE = { timeoutMs: 5 * 60_000, idleMs: 3 * 60_000, minBytesPerS: 512 } as const;
/** Deadline of one whole update, ms: 100,000 entries over a slow line. */
const UPDATE_TIMEOUT_MS = 10 * 60_000;
/** Largest list after unpacking, bytes. */
const MAX_LIST_BYTES = 256 * 1024 * 1024;
/** Longest validator that is kept, characters; longer ones are ignored. */
const MAX_VALIDATOR_CHARS = 1024;
/** Longest error that is kept, characters. */
const MAX_ERROR_CHARS = 500;

/** Dependencies of `ExternalUpdater`. */
export interface UpdaterParts {
  readonly store: Store;
  readonly playlists: ExternalPlaylists;
  readonly clock: Clock;
  readonly log: Logger;
  readonly open: OpenUrl;
  readonly sealer: Sealer;
  /** Where a list is stored until it is known whether it changed. */
  readonly spools: SpoolParts;
  /** In [0, 1): spreads the updates of many engines. */
  readonly random: () => number;
  /** Called after an update changed items. */
  readonly onChanged: () => void;
}

/** Fetches lists and applies them, each in one transaction. */
export class ExternalUpdater {
  readonly #parts: UpdaterParts;
  readonly #running = new Map<number, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(parts: UpdaterParts) {
    this.#parts = parts;
  }

  /**
   * Updates one list; calls made meanwhile share the update that is under way. `isByHand`: the user asked for it. Rejects with `not_found`, or with the reason of
   * the failure: `connection_failed`, `denied`, `timeout`, `too_large`, `invalid_argument` (not a list), `conflict` (another
   * engine on the same database is reading it too, or the list lost most of its items).
   */
  update(id: number, { isByHand, report = () => {} }: UpdateOptions): Promise<void> {
    let update = this.#running.get(id);
    if (update === undefined) {
      update = this.#run(id, isByHand, report).finally(() => this.#running.delete(id));
      this.#running.set(id, update);
    }
    return update;
  }

  /** Aborts the running updates and waits for their end. */
  async close(): Promise<void> {
    this.#closing.abort(new MillraceError("closed", "the engine is closing"));
    await Promise.allSettled(this.#running.values());
  }

  async #run(id: number, isByHand: boolean, report: (error: TaskError) => void): Promise<void> {
    const { clock, log, playlists } = this.#parts;
    const row = await playlists.row(id);
    const late = deadline(
      clock,
      UPDATE_TIMEOUT_MS,
      this.#closing.signal,
      () => new MillraceError("timeout", "the list did not come in time"),
    );
    try {
      const done = await this.#fetchAndApply(row, { isByHand, report }, late.signal);
      await this.#succeeded(row, done);
      log.log("info", "an external playlist was updated", { id, entries: done.staged?.entries ?? "unchanged" });
    } catch (error) {
      if (!this.#closing.signal.aborted) await this.#failed(row, error);
      throw error;
    } finally {
      late.cancel();
    }
  }

  async #fetchAndApply(
    row: ExternalRow,
    options: Required<UpdateOptions>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const answer = await this.#parts.open(row.url, {
      // Some servers never change their ETag: what the user asks for by hand is fetched.
      headers: { ...options.isByHand ? {} : this.#conditions(row), ...agentOf(row) },
      credentials: await this.#credentials(row),
      ...LIST_PATIENCE,
      maxBytes: MAX_LIST_BYTES,
      allowPrivate: row.allow_private === 1,
    }, signal);
    try {
      if (answer.isPublic && row.from_public === 0) await this.#parts.playlists.cameFromPublic(row.id);
    } catch (error) {
      await answer.body.cancel().catch(() => {});
      throw error;
    }
    if (answer.status === 304 && !options.isByHand && (row.etag !== "" || row.last_modified !== "")) {
      await answer.body.cancel();
      return { etag: row.etag, lastModified: row.last_modified, digest: row.digest, staged: null };
    }
    if (!isWhole(answer.status)) {
      await answer.body.cancel();
      const hint = answer.status === 401 ? ": check login and password" : "";
      throw new MillraceError("connection_failed", `the server answered ${answer.status}${hint}`);
    }
    const validators = {
      etag: validator(answer.headers.get("etag")),
      lastModified: validator(answer.headers.get("last-modified")),
    };
    const baseUrl = withoutCredentials(answer.url);
    try {
      const list = await differingList(this.#parts.spools, answer.body, baseUrl, row.digest);
      if (list === null) return { ...validators, digest: row.digest, staged: null };
      try {
        const staged = await this.#stageAndApply(row, { answer, list }, baseUrl, options, signal);
        return { ...validators, digest: list.digest(), staged };
      } finally {
        // The database may have failed before anything was read.
        await list.body.cancel().catch(() => {});
        await list.remove();
      }
    } finally {
      await answer.body.cancel().catch(() => {});
    }
  }

  async #stageAndApply(
    row: ExternalRow,
    { answer: { headers, isUnpacked }, list }: Fetched,
    baseUrl: string,
    { isByHand, report }: Required<UpdateOptions>,
    signal: AbortSignal,
  ): Promise<Staged> {
    const { store } = this.#parts;
    try {
      const staged = await stage(store, {
        id: row.id,
        body: list.body,
        isUnpacked: isUnpacked === true,
        baseUrl,
        maxBytes: MAX_LIST_BYTES,
        facts: { category: row.category, isBroadcast: row.type === "broadcast" },
        report,
        signal,
      });
      const { rows } = staged;
      const { matched, present, lost, items } = await match(store, row.id, staged, signal);
      const now = this.#now();
      // Without a length nothing else shows that the connection broke off.
      const hasEnd = isUnpacked || headers.has("content-length") || headers.has("transfer-encoding");
      const loss = { present, lost: lost.length, isCut: !hasEnd && list.endsInLine() };
      requireCredible(loss, { since: row.shrunk_at, now, isByHand });
      // From here until the end the items match neither the last list nor this one: after a failure the next update must
      // read the list whole.
      await forgetValidators(await store.open(), "", (eb) => eb("id", "=", row.id));
      await markVanished(store, row.id, now, { rows, matched, lost });
      const order = await orderOf(staged, items);
      await applyEntries(store, row.id, { ...staged, sortKeys: order.added }, now, signal);
      await storeSortKeys(store, order.moved);
      await ungroup(store, { after: 0, list: row.id }, staged.ids);
      return staged;
    } finally {
      await clearStage(store, row.id);
    }
  }

  #conditions(row: ExternalRow): Record<string, string> {
    const headers: Record<string, string> = {};
    if (row.etag !== "") headers["if-none-match"] = row.etag;
    if (row.last_modified !== "") headers["if-modified-since"] = row.last_modified;
    return headers;
  }

  async #credentials({ login, password, url }: ExternalRow) {
    if (login === "") return null;
    try {
      return { login, password: password === "" ? "" : await this.#parts.sealer.open(password, url) };
    } catch (cause) {
      if (!hasCode(cause, "corrupt")) throw cause;
      throw new MillraceError(
        "conflict",
        "the password of this list was sealed with another key; enter it again, or put back the file secret-key of " +
          "the state directory that it was stored with",
        { cause },
      );
    }
  }

  async #succeeded(row: ExternalRow, { etag, lastModified, digest, staged }: Outcome): Promise<void> {
    const { store, random } = this.#parts;
    const db = await store.open();
    const now = this.#now();
    const updated = await db.updateTable("external_playlists").set((eb) => {
      // A list edited meanwhile needs its entries under the new category or login, and a playlist cleared or an item unlocked
      // meanwhile needs its entries back: then the next update must read the whole list, so no validator is stored.
      const isAsItWas = eb.and([
        eb("updated_at", "=", row.updated_at),
        eb("digest", "=", staged === null ? row.digest : ""),
      ]);
      const unlessChanged = (value: string) => eb.case().when(isAsItWas).then(value).else("").end();
      return {
        last_update: now,
        failures: 0,
        last_error: "",
        last_error_code: "",
        shrunk_at: 0,
        etag: unlessChanged(etag),
        last_modified: unlessChanged(lastModified),
        digest: unlessChanged(digest),
      };
    }).where("id", "=", row.id).returning("id").execute();
    // The list may have been deleted meanwhile.
    if (updated.length === 0) return;
    if (staged !== null) {
      await db.deleteFrom("guides").where("external_playlist_id", "=", row.id).execute();
      await addGuides(store, row.id, staged.guides);
    }
    await this.#plan(row.id, 0, random());
    if (staged !== null) this.#parts.onChanged();
  }

  async #failed(row: ExternalRow, error: unknown): Promise<void> {
    const { store, log, random } = this.#parts;
    const isFault = !(error instanceof MillraceError);
    const code = isFault ? "internal" : error.code;
    const told = isFault ? "internal error" : error.message.slice(0, MAX_ERROR_CHARS);
    const fields = isFault ? faultFields(error) : { error: told };
    log.log(isFault ? "error" : "warn", "an external playlist was not updated", { id: row.id, ...fields });
    try {
      const db = await store.open();
      const isShrunk = error instanceof LossError;
      // The server is fine: a loss is no reason to ask more often than usual.
      const failures = isShrunk ? 0 : row.failures + 1;
      const doubt = isShrunk && row.shrunk_at === 0 ? { shrunk_at: this.#now() } : {};
      await db.updateTable("external_playlists").set({ failures, last_error: told, last_error_code: code, ...doubt })
        .where("id", "=", row.id)
        .execute();
      await this.#plan(row.id, failures, random());
    } catch (cause) {
      log.log("error", "an external playlist's failure was not stored", { id: row.id, error: cause });
    }
  }

  /** Reads the interval again, as it may have been edited meanwhile. */
  async #plan(id: number, failures: number, random: number): Promise<void> {
    const db = await this.#parts.store.open();
    const row = await db.selectFrom("external_playlists").select("update_interval").where("id", "=", id)
      .executeTakeFirst();
    if (row === undefined) return;
    const next = nextUpdateAt(this.#now(), row.update_interval, failures, random);
    await db.updateTable("external_playlists").set({ next_update: next }).where("id", "=", id).execute();
  }

  #now(): number {
    return Math.floor(this.#parts.clock.now() / 1000);
  }
}

/** How an update was started. */
export interface UpdateOptions {
  readonly isByHand: boolean;
  /** Called with the lines that could not be used. */
  readonly report?: (error: TaskError) => void;
}

interface Fetched {
  readonly answer: Awaited<ReturnType<OpenUrl>>;
  readonly list: FetchedList;
}

/** Whether an answer with this status has a whole list. A part (206), which nobody asked for, is no list. */
export function isWhole(status: number): boolean {
  return status >= 200 && status <= 299 && status !== 206;
}

function agentOf({ user_agent: name }: ExternalRow): Record<string, string> {
  return name === "" ? {} : { "user-agent": name };
}

/** Result of a successful fetch; `staged` null: the list has not changed. */
interface Outcome {
  readonly etag: string;
  readonly lastModified: string;
  readonly digest: string;
  readonly staged: Staged | null;
}

function validator(value: string | null): string {
  return value !== null && value.length <= MAX_VALIDATOR_CHARS ? value : "";
}

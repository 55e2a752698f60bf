/** Fetches a guide and keeps what it says about the library's channels. A failure changes only the time of the next try. */
import { faultFields } from "../../bytes/guarded-clock.ts";
import { deadline } from "../../bytes/deadline.ts";
import type { Store } from "../../database/store.ts";
import { hasCode, MillraceError } from "../../errors.ts";
import type { Clock, Logger } from "../../ports.ts";
import type { OpenUrl } from "../external/external-playlist.ts";
import { isWhole, LIST_PATIENCE } from "../external/updater.ts";
import { unpacked } from "../m3u/unpack.ts";
import { nextUpdateAt } from "../refresh-time.ts";
import { GuideKeeper } from "./keep.ts";
import { libraryNames } from "./match.ts";
import type { GuideSourceRow, GuideSources } from "./sources.ts";
import { readXmltv } from "./xmltv-read.ts";

/** Deadline of one whole update, ms: 300 MB over a slow line. */
const UPDATE_TIMEOUT_MS = 30 * 60_000;
/** Largest guide, packed or not, bytes: the largest there are have half of it. */
const MAX_GUIDE_BYTES = 1024 * 1024 * 1024;
/** Longest validator and error that are kept, characters. */
const MAX_VALIDATOR_CHARS = 1024;
const MAX_ERROR_CHARS = 500;

/** Dependencies of `GuideUpdater`. */
export interface GuideUpdaterParts {
  readonly store: Store;
  readonly sources: GuideSources;
  readonly clock: Clock;
  readonly log: Logger;
  readonly open: OpenUrl;
  /** In [0, 1): spreads the updates of many engines. */
  readonly random: () => number;
  /** As `Ports.spent`. */
  readonly spent?: ((bytes: number) => void) | undefined;
}

/** Validators of a guide that was fetched. */
interface Validators {
  readonly etag: string;
  readonly last_modified: string;
}

/** Fetches guides, one update per guide at a time. */
export class GuideUpdater {
  readonly #parts: GuideUpdaterParts;
  readonly #running = new Map<number, { readonly over: Promise<void>; readonly ending: AbortController }>();
  readonly #closing = new AbortController();

  constructor(parts: GuideUpdaterParts) {
    this.#parts = parts;
  }

  /**
   * Updates one guide; calls made meanwhile share the update that is under way. `isByHand`: the user asked for it, so
   * validators do not count. Rejects with `not_found`, or with the reason of the failure: `connection_failed`, `denied`, `timeout`,
   * `too_large`, `invalid_argument` (no guide).
   */
  update(id: number, { isByHand }: { readonly isByHand: boolean }): Promise<void> {
    let update = this.#running.get(id);
    if (update === undefined) {
      const ending = new AbortController();
      const signal = AbortSignal.any([ending.signal, this.#closing.signal]);
      const over = this.#run(id, isByHand, signal).finally(() => this.#running.delete(id));
      this.#running.set(id, update = { over, ending });
    }
    return update.over;
  }

  /** Ends the update of a guide that is given up. */
  async stop(id: number): Promise<void> {
    const update = this.#running.get(id);
    update?.ending.abort(new MillraceError("not_found", "the guide was deleted meanwhile"));
    await update?.over.catch(() => {});
  }

  /** Aborts the running updates and waits for their end. */
  async close(): Promise<void> {
    this.#closing.abort(new MillraceError("closed", "the engine is closing"));
    await Promise.allSettled([...this.#running.values()].map(({ over }) => over));
  }

  async #run(id: number, isByHand: boolean, signal: AbortSignal): Promise<void> {
    const { clock, log, sources } = this.#parts;
    const row = await sources.row(id);
    const late = deadline(
      clock,
      UPDATE_TIMEOUT_MS,
      signal,
      () => new MillraceError("timeout", "the guide did not come in time"),
    );
    try {
      const validators = await this.#fetchAndKeep(row, isByHand, late.signal);
      await this.#ended(id, 0, { ...validators, last_update: this.#now(), last_error: "" });
      log.log("info", "a guide was updated", { id });
    } catch (error) {
      if (!signal.aborted) await this.#failed(row, error);
      throw error;
    } finally {
      late.cancel();
    }
  }

  async #fetchAndKeep(row: GuideSourceRow, isByHand: boolean, signal: AbortSignal): Promise<Validators> {
    const { open, sources } = this.#parts;
    const { etag, last_modified } = row;
    const conditions: Record<string, string> = {};
    if (!isByHand && etag !== "") conditions["if-none-match"] = etag;
    if (!isByHand && last_modified !== "") conditions["if-modified-since"] = last_modified;
    const allowPrivate = await sources.mayBePrivate(row);
    const options = { headers: conditions, ...LIST_PATIENCE, maxBytes: MAX_GUIDE_BYTES, allowPrivate };
    const { status, headers, body, isUnpacked = false } = await open(row.url, options, signal);
    try {
      if (status === 304 && Object.keys(conditions).length > 0) return { etag, last_modified };
      if (!isWhole(status)) throw new MillraceError("connection_failed", `the server answered ${status}`);
      await this.#keep(row, body, isUnpacked, signal);
      return { etag: validator(headers.get("etag")), last_modified: validator(headers.get("last-modified")) };
    } finally {
      await body.cancel().catch(() => {});
    }
  }

  async #keep(
    row: GuideSourceRow,
    body: ReadableStream<Uint8Array>,
    isUnpacked: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const db = await this.#parts.store.open();
    const started = await db.updateTable("guide_sources").set((eb) => ({ generation: eb("generation", "+", 1) }))
      .where("id", "=", row.id).returning(["generation", "is_given"]).executeTakeFirst();
    if (started === undefined) throw new MillraceError("not_found", `no guide ${row.id}`);
    const library = await libraryNames(db, signal);
    const keeper = new GuideKeeper({ db, source: row.id, ...started, now: this.#now(), library });
    const bytes = unpacked(body, {
      maxBytes: MAX_GUIDE_BYTES,
      maxUnpackedBytes: MAX_GUIDE_BYTES,
      isUnpacked,
      what: "guide",
      // Only its text is used. A guide of 300 MB left as much memory for the collector, and Bun's waited for 180 MB.
      isLent: true,
      signal,
    });
    try {
      for await (const events of readXmltv(this.#spent(bytes), { isUnwanted: (id) => keeper.isUnwanted(id), signal })) {
        await keeper.add(events);
      }
    } catch (error) {
      // What came of a guide that breaks off is kept.
      if (!signal.aborted && hasCode(error, "invalid_argument")) await keeper.flush();
      throw error;
    }
    await keeper.finish();
  }

  /** `chunks`, which are of no use once the next one is read. */
  async *#spent(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const { spent = () => {} } = this.#parts;
    for await (const chunk of chunks) {
      const { length } = chunk;
      yield chunk;
      spent(length);
    }
  }

  async #failed(row: GuideSourceRow, error: unknown): Promise<void> {
    const { log } = this.#parts;
    const isFault = !(error instanceof MillraceError);
    const told = isFault ? "internal error" : error.message.slice(0, MAX_ERROR_CHARS);
    log.log(isFault ? "error" : "warn", "a guide was not updated", {
      id: row.id,
      ...(isFault ? faultFields(error) : { error: told }),
    });
    try {
      await this.#ended(row.id, row.failures + 1, { last_error: told });
    } catch (cause) {
      log.log("error", "a guide's failure was not stored", { id: row.id, error: cause });
    }
  }

  /** Stores the outcome and when the guide is due next; it may have been deleted, or its interval changed, meanwhile. */
  async #ended(
    id: number,
    failures: number,
    outcome: Partial<Pick<GuideSourceRow, "etag" | "last_modified" | "last_update" | "last_error">>,
  ): Promise<void> {
    const { store, random } = this.#parts;
    const db = await store.open();
    const row = await db.selectFrom("guide_sources").select("update_interval").where("id", "=", id).executeTakeFirst();
    if (row === undefined) return;
    const next_update = nextUpdateAt(this.#now(), row.update_interval, failures, random());
    await db.updateTable("guide_sources").set({ ...outcome, failures, next_update }).where("id", "=", id).execute();
  }

  #now(): number {
    return Math.floor(this.#parts.clock.now() / 1000);
  }
}

function validator(value: string | null): string {
  return value !== null && value.length <= MAX_VALIDATOR_CHARS ? value : "";
}

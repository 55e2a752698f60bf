/**
 * Asks the addresses that a magnet names for its transport file (`xs`, `as`), one after the other, while no peer sends the
 * metadata: of some magnets no peer is left, or none that we can reach.
 */
import { deadline, sleep } from "../../bytes/deadline.ts";
import { allowServer, type ServerScope } from "../../discovery/types.ts";
import { MillraceError } from "../../errors.ts";
import { type AnyMetainfo, fromPublic, parseAnyTransportFile } from "../../metainfo/live.ts";
import type { Ports } from "../../ports.ts";
import type { MetadataBudget } from "./metadata-fetch.ts";

/** Peers have this long before others are asked, ms: most metadata has arrived by then. */
const PATIENCE_MS = 3_000;

/** Time for one source, ms: the next one may be quick. */
const ASK_MS = 10_000;

/** How often a place in the memory for metadata is asked for, ms. */
const BUDGET_RETRY_MS = 1_000;

/** Sources of one torrent: each costs a connection. */
const MAX_SOURCES = 16;

/** Largest file read, bytes, held back of the memory for metadata: one of 500,000 pieces. */
const MAX_BYTES = 10 * 1024 * 1024;

/**
 * Gets the transport file at an address that a caller of `scope` named; `isPublic`: what it names must be public, too.
 * Rejects as `fetchTransportFile` does.
 */
export type TransportFileFetch = (
  url: string,
  scope: ServerScope,
  maxBytes: number,
  signal: AbortSignal,
) => Promise<{ readonly bytes: Uint8Array; readonly isPublic: boolean }>;

/** What the sources of a torrent need. */
export interface TransportSourceParts {
  readonly infohashHex: string;
  readonly ports: Pick<Ports, "clock" | "log">;
  readonly budget: MetadataBudget;
  readonly fetch: TransportFileFetch;
  /** The torrent's description, at most once; `scope`: of the servers that it names. */
  found(metainfo: AnyMetainfo, scope: ServerScope): void;
}

/** The sources of one torrent. */
export class TransportSources {
  readonly #parts: TransportSourceParts;
  readonly #scopes = new Map<string, ServerScope>();
  readonly #queue = new Set<string>();
  readonly #ending = new AbortController();
  #isRunning = false;

  constructor(parts: TransportSourceParts) {
    this.#parts = parts;
  }

  /** Adds sources that a caller of `scope` named, and begins. `atOnce`: no peer will send the metadata. */
  add(urls: readonly string[], scope: ServerScope, atOnce: boolean): void {
    for (const url of urls) {
      const before = this.#scopes.get(url);
      if (before === undefined && this.#scopes.size >= MAX_SOURCES) continue;
      allowServer(this.#scopes, url, scope);
      if (this.#scopes.get(url) !== before) this.#queue.add(url);
    }
    if (!this.#isRunning && this.#queue.size > 0) void this.#run(atOnce ? 0 : PATIENCE_MS).catch(() => {});
  }

  /** The metadata is known, or nobody wants it any more. */
  close(): void {
    this.#ending.abort();
    this.#queue.clear();
  }

  async #run(delayMs: number): Promise<void> {
    const { ports: { clock }, budget } = this.#parts;
    const { signal } = this.#ending;
    this.#isRunning = true;
    try {
      await sleep(clock, delayMs, signal);
      while (!budget.take(MAX_BYTES)) await sleep(clock, BUDGET_RETRY_MS, signal);
      try {
        for (const url of this.#queue) {
          this.#queue.delete(url);
          await this.#ask(url);
        }
      } finally {
        budget.give(MAX_BYTES);
      }
    } finally {
      this.#isRunning = false;
    }
  }

  async #ask(url: string): Promise<void> {
    const { infohashHex, ports: { clock, log }, fetch, found } = this.#parts;
    const limit = deadline(clock, ASK_MS, this.#ending.signal);
    const scope = this.#scopes.get(url)!;
    try {
      const { bytes, isPublic } = await fetch(url, scope, MAX_BYTES, limit.signal);
      const metainfo = await parseAnyTransportFile(bytes);
      if (metainfo.infohashHex !== infohashHex) {
        throw new MillraceError("bad_transport_file", "the transport file there is of another torrent");
      }
      if (this.#ending.signal.aborted) return;
      this.close();
      found(isPublic ? fromPublic(metainfo) : metainfo, isPublic ? "public" : scope);
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      // Without path and query, which may hold a key.
      const fields = {
        infohash: infohashHex,
        host: new URL(url).host,
        reason: error instanceof Error ? error.message : String(error),
      };
      log.log("info", "a magnet's address of its transport file is of no use", fields);
    } finally {
      limit.cancel();
    }
  }
}

/**
 * Separate connections for reading a local file. With a write-ahead log they see committed data and never wait for a
 * writer: clearing a list of 100,000 items kept a single connection busy for seconds, and every query waited for it.
 */
import type { Kysely } from "kysely";
import { MillraceError } from "../errors.ts";
import type { Schema } from "./schema.ts";

/**
 * Snapshots open at once: each belongs to a response that its client has not read to the end, and keeps the log from
 * shrinking.
 */
const MAX_SNAPSHOTS = 16;

/** The database as it was at one moment. */
export interface Snapshot {
  readonly db: Kysely<Schema>;
  /** Releases it; idempotent. Never rejects. */
  release(): Promise<void>;
}

/** Opens and shares these connections, and hands out snapshots. */
export class ReadConnections {
  readonly #connect: () => Promise<Kysely<Schema>>;
  #shared: Promise<Kysely<Schema>> | null = null;
  #idle: Kysely<Schema>[] = [];
  readonly #snapshots = new Set<Snapshot>();

  /** `connect` opens another connection. */
  constructor(connect: () => Promise<Kysely<Schema>>) {
    this.#connect = connect;
  }

  /** A connection for short statements, which wait only for each other. */
  shared(): Promise<Kysely<Schema>> {
    return this.#shared ??= this.#connect().catch((error) => {
      this.#shared = null;
      throw error;
    });
  }

  /** Rejects with `too_busy` when too many are open. */
  async snapshot(): Promise<Snapshot> {
    if (this.#snapshots.size >= MAX_SNAPSHOTS) {
      throw new MillraceError(
        "too_busy",
        "too many lists are being read at once; finish reading those under way",
      );
    }
    let isReleased = false;
    let release = () => Promise.resolve();
    const snapshot: { db: Kysely<Schema> | null; release(): Promise<void> } = {
      db: null,
      release: async () => {
        if (isReleased) return;
        isReleased = true;
        await release();
        this.#snapshots.delete(snapshot as Snapshot);
      },
    };
    // Counted before the first wait.
    this.#snapshots.add(snapshot as Snapshot);
    try {
      const connection = this.#idle.pop() ?? await this.#connect();
      release = () => connection.destroy();
      const transaction = await connection.startTransaction().setAccessMode("read only").execute();
      release = async () => {
        try {
          await transaction.rollback().execute();
          this.#idle.push(connection);
        } catch {
          await connection.destroy().catch(() => {});
        }
      };
      return { db: snapshot.db = transaction, release: snapshot.release };
    } catch (error) {
      await snapshot.release();
      throw error;
    }
  }

  /** Releases everything, including snapshots that are still being read. */
  async close(): Promise<void> {
    await Promise.all([...this.#snapshots].map((snapshot) => snapshot.release()));
    const shared = await this.#shared?.catch(() => null) ?? null;
    const idle = this.#idle;
    this.#idle = [];
    await Promise.all([shared, ...idle].map((connection) => connection?.destroy()));
  }
}

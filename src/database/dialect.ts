/**
 * kysely on a `SqlClient`. There is one connection, passed from one user to the next: calls on a local file are
 * synchronous, so more connections would bring no speed, only `SQLITE_BUSY`. For the same reason we wait for other
 * processes here, with a timer, and never inside SQLite, where waiting would stop the whole engine.
 *
 * Inside a transaction use only the transaction: the outer database would wait for the connection that it holds.
 */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type TransactionSettings,
} from "kysely";
import type { Clock } from "../ports.ts";
import { databaseError, isBusy } from "./errors.ts";
import type { SqlClient, SqlTransaction } from "./sql-client.ts";
import { storable } from "./storable.ts";

/** How long another process's write may take before the caller gets `too_busy`. */
const BUSY_DEADLINE_MS = 5_000;
/** First pause before the next try; it doubles up to `MAX_PAUSE_MS`. */
const FIRST_PAUSE_MS = 2;
const MAX_PAUSE_MS = 100;
/** Set per connection, not stored in the file. FULL: acknowledged data survives a power cut. */
const CONNECTION_PRAGMAS: readonly string[] = [
  "PRAGMA synchronous = FULL",
  "PRAGMA foreign_keys = ON",
  // KiB. A large list touches its indexes at random: the default of 2 MiB writes each page many times over.
  "PRAGMA cache_size = -8192",
  // Pages. What a commit copies from the log into the file keeps everybody waiting. With 4000 the longest turn late in an import
  // of 100,000 items took 64 ms of processor, once 188, with this 53; the import takes as long.
  "PRAGMA wal_autocheckpoint = 1000",
];

/**
 * The dialect over `client`, which it closes at the end. `pragmas` are run before the first statement; default: those for
 * a sound database.
 */
export function storeDialect(client: SqlClient, clock: Clock, pragmas = CONNECTION_PRAGMAS): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new StoreDriver(client, clock, pragmas),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

class StoreDriver implements Driver {
  readonly #client: SqlClient;
  readonly #connection: StoreConnection;
  /** Resolves when the last user in the queue is done. */
  #last: Promise<void> = Promise.resolve();
  #done: () => void = () => {};

  constructor(client: SqlClient, clock: Clock, pragmas: readonly string[]) {
    this.#client = client;
    this.#connection = new StoreConnection(client, clock, pragmas);
  }

  init(): Promise<void> {
    return Promise.resolve();
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#last;
    let done = () => {};
    this.#last = new Promise((resolve) => done = resolve);
    await before;
    this.#done = done;
    return this.#connection;
  }

  releaseConnection(): Promise<void> {
    this.#done();
    return Promise.resolve();
  }

  beginTransaction(_connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    return this.#connection.begin(settings.accessMode === "read only" ? "read" : "write");
  }

  commitTransaction(): Promise<void> {
    return this.#connection.end("commit");
  }

  rollbackTransaction(): Promise<void> {
    return this.#connection.end("rollback");
  }

  async destroy(): Promise<void> {
    await this.#last;
    this.#client.close();
  }
}

class StoreConnection implements DatabaseConnection {
  readonly #client: SqlClient;
  readonly #clock: Clock;
  readonly #pragmas: readonly string[];
  #transaction: SqlTransaction | null = null;
  #isSetUp = false;
  /** Whether a statement of the transaction was refused because another process holds the database. */
  #wasRefused = false;

  constructor(client: SqlClient, clock: Clock, pragmas: readonly string[]) {
    this.#client = client;
    this.#clock = clock;
    this.#pragmas = pragmas;
  }

  async begin(mode: "read" | "write"): Promise<void> {
    this.#transaction = await this.#patiently(() => this.#client.transaction(mode));
  }

  async end(how: "commit" | "rollback"): Promise<void> {
    const transaction = this.#transaction;
    this.#transaction = null;
    try {
      await transaction?.[how]();
    } catch (error) {
      // A refused commit keeps its lock until a garbage collection. Only this connection can write beside it.
      throw databaseError(error);
    } finally {
      transaction?.close();
      if (this.#wasRefused) await this.#renew();
    }
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const statement = { sql, args: parameters.map(storable) };
    const transaction = this.#transaction;
    const client = this.#client;
    const result = await this.#patiently(() =>
      transaction === null ? client.execute(statement) : transaction.execute(statement)
    );
    return {
      rows: result.rows as Row[],
      numAffectedRows: BigInt(result.changes),
      ...(result.insertId === null ? {} : { insertId: result.insertId }),
    };
  }

  /** Returns all rows in one part: the client offers no cursor. Read large tables page by page. */
  async *streamQuery<Row>(query: CompiledQuery): AsyncIterableIterator<QueryResult<Row>> {
    yield await this.executeQuery<Row>(query);
  }

  async #patiently<T>(action: () => Promise<T>): Promise<T> {
    const giveUpMs = this.#clock.monotonic() + BUSY_DEADLINE_MS;
    for (let pauseMs = FIRST_PAUSE_MS;; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      try {
        await this.#setUp();
        return await action();
      } catch (error) {
        if (!isBusy(error)) throw databaseError(error);
        if (this.#transaction !== null) {
          this.#wasRefused = true;
          throw databaseError(error);
        }
        await this.#renew();
        if (this.#clock.monotonic() >= giveUpMs) throw databaseError(error);
      }
      await new Promise<void>((resolve) => void this.#clock.setTimeout(resolve, pauseMs));
    }
  }

  /**
   * Replaces the connection after a refusal (`SQLITE_BUSY`). The library leaves the refused statement half done until a
   * garbage collection: it may keep a lock, and while it waits later writes are acknowledged that are never committed.
   * Statements that fail for another reason (a constraint, a full disk) end at once.
   */
  async #renew(): Promise<void> {
    this.#wasRefused = this.#isSetUp = false;
    await this.#client.reconnect();
  }

  async #setUp(): Promise<void> {
    if (this.#isSetUp) return;
    if (this.#client.isLocal) {
      for (const sql of this.#pragmas) await this.#client.execute({ sql, args: [] });
    }
    this.#isSetUp = true;
  }
}

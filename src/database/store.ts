/** The engine's database: opened at the first use, so that an engine that needs none loads no library for it either. */
import { Kysely, sql } from "kysely";
import { hasCode, MillraceError } from "../errors.ts";
import { setAside } from "../bytes/set-aside.ts";
import type { Clock, FilePort, Logger, SqlitePort } from "../ports.ts";
import { storeDialect } from "./dialect.ts";
import { currentVersion, migrate, requireUsable } from "./migrations.ts";
import { openClient, type StoreLocation } from "./open-client.ts";
import { ReadConnections, type Snapshot } from "./readers.ts";
import { salvage, SALVAGE_PRAGMAS, type Salvaged } from "./salvage.ts";
import type { Schema } from "./schema.ts";

export type { StoreLocation } from "./open-client.ts";

/** Returns where an engine with these options keeps its data. */
export function storeLocation(options: {
  readonly databaseUrl: string | null;
  readonly databaseToken: string | null;
  readonly stateDir: string | null;
}): StoreLocation {
  const { databaseUrl, databaseToken, stateDir } = options;
  if (databaseUrl) return { kind: "server", url: databaseUrl, token: databaseToken };
  return stateDir ? { kind: "file", path: `${stateDir}/millrace.db` } : { kind: "memory" };
}

/** The database of an engine. */
export interface Store {
  /**
   * The database, ready for queries. Rejects with `corrupt`, `conflict` (made by a newer release), `config` (another
   * program's), `unavailable` (this machine has no SQLite) or `connection_failed`; the next use tries again.
   */
  open(): Promise<Kysely<Schema>>;
  /** As `open`, for short read-only statements: with a file they do not wait for writers. */
  read(): Promise<Kysely<Schema>>;
  /**
   * The data committed so far, for reading with many statements; release it. With a file it does not change; elsewhere
   * it is the database itself. Rejects as `open`, and with `too_busy`.
   */
  snapshot(): Promise<Snapshot>;
  /** True when its file was damaged and renamed, and this run began with what could be read of it. */
  readonly wasReplaced: boolean;
  /** True when it is a server: replies come over a network. */
  readonly isRemote: boolean;
  /** Returns whether it may contain data, determined without opening it. */
  mayHoldData(): Promise<boolean>;
  /** Waits for running statements; later uses reject with `closed`. */
  close(): Promise<void>;
}

/** The parts of the machine that the store needs. */
export interface StorePorts {
  readonly files: FilePort;
  readonly clock: Clock;
  readonly log: Logger;
  /** Absent or null: files are opened with libSQL's native library. */
  readonly sqlite?: SqlitePort | null;
}

/** Settings of `createStore`. */
export interface StoreOptions {
  /** Sets a damaged file aside and continues with what can be read of it instead of rejecting with `corrupt`. Default false. */
  readonly replacesDamaged?: boolean;
}

/** File mode: accounts and playlists are private to the owner. */
const OWNER_ONLY = 0o600;

/** Makes a `Store`. Opens nothing. */
export function createStore(
  ports: StorePorts,
  location: StoreLocation,
  { replacesDamaged = false }: StoreOptions = {},
): Store {
  let opening: Promise<Kysely<Schema>> | null = null;
  let closed = false;
  let wasReplaced = false;
  const connected = async () => {
    try {
      return await connect(ports, location);
    } catch (error) {
      if (!replacesDamaged || location.kind !== "file" || !hasCode(error, "corrupt")) throw error;
      await replace(ports, location.path);
      wasReplaced = true;
      return await connect(ports, location);
    }
  };
  const open = () => {
    if (closed) return Promise.reject(new MillraceError("closed", "the database is closed"));
    opening ??= connected().catch((error) => {
      opening = null;
      throw error;
    });
    return opening;
  };
  const readers = location.kind !== "file" ? null : new ReadConnections(async () => {
    await open();
    return await connection(ports, location);
  });
  return {
    open,
    read: () => closed || readers === null ? open() : readers.shared(),
    async snapshot() {
      if (!closed && readers !== null) return await readers.snapshot();
      return { db: await open(), release: () => Promise.resolve() };
    },
    get wasReplaced() {
      return wasReplaced;
    },
    isRemote: location.kind === "server",
    async mayHoldData() {
      if (location.kind !== "file") return location.kind === "server" || opening !== null;
      try {
        return (await ports.files.info(location.path)).sizeBytes > 0;
      } catch (error) {
        if (hasCode(error, "not_found")) return false;
        throw error;
      }
    },
    async close() {
      closed = true;
      await readers?.close();
      const db = await opening?.catch(() => null) ?? null;
      if (db === null) return;
      // The library may postpone the last close to a garbage collection that never comes; the data is safe either way.
      if (location.kind === "file") await sql`PRAGMA wal_checkpoint(TRUNCATE)`.execute(db).catch(() => {});
      await db.destroy();
    },
  };
}

/** Renames a damaged database; returns its new path. SQLite does not touch files that were renamed while open. */
async function setDatabaseAside({ files, clock }: StorePorts, path: string): Promise<string> {
  const kept = await setAside(files, clock, path);
  for (const suffix of ["-wal", "-shm"]) {
    // These files belong to the damaged database, not to the new one.
    await files.rename(path + suffix, kept + suffix).catch((error) => {
      if (!hasCode(error, "not_found")) throw error;
    });
  }
  return kept;
}

/**
 * Puts a new database in place of a damaged one, with what can be read of it. It is made beside it, so that a process that
 * is killed meanwhile leaves the damaged one to the next. Rejects with `disk_full`, and then changes nothing.
 */
async function replace(ports: StorePorts, path: string): Promise<void> {
  const { files, log } = ports;
  const made = `${path}.salvaged`;
  const removeMade = async () => {
    for (const suffix of ["", "-journal"]) await files.remove(made + suffix);
  };
  await removeMade();
  let found: Salvaged | null = null;
  let failure: unknown;
  try {
    found = await salvageInto(ports, path, made);
  } catch (error) {
    await removeMade();
    if (hasCode(error, "disk_full")) throw error;
    failure = error;
  }
  const kept = await setDatabaseAside(ports, path);
  if (found !== null && found.total > 0) {
    await files.rename(made, path);
    log.log("error", "the database was damaged: what can be read of playlists, accounts and settings was kept", {
      kept,
      rows: found.rows,
      damaged: found.damaged,
    });
  } else {
    await removeMade();
    log.log(
      "error",
      "the database was damaged, and nothing in it can be read: playlists, accounts and settings start empty",
      {
        kept,
        ...(failure === undefined ? {} : { error: failure }),
      },
    );
  }
}

/** Makes a database at `made` with what can be read of the one at `path`. */
async function salvageInto(ports: StorePorts, path: string, made: string): Promise<Salvaged> {
  await prepareFile(ports.files, made);
  const old = await connection(ports, { kind: "file", path }, SALVAGE_PRAGMAS);
  try {
    const fresh = await connection(ports, { kind: "file", path: made });
    try {
      return await salvage(old, fresh);
    } finally {
      await fresh.destroy();
    }
  } finally {
    await old.destroy();
  }
}

/** One connection to the database as it is: it is neither checked nor upgraded, and a damaged one is not replaced. */
export async function connection(
  ports: StorePorts,
  location: StoreLocation,
  pragmas?: readonly string[],
): Promise<Kysely<Schema>> {
  const client = await openClient(ports.sqlite ?? null, location);
  return new Kysely<Schema>({ dialect: storeDialect(client, ports.clock, pragmas) });
}

async function connect(ports: StorePorts, location: StoreLocation): Promise<Kysely<Schema>> {
  if (location.kind === "file") await prepareFile(ports.files, location.path);
  const db = await connection(ports, location);
  try {
    if (location.kind === "file") await requireSound(db);
    requireUsable(await currentVersion(db));
    // Before anything is written: without WAL a commit fails when another process happens to read.
    if (location.kind === "file") await sql`PRAGMA journal_mode = WAL`.execute(db);
    await migrate(db);
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

async function prepareFile(files: FilePort, path: string): Promise<void> {
  await files.makeDirectory(path.slice(0, path.lastIndexOf("/")) || "/");
  const found = await files.info(path).catch(() => null);
  if (found?.isDirectory) throw new MillraceError("corrupt", "there is a directory in place of the database file");
  const handle = await files.open(path, "write", { permissions: OWNER_ONLY });
  await handle.close();
}

/** Only reads, so that a damaged or foreign database stays unchanged. */
async function requireSound(db: Kysely<Schema>): Promise<void> {
  // As a function of SQL it takes a number for the name of a table in newer releases of SQLite.
  const { rows } = await sql<{ quick_check: string }>`PRAGMA quick_check(1)`.execute(db);
  // Its words are not passed on: they hold names out of the damaged file.
  if (rows[0]?.quick_check !== "ok") throw new MillraceError("corrupt", "the database is damaged");
}

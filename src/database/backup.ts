/**
 * A backup is one SQLite file: the database of an engine, and beside its tables two more, with files of the state directory
 * and with facts about the backup. Everything works while engines use the database.
 */
import { type Kysely, sql } from "kysely";
import { hasCode, MillraceError } from "../errors.ts";
import { copyRows } from "./copy-rows.ts";
import { currentVersion, migrate, MIGRATIONS, requireUsable } from "./migrations.ts";
import { connection, createStore, type StoreLocation, type StorePorts } from "./store.ts";
import type { Schema } from "./schema.ts";

/** Only its owner may read a backup: it holds keys and tokens. */
const OWNER_ONLY = 0o600;
/** The form of the tables that a backup adds. */
const FORM = 1;
/** Files that SQLite may leave beside a database. */
const SUFFIXES = ["", "-journal", "-wal", "-shm"] as const;

/** A file of the state directory. */
export interface KeptFile {
  /** Relative to the state directory, with `/` between its parts. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** What a backup says about itself. */
export interface BackupFacts {
  /** The release that made it. */
  readonly release: string;
  /** Unix ms. */
  readonly createdMs: number;
  /** Version of the database in it; 0: it has none. */
  readonly version: number;
  /** Files in it. */
  readonly files: number;
}

/**
 * Makes a backup at `path`, absolute, of the database at `location` (null: there is none) and of `files`. A database that
 * another release made is copied as it is. Rejects with `conflict` when `path` exists, or the database is of a newer release;
 * nothing is left then.
 */
export async function writeBackup(
  ports: StorePorts,
  location: StoreLocation | null,
  path: string,
  release: string,
  files: AsyncIterable<KeptFile>,
): Promise<BackupFacts> {
  if (await exists(ports, path)) throw new MillraceError("conflict", `${path} exists: name another file`);
  const partial = `${path}.partial`;
  await discard(ports, partial);
  try {
    // SQLite writes into an empty file, which keeps this mode.
    await (await ports.files.open(partial, "write", { permissions: OWNER_ONLY })).close();
    if (location !== null) await copyDatabase(ports, location, partial);
    const facts = await using(ports, partial, async (db) => await addFiles(db, ports, release, files));
    await ports.files.rename(partial, path);
    return facts;
  } catch (error) {
    await discard(ports, partial);
    throw error;
  }
}

async function copyDatabase(ports: StorePorts, location: StoreLocation, path: string): Promise<void> {
  const db = await connection(ports, location, []);
  try {
    const version = await currentVersion(db);
    requireUsable(version);
    if (location.kind === "file") {
      await sql`VACUUM INTO ${path}`.execute(db);
      return;
    }
    await using(ports, path, async (copy) => {
      await migrate(copy, version);
      // One transaction sees one moment.
      await db.transaction().setAccessMode("read only").execute((trx) => copyRows(trx, copy, copy));
    });
  } finally {
    await db.destroy();
  }
}

async function addFiles(
  db: Kysely<Schema>,
  ports: StorePorts,
  release: string,
  files: AsyncIterable<KeptFile>,
): Promise<BackupFacts> {
  const version = await currentVersion(db);
  await sql`CREATE TABLE backup_facts (form INTEGER NOT NULL, release TEXT NOT NULL, created_ms INTEGER NOT NULL)`
    .execute(db);
  await sql`CREATE TABLE backup_files (path TEXT PRIMARY KEY, bytes BLOB NOT NULL)`.execute(db);
  const createdMs = Math.floor(ports.clock.now());
  let count = 0;
  await db.transaction().execute(async (trx) => {
    await sql`INSERT INTO backup_facts VALUES (${FORM}, ${release}, ${createdMs})`.execute(trx);
    for await (const { path, bytes } of files) {
      await sql`INSERT INTO backup_files VALUES (${path}, ${bytes})`.execute(trx);
      count++;
    }
  });
  return { release, createdMs, version, files: count };
}

/** An open backup. Close it. */
export class Backup {
  readonly facts: BackupFacts;
  readonly #ports: StorePorts;
  readonly #db: Kysely<Schema>;

  private constructor(ports: StorePorts, db: Kysely<Schema>, facts: BackupFacts) {
    this.#ports = ports;
    this.#db = db;
    this.facts = facts;
  }

  /** Rejects with `config` for another file, `corrupt` for a damaged one, `conflict` for one of a newer release. */
  static async open(ports: StorePorts, path: string): Promise<Backup> {
    if (!await exists(ports, path)) throw new MillraceError("config", `there is no backup ${path}`);
    const db = await connection(ports, { kind: "file", path }, []);
    try {
      return new Backup(ports, db, await readFacts(db, path));
    } catch (error) {
      await db.destroy();
      if (!hasCode(error, "corrupt")) throw error;
      throw new MillraceError("corrupt", `${path} is damaged, or no backup of millrace`, { cause: error });
    }
  }

  /** Its files, by path. */
  async *files(): AsyncGenerator<KeptFile> {
    const { rows } = await sql<{ path: string }>`SELECT path FROM backup_files ORDER BY path`.execute(this.#db);
    for (const { path } of rows) {
      const found = await sql<{ bytes: ArrayBuffer }>`SELECT bytes FROM backup_files WHERE path = ${path}`.execute(
        this.#db,
      );
      yield { path, bytes: new Uint8Array(found.rows[0]!.bytes) };
    }
  }

  /** Makes its database at `path`, which must not exist, at the version that it has. */
  async databaseTo(path: string): Promise<void> {
    try {
      await (await this.#ports.files.open(path, "write", { permissions: OWNER_ONLY })).close();
      await sql`VACUUM INTO ${path}`.execute(this.#db);
      await using(this.#ports, path, async (db) => {
        for (const table of ["backup_facts", "backup_files"]) await sql`DROP TABLE ${sql.table(table)}`.execute(db);
        await sql`VACUUM`.execute(db);
      });
    } catch (error) {
      await discard(this.#ports, path);
      throw error;
    }
  }

  /**
   * Copies its database to a server, all or nothing, in the version of this release. `scratch` is the path of a file that is
   * used meanwhile. Rejects with `conflict` when the server holds data already.
   */
  async databaseToServer(location: StoreLocation, scratch: string): Promise<void> {
    const target = createStore(this.#ports, location);
    try {
      await this.databaseTo(scratch);
      const source = createStore(this.#ports, { kind: "file", path: scratch });
      try {
        const from = await source.open();
        const to = await target.open();
        await to.transaction().execute(async (trx) => await copyRows(from, trx, from));
      } finally {
        await source.close();
      }
    } finally {
      await target.close();
      await discard(this.#ports, scratch);
    }
  }

  async close(): Promise<void> {
    await this.#db.destroy();
  }
}

async function readFacts(db: Kysely<Schema>, path: string): Promise<BackupFacts> {
  const { rows: names } = await sql`SELECT name FROM sqlite_master WHERE name IN ('backup_facts', 'backup_files')`
    .execute(db);
  if (names.length !== 2) throw new MillraceError("config", `${path} is no backup of millrace`);
  const { rows } = await sql<{ form: number; release: string; created_ms: number }>`SELECT * FROM backup_facts`.execute(
    db,
  );
  const { rows: checks } = await sql<{ quick_check: string }>`PRAGMA quick_check(1)`.execute(db);
  const found = rows[0];
  if (found === undefined || checks[0]?.quick_check !== "ok") throw new MillraceError("corrupt", "damaged");
  const { rows: tables } = await sql<{ count: number }>`SELECT count(*) AS "count" FROM sqlite_master
    WHERE type = 'table' AND name = 'schema_version'`.execute(db);
  const version = Number(tables[0]!.count) === 0 ? 0 : await currentVersion(db);
  if (found.form > FORM || version > MIGRATIONS.length) {
    throw new MillraceError(
      "conflict",
      `${path} was made by millrace ${found.release} (database version ${version}), which is newer: ` +
        `this release knows up to version ${MIGRATIONS.length}. Restore it with that release`,
    );
  }
  const { rows: counted } = await sql<{ count: number }>`SELECT count(*) AS "count" FROM backup_files`.execute(db);
  return { release: found.release, createdMs: found.created_ms, version, files: Number(counted[0]!.count) };
}

async function using<T>(ports: StorePorts, path: string, body: (db: Kysely<Schema>) => Promise<T>): Promise<T> {
  const db = await connection(ports, { kind: "file", path });
  try {
    // One file, without a log beside it.
    await sql`PRAGMA journal_mode = DELETE`.execute(db);
    return await body(db);
  } finally {
    await db.destroy();
  }
}

async function exists({ files }: StorePorts, path: string): Promise<boolean> {
  try {
    await files.info(path);
    return true;
  } catch (error) {
    if (hasCode(error, "not_found")) return false;
    throw error;
  }
}

async function discard({ files }: StorePorts, path: string): Promise<void> {
  for (const suffix of SUFFIXES) await files.remove(path + suffix);
}

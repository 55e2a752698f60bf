/** Opens connections: to a file with the SQLite that this machine has, to a server with libSQL's client. */
import type { Client } from "@libsql/client";
import { MillraceError } from "../errors.ts";
import type { SqlitePort } from "../ports.ts";
import { databaseError } from "./errors.ts";
import { libsqlClient, type SqlClient, sqliteClient } from "./sql-client.ts";

/** Location of the data. */
export type StoreLocation =
  /** A file; it and its directory are created at the first use. */
  | { readonly kind: "file"; readonly path: string }
  /** A libSQL server that several engines may share: `libsql:`, `http:`, `https:`, `ws:` or `wss:`. */
  | { readonly kind: "server"; readonly url: string; readonly token: string | null }
  /** Lost when the engine ends. */
  | { readonly kind: "memory" };

/** libSQL's client for files with its native library; null: that cannot be loaded. */
type LocalLibsql = { createClient(config: { url: string; concurrency: number; timeout: number }): Client } | null;

/**
 * Asked once. A module that failed to load is half there at the second try, and two SQLite libraries in one process would
 * drop each other's file locks.
 */
let localLibsql: Promise<LocalLibsql> | null = null;

/**
 * Opens a connection. `sqlite` is the runtime's own library. Rejects with `unavailable` when a file is to be opened and no
 * library can be loaded, and as `databaseError` says.
 */
export async function openClient(sqlite: SqlitePort | null, location: StoreLocation): Promise<SqlClient> {
  try {
    if (location.kind === "server") {
      const { createClient } = await import("@libsql/client/web");
      const { url, token } = location;
      return libsqlClient(createClient({ url, ...(token === null ? {} : { authToken: token }) }));
    }
    const path = location.kind === "file" ? location.path : null;
    if (sqlite !== null) return sqliteClient(() => sqlite.open(path ?? ":memory:"));
    localLibsql ??= import("@libsql/client").catch(() => null);
    const libsql = await localLibsql;
    if (libsql === null) throw noLibrary();
    const url = path === null ? ":memory:" : `file:${path.split("/").map(encodeURIComponent).join("/")}`;
    return libsqlClient(libsql.createClient({ url, concurrency: 1, timeout: 0 }));
  } catch (error) {
    throw databaseError(error);
  }
}

function noLibrary(): MillraceError {
  return new MillraceError(
    "unavailable",
    "there is no SQLite for the library, settings and accounts: use Node 22.18 or newer, Deno or Bun, which bring it, " +
      "or put libsql.node beside the program",
  );
}

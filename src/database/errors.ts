/** Translates database errors into the engine's. */
import { type ErrorCode, MillraceError } from "../errors.ts";

const CODES: Readonly<Record<string, ErrorCode>> = {
  SQLITE_BUSY: "too_busy",
  SQLITE_LOCKED: "too_busy",
  SQLITE_FULL: "disk_full",
  SQLITE_TOOBIG: "too_large",
  SQLITE_CORRUPT: "corrupt",
  SQLITE_NOTADB: "corrupt",
  SQLITE_CONSTRAINT: "conflict",
  SQLITE_CANTOPEN: "io",
  SQLITE_IOERR: "io",
  SQLITE_READONLY: "io",
  SQLITE_PERM: "io",
  CLIENT_CLOSED: "closed",
  TRANSACTION_CLOSED: "closed",
  SERVER_ERROR: "unavailable",
  HRANA_WEBSOCKET_ERROR: "connection_failed",
  HRANA_CLOSED_ERROR: "connection_failed",
};

const MESSAGES: Readonly<Partial<Record<ErrorCode, string>>> = {
  too_busy: "the database is busy; try again",
  disk_full: "the disk of the database is full",
  corrupt: "the database is damaged",
  io: "the database cannot be opened or written",
  conflict: "the database refuses the change: it contradicts what is stored",
  closed: "the database is closed",
  unavailable: "the database server failed",
  connection_failed: "the database server cannot be reached",
};

/** True when another writer holds the database. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === "SQLITE_BUSY";
}

/** `error` as a `MillraceError` whose message contains no statement and no value. */
export function databaseError(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = CODES[codeOf(error)] ?? uncodedError(error);
  return new MillraceError(code, MESSAGES[code] ?? "the database failed", { cause: error });
}

/** The library throws some errors without a code: for files that it cannot open, and servers that `fetch` cannot reach. */
function uncodedError(error: unknown): ErrorCode {
  if (!(error instanceof Error)) return "internal";
  if (error.message.startsWith("ConnectionFailed(")) return "io";
  return error instanceof TypeError && /fetch|connect/i.test(error.message) ? "connection_failed" : "internal";
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/**
 * Every error that the engine raises on purpose. `code` is stable and machine-readable; the message says what the user
 * can do. HTTP statuses and API codes are assigned to these in `src/http` only.
 */

/** Stable error codes. One word per cause, never a place. */
export type ErrorCode =
  | "invalid_argument" // the caller's value is malformed or out of range
  | "missing_selector" // no stream selector was given
  | "not_found" // nothing by that name or id
  | "bad_transport_file" // the transport file or metadata is malformed or hostile
  | "bad_media" // the container is damaged or unreadable
  | "unsupported_media" // a codec or container that cannot be carried
  | "no_playable_file" // the torrent contains nothing playable
  | "timeout" // a deadline passed
  | "start_timeout" // a stream did not start before its deadline
  | "aborted" // the caller gave up
  | "closed" // the thing was closed while in use
  | "connection_failed" // a TCP/UDP/HTTP counterpart could not be reached or hung up
  | "protocol_violation" // a peer or server broke its protocol
  | "too_large" // over a named limit
  | "too_busy" // a bounded resource is exhausted; try later
  | "denied" // the address, host or token is not allowed
  | "conflict" // clashes with the present state
  | "disk_full"
  | "io" // the file system failed
  | "corrupt" // stored data does not match its hash
  | "tracker" // a tracker answered with a failure
  | "unavailable" // a needed part (ffmpeg, port) is missing
  | "config" // a flag, variable or key of the configuration is wrong
  | "internal";

/**
 * Typed error; `cause` keeps the original, `detail` carries fields for logs. Clients see the message, so paths of this
 * machine appear only in `detail.path`; `describeError` returns both.
 *
 * @example
 * ```ts
 * function isWorthAnotherTry(error: unknown): boolean {
 *   return error instanceof MillraceError && (error.code === "too_busy" || error.code === "start_timeout");
 * }
 * ```
 */
export class MillraceError extends Error {
  override readonly name = "MillraceError";
  readonly code: ErrorCode;
  readonly detail: Readonly<Record<string, unknown>> | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; detail?: Record<string, unknown> } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.detail = options.detail;
  }
}

/** The message of `error` with the path it concerns, for logs and for the user at the terminal. */
export function describeError(error: Error): string {
  const path = error instanceof MillraceError ? error.detail?.["path"] : undefined;
  return typeof path === "string" ? `${error.message}: ${path}` : error.message;
}

/** True when `error` is ours and carries `code`. */
export function hasCode(error: unknown, code: ErrorCode): error is MillraceError {
  return error instanceof MillraceError && error.code === code;
}

/** The reason of an aborted signal as a MillraceError (code `aborted` unless the reason already is one). */
export function abortError(signal: AbortSignal): MillraceError {
  const reason: unknown = signal.reason;
  if (reason instanceof MillraceError) return reason;
  if (reason instanceof DOMException && reason.name === "TimeoutError") {
    return new MillraceError("timeout", "the deadline passed", { cause: reason });
  }
  return new MillraceError("aborted", "the operation was aborted", { cause: reason });
}

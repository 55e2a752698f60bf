/** The one table of API error codes (section 7 of the HTTP API), and how the engine's errors become them. */
import { type ErrorCode, MillraceError } from "../../errors.ts";

/** Numbers of the failure envelope. 0 belongs to the messages that the HTTP API document gives. */
export const API_CODES = {
  documented: 0,
  unknownMethod: 1,
  missingParameter: 2,
  invalidParameter: 3,
  accessDenied: 4,
  notFound: 5,
  timeout: 6,
  unsupportedApiVersion: 7,
  conflict: 8,
  unavailable: 9,
  internal: 10,
} as const;

const CODE_OF: Readonly<Record<ErrorCode, number>> = {
  invalid_argument: API_CODES.invalidParameter,
  missing_selector: API_CODES.missingParameter,
  not_found: API_CODES.notFound,
  bad_transport_file: API_CODES.invalidParameter,
  bad_media: API_CODES.invalidParameter,
  unsupported_media: API_CODES.invalidParameter,
  no_playable_file: API_CODES.notFound,
  timeout: API_CODES.timeout,
  start_timeout: API_CODES.timeout,
  aborted: API_CODES.timeout,
  closed: API_CODES.unavailable,
  connection_failed: API_CODES.unavailable,
  protocol_violation: API_CODES.unavailable,
  too_large: API_CODES.invalidParameter,
  too_busy: API_CODES.unavailable,
  denied: API_CODES.accessDenied,
  conflict: API_CODES.conflict,
  disk_full: API_CODES.unavailable,
  io: API_CODES.internal,
  corrupt: API_CODES.internal,
  tracker: API_CODES.unavailable,
  unavailable: API_CODES.unavailable,
  config: API_CODES.internal,
  internal: API_CODES.internal,
};

/** Statuses of API answers: 200 but for an address that may not call, a body over its limit, and too many calls. */
export type ApiStatus = 200 | 403 | 413 | 429;

/** A failure as reported to the caller. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** One of `API_CODES`. */
  readonly code: number;
  readonly status: ApiStatus;
  /** When to try again, s (`Retry-After`, RFC 9110 section 10.2.3); null where that is not known. */
  readonly retryAfterS: number | null;

  constructor(code: number, message: string, status: ApiStatus = 200, retryAfterS: number | null = null) {
    super(message);
    this.code = code;
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

/** What is reported to the caller for `error`; internal messages stay in the log, since they may name paths. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const code = error instanceof MillraceError ? CODE_OF[error.code] : API_CODES.internal;
  return new ApiError(code, code === API_CODES.internal ? "internal error" : (error as Error).message);
}

/** The failure envelope (section 2.1). */
export function failureEnvelope(error: ApiError): Record<string, unknown> {
  return { result: null, error: { message: error.message, code: error.code } };
}

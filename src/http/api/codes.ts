/** Failures of API calls (section 7 of the HTTP API), and how the engine's errors become them. */
import { MillraceError } from "../../errors.ts";
import { API_CODES, REPORTED_AS } from "../error-codes.ts";

export { API_CODES };

/**
 * Statuses of API responses: 200, except for an address that may not call, a body over its limit, and too many calls.
 */
export type ApiStatus = 200 | 403 | 413 | 429;

/** A failure as reported to the caller. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** One of `API_CODES`. */
  readonly code: number;
  readonly status: ApiStatus;
  /** When to try again, s (`Retry-After`, RFC 9110 section 10.2.3); null when that is not known. */
  readonly retryAfterS: number | null;

  constructor(code: number, message: string, status: ApiStatus = 200, retryAfterS: number | null = null) {
    super(message);
    this.code = code;
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

/** The report of `error` to the caller. Internal messages stay in the log, since they may contain paths. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const code = error instanceof MillraceError ? REPORTED_AS[error.code].api : API_CODES.internal;
  return new ApiError(code, code === API_CODES.internal ? "internal error" : (error as Error).message);
}

/** The failure envelope (section 2.1). It has no key `result`: clients take the key itself for success. */
export function failureEnvelope(error: ApiError): Record<string, unknown> {
  return { error: { message: error.message, code: error.code } };
}

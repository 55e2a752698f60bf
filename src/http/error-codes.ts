/** The one table of errors: which HTTP status and which code of the method API each of the engine's codes becomes. */
import type { ErrorCode } from "../errors.ts";

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

/** How an error is reported. */
export interface ReportedAs {
  /** HTTP status of a failed playback request; 499 for one whose caller gave up. */
  readonly status: number;
  /** One of `API_CODES`. */
  readonly api: number;
}

const { missingParameter, invalidParameter, accessDenied, notFound, timeout, conflict, unavailable, internal } =
  API_CODES;

/** By code of `MillraceError`. */
export const REPORTED_AS: Readonly<Record<ErrorCode, ReportedAs>> = {
  invalid_argument: { status: 400, api: invalidParameter },
  missing_selector: { status: 400, api: missingParameter },
  not_found: { status: 404, api: notFound },
  bad_transport_file: { status: 400, api: invalidParameter },
  bad_media: { status: 415, api: invalidParameter },
  unsupported_media: { status: 415, api: invalidParameter },
  no_playable_file: { status: 404, api: notFound },
  timeout: { status: 504, api: timeout },
  start_timeout: { status: 504, api: timeout },
  aborted: { status: 499, api: timeout },
  closed: { status: 404, api: unavailable },
  connection_failed: { status: 502, api: unavailable },
  protocol_violation: { status: 502, api: unavailable },
  too_large: { status: 413, api: invalidParameter },
  too_busy: { status: 503, api: unavailable },
  denied: { status: 403, api: accessDenied },
  conflict: { status: 409, api: conflict },
  disk_full: { status: 507, api: unavailable },
  io: { status: 500, api: internal },
  corrupt: { status: 500, api: internal },
  tracker: { status: 502, api: unavailable },
  unavailable: { status: 503, api: unavailable },
  config: { status: 500, api: internal },
  internal: { status: 500, api: internal },
};

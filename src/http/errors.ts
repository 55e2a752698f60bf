/** The one place where error codes become HTTP statuses and API codes. */
import { type ErrorCode, MillraceError } from "../errors.ts";

/** HTTP status of a failed playback request. */
const STATUS: Readonly<Record<ErrorCode, number>> = {
  invalid_argument: 400,
  missing_selector: 400,
  not_found: 404,
  bad_transport_file: 400,
  bad_media: 415,
  unsupported_media: 415,
  no_playable_file: 404,
  timeout: 504,
  start_timeout: 504,
  aborted: 499,
  closed: 404,
  connection_failed: 502,
  protocol_violation: 502,
  too_large: 413,
  too_busy: 503,
  denied: 403,
  conflict: 409,
  disk_full: 507,
  io: 500,
  corrupt: 500,
  tracker: 502,
  unavailable: 503,
  config: 500,
  internal: 500,
};

/** What is reported to the client. */
export interface PublicError {
  readonly status: number;
  readonly message: string;
}

/** Ours keep their message; anything else is an internal error whose message stays in the log. */
export function publicError(error: unknown): PublicError {
  if (error instanceof MillraceError) return { status: STATUS[error.code], message: error.message };
  return { status: 500, message: "internal error" };
}

/** Most characters of a caller's own word in a message. */
const MAX_WORD_CHARS = 64;

/** A caller's own word as a message repeats it: no more of it than `MAX_WORD_CHARS`. */
export function shortened(word: string): string {
  const characters = Array.from(word.slice(0, 2 * MAX_WORD_CHARS + 2));
  return characters.length <= MAX_WORD_CHARS ? word : `${characters.slice(0, MAX_WORD_CHARS).join("")}…`;
}

/** A failed playback request as players on any page may read it. */
export function playbackFailure(error: unknown): Response {
  const { status, message } = publicError(error);
  return new Response(`${message}\n`, {
    status: status === 499 ? 503 : status,
    headers: { "content-type": "text/plain; charset=utf-8", "access-control-allow-origin": "*" },
  });
}

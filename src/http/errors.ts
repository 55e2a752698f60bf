/** Errors as responses report them. */
import { type ErrorCode, MillraceError } from "../errors.ts";
import { REPORTED_AS } from "./error-codes.ts";

/** The report to the client. */
export interface PublicError {
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
}

/** Our errors keep their message. Anything else is an internal error whose message stays in the log. */
export function publicError(error: unknown): PublicError {
  if (error instanceof MillraceError) {
    return { status: REPORTED_AS[error.code].status, code: error.code, message: error.message };
  }
  return { status: 500, code: "internal", message: "internal error" };
}

/** Most characters quoted from a caller in a message. */
const MAX_WORD_CHARS = 64;

/** A caller's own text as a message quotes it: at most `MAX_WORD_CHARS` of it. */
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

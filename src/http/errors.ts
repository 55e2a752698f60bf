/** Errors as responses report them. */
import { MillraceError } from "../errors.ts";
import { REPORTED_AS } from "./error-codes.ts";

/** What is reported to the client. */
export interface PublicError {
  readonly status: number;
  readonly message: string;
}

/** Ours keep their message; anything else is an internal error whose message stays in the log. */
export function publicError(error: unknown): PublicError {
  if (error instanceof MillraceError) return { status: REPORTED_AS[error.code].status, message: error.message };
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

/** Makes texts well-formed before they are stored, so that every reader of the database reads the same. */

/** Halves of surrogate pairs as JSON writes them, at any depth of JSON inside JSON: the deeper, the more backslashes. */
const ESCAPED_HALVES = /(?<!\\)(\\+)u(?:d[89ab][\da-f]{2}(?:(\\+)ud[c-f][\da-f]{2})?|d[c-f][\da-f]{2})/gi;
/** What begins each of them. */
const HALF = /\\ud/i;

/**
 * `value` with U+FFFD in place of each half of a surrogate pair. They come from texts that were cut inside a letter of two
 * code units, such as an emoji.
 */
export function storable(value: unknown): unknown {
  if (typeof value !== "string") return value;
  const text = value.toWellFormed();
  if (!HALF.test(text)) return text;
  return text.replace(ESCAPED_HALVES, (halves, first: string, second?: string) => {
    // Together they are harmless. Other numbers of backslashes are of another depth.
    if (first === second) return halves;
    return second === undefined ? `${first}ufffd` : `${first}ufffd${second}ufffd`;
  });
}

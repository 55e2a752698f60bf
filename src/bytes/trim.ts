/** Trimming text in linear time: `/x+$/` looks at the rest of a run again from each of its characters. */

/** `text` without the characters of `unwanted` at its end. */
export function trimEndOf(text: string, unwanted: string): string {
  let end = text.length;
  while (end > 0 && unwanted.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}

/** `text` without the characters of `unwanted` at its start and its end. */
export function trimOf(text: string, unwanted: string): string {
  let start = 0;
  while (start < text.length && unwanted.includes(text[start]!)) start++;
  return trimEndOf(text.slice(start), unwanted);
}

/** `text` up to the first `mark`, or all of it without one. */
export function upTo(text: string, mark: string): string {
  const at = text.indexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}

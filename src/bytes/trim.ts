/** Trims text in linear time: `/x+$/` scans the rest of a run again from each of its characters. */

/** `text` without trailing characters of `unwanted`. */
export function trimEndOf(text: string, unwanted: string): string {
  let end = text.length;
  while (end > 0 && unwanted.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}

/** `text` without leading and trailing characters of `unwanted`. */
export function trimOf(text: string, unwanted: string): string {
  let start = 0;
  while (start < text.length && unwanted.includes(text[start]!)) start++;
  return trimEndOf(text.slice(start), unwanted);
}

/** `text` up to the first `mark`, or all of it if there is none. */
export function upTo(text: string, mark: string): string {
  const at = text.indexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}

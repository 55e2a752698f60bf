/** Percent-encoding as people write it (RFC 3986, section 2.1). */

/** `text` decoded; unchanged where a percent sign stands for itself. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Decodes texts whose encoding is unknown. */

/** UTF-16 by its byte order mark, or by the zeros beside the first letters of a text; null for anything else. */
export function utf16Name([a, b, c, d]: Uint8Array): "utf-16le" | "utf-16be" | null {
  if ((a === 0xff && b === 0xfe) || (a !== 0 && b === 0 && c !== 0 && d === 0)) return "utf-16le";
  if ((a === 0xfe && b === 0xff) || (a === 0 && b !== 0 && c === 0 && d !== 0)) return "utf-16be";
  return null;
}

/**
 * Decodes texts of one file, in turn, whatever their encoding: UTF-8, else Windows-1251 or Windows-1252 by what its letters look
 * like so far. `first`: the text may begin with a byte order mark.
 */
export function textDecoder(): (bytes: Uint8Array, first: boolean) => string {
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const cyrillic = new TextDecoder("windows-1251");
  const latin = new TextDecoder("windows-1252");
  let together = 0;
  let alone = 0;
  return (bytes, first) => {
    let text: string;
    try {
      text = utf8.decode(bytes);
    } catch {
      // Cyrillic words are runs of high bytes; in Latin ones a high byte stands between ASCII letters.
      for (let at = 0; at < bytes.length; at++) {
        if (bytes[at]! < 0xc0) continue;
        if ((bytes[at - 1] ?? 0) >= 0xc0 || (bytes[at + 1] ?? 0) >= 0xc0) together++;
        else alone++;
      }
      text = (together > 2 * alone ? cyrillic : latin).decode(bytes);
    }
    return first ? text.replace(/^\uFEFF/, "") : text;
  };
}

/** A whole text in any usual encoding: UTF-8, UTF-16, Windows-1251 or Windows-1252. */
export function decodeText(bytes: Uint8Array): string {
  const name = utf16Name(bytes);
  return name === null ? textDecoder()(bytes, true) : new TextDecoder(name).decode(bytes);
}

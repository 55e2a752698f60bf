/** Percent-encoding (RFC 3986, section 2.1). */

/** `text` decoded, as people write it; unchanged where a percent sign stands for itself. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `bytes` as one component of a path; what `encodeURIComponent` gives for text. */
export function percentEncoded(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    text += /[A-Za-z0-9\-_.!~*'()]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return text;
}

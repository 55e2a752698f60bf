/** Text in XML. */

/** Characters that XML 1.0 forbids (section 2.2), even as a reference. */
// deno-lint-ignore no-control-regex
const FORBIDDEN = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g;
const REFERENCES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** `text` for an element or an attribute; characters that XML forbids, lone surrogates included, become U+FFFD. */
export function escapeXml(text: string): string {
  return text.toWellFormed().replace(FORBIDDEN, "\ufffd").replace(/[&<>"']/g, (char) => REFERENCES[char]!);
}

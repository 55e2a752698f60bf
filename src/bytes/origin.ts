/** Origins of pages (RFC 6454, HTML section 7.1.1), as browsers write them in the field `Origin`. */

/** Longest origin that is read, characters: a scheme, a host name of 253 and a port. */
const MAX_ORIGIN_CHARS = 300;

/**
 * The origin of a URL, in lower case and without a default port; null when it has none. Schemes of applications and
 * browser extensions have origins too.
 */
export function originOf(url: string): string | null {
  const [text] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\\s@,*]+(?=[/?#]|$)/i.exec(url.slice(0, MAX_ORIGIN_CHARS + 1)) ?? [];
  if (text === undefined || text.length > MAX_ORIGIN_CHARS) return null;
  if (!/^https?:/i.test(text)) return text.toLowerCase();
  return URL.canParse(text) ? new URL(text).origin : null;
}

/** As `originOf` for text that is only an origin, with or without a slash at the end; else null. */
export function exactOrigin(text: string): string | null {
  return /^[^/]*:\/\/[^/?#]*\/?$/.test(text) ? originOf(text) : null;
}

/** The first line of an extended M3U playlist. There is no standard; the attributes are those that lists carry. */

/** Attributes that name programme guides, each a list separated by commas. */
const GUIDES = new Set(["url-tvg", "x-tvg-url", "tvg-url"]);
/** Longest header looked at, characters: some name hundreds of guides. */
const MAX_HEADER_CHARS = 256 * 1024;
/** Most guides of one list. */
const MAX_GUIDES = 1000;

/**
 * Addresses of the programme guides that `text` names in its `#EXTM3U` line, in their order, each once; null when it is
 * no M3U playlist: neither that line nor an `#EXTINF` is there.
 */
export function epgSources(text: string): string[] | null {
  const start = text.slice(0, MAX_HEADER_CHARS).replace(/^\uFEFF/, "").trimStart();
  const header = /^#EXTM3U(?=[ \t\r\n]|$)([^\r\n]*)/i.exec(start)?.[1];
  if (header === undefined) return /^#EXTINF:/m.test(start) ? [] : null;
  const sources = new Set<string>();
  for (const [name, value] of attributes(header)) {
    if (!GUIDES.has(name)) continue;
    for (const part of value.split(",")) {
      const url = part.trim();
      if (/^https?:\/\//i.test(url) && URL.canParse(url) && sources.size < MAX_GUIDES) sources.add(url);
    }
  }
  return [...sources];
}

/** `name="value"`, `name='value'` and `name=value`, names in lower case. */
function* attributes(line: string): Iterable<[string, string]> {
  for (const match of line.matchAll(/([A-Za-z][\w-]{0,63})\s?=\s?(?:"([^"]*)"|'([^']*)'|([^\s"']+))/g)) {
    yield [match[1]!.toLowerCase(), match[2] ?? match[3] ?? match[4] ?? ""];
  }
}

/** Variables of HLS playlists, `EXT-X-DEFINE` and `{$NAME}` (RFC 8216bis, 4.3 and 4.4.2.3). */

/** Values by name. */
export type HlsVariables = ReadonlyMap<string, string>;

/** No variables. */
export const NO_VARIABLES: HlsVariables = new Map();

/** Most variables of a playlist: tokens and host names, a few. */
const MAX_VARIABLES = 64;
/** Longest text with all values in it, characters, as of a playlist without: short names may stand for long values. */
const MAX_CHARS = 4 * 1024 * 1024;
const DEFINE = "#EXT-X-DEFINE:";
const REFERENCE = /\{\$([A-Za-z0-9_-]+)\}/g;

/**
 * `text` with values in place of references, and the variables that it defines. `baseUrl`: where it came from; `imported`:
 * the variables of the master playlist that led to it. Throws where a value is missing, or for more than any playlist needs.
 */
export function withVariables(
  text: string,
  baseUrl: string,
  imported: HlsVariables,
): { readonly text: string; readonly variables: HlsVariables } {
  if (!text.includes(DEFINE)) return { text, variables: NO_VARIABLES };
  const variables = new Map<string, string>();
  const known = (name: string, value: string | null | undefined) => {
    if (value === null || value === undefined) throw new Error(`it does not say the value of ${name.slice(0, 40)}`);
    return value;
  };
  let chars = 0;
  const lines = text.split("\n").map((untrimmed) => {
    const line = untrimmed.trim();
    if (line.startsWith(DEFINE)) {
      const [name, value] = defined(line.slice(DEFINE.length), baseUrl, imported);
      variables.set(name, known(name, value));
      if (variables.size > MAX_VARIABLES) throw new Error(`it has more than ${MAX_VARIABLES} variables`);
      return "";
    }
    const out = line.replaceAll(REFERENCE, (_, name: string) => known(name, variables.get(name)));
    chars += out.length;
    if (chars > MAX_CHARS) throw new Error("its variables make it too long");
    return out;
  });
  return { text: lines.join("\n"), variables };
}

/** Name and value of a definition; null or undefined where it has none. */
function defined(list: string, baseUrl: string, imported: HlsVariables): [string, string | null | undefined] {
  const attributes = [...list.matchAll(/(?:^|,)\s*([A-Z]+)="([^"]*)"/g)];
  const of = (attribute: string) => attributes.find(([, known]) => known === attribute)?.[2];
  const name = of("NAME");
  if (name !== undefined) return [name, of("VALUE")];
  const parameter = of("QUERYPARAM");
  if (parameter !== undefined) return [parameter, URL.parse(baseUrl)?.searchParams.get(parameter)];
  const from = of("IMPORT") ?? "";
  return [from, imported.get(from)];
}

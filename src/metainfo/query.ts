/** Reads what people paste to name content: ids, magnet links, URIs of engines like this one, URLs. */

/** A query, classified only by its form. */
export type ContentQuery =
  | { readonly kind: "content_id"; readonly id: string }
  | { readonly kind: "infohash"; readonly id: string }
  | { readonly kind: "magnet"; readonly magnet: string }
  | { readonly kind: "url"; readonly url: string };

const HEX_40 = /^[0-9a-f]{40}$/i;
/** The SHA-256 of a torrent of version 2 (BEP 52), as clients show it. */
const HEX_64 = /^[0-9a-f]{64}$/i;
/** RFC 3986, section 3.1; the length keeps the match cheap. */
const SCHEME = /^([a-z][a-z0-9+.-]{0,31}):/i;

/** The path at which engines serve playback (section 4.1 of the HTTP API), under any prefix. */
const PLAYBACK_PATH = /\/[\w-]{1,64}\/(?:getstream|manifest\.m3u8|getfile)$/;

/**
 * Reads `text`: 40 hexadecimal characters, or 64 of a torrent of version 2, `magnet:?…`, `scheme:?content_id=…`, `scheme:?infohash=…` and
 * `scheme://<40 hexadecimal>` under any scheme name, an engine's playback URL, `http(s)://…`. Null when it is none
 * of these.
 */
export function readContentQuery(text: string): ContentQuery | null {
  const query = text.trim();
  if (HEX_40.test(query)) return { kind: "content_id", id: query.toLowerCase() };
  if (HEX_64.test(query)) return { kind: "magnet", magnet: `magnet:?xt=urn:btmh:1220${query.toLowerCase()}` };
  const scheme = SCHEME.exec(query)?.[1]?.toLowerCase();
  if (scheme === undefined) return null;
  const rest = query.slice(scheme.length + 1);
  if (scheme === "magnet") return { kind: "magnet", magnet: query };
  if (scheme === "http" || scheme === "https") return URL.canParse(query) ? readAddress(query) : null;
  const bare = /^\/\/([0-9a-f]{40})\/?$/i.exec(rest)?.[1];
  if (bare !== undefined) return { kind: "content_id", id: bare.toLowerCase() };
  if (!rest.startsWith("?")) return null;
  const params = new URLSearchParams(rest);
  for (const kind of ["content_id", "infohash"] as const) {
    const id = params.get(kind)?.trim() ?? "";
    if (HEX_40.test(id)) return { kind, id: id.toLowerCase() };
  }
  return null;
}

/** The file of a torrent that a playback URL names; null for other texts, and where playback chooses. */
export function fileIndexIn(text: string): number | null {
  if (!/^https?:/i.test(text) || !URL.canParse(text)) return null;
  const { pathname, searchParams } = new URL(text);
  const index = searchParams.get("_idx") ?? "";
  return PLAYBACK_PATH.test(pathname) && /^\d{1,7}$/.test(index) ? Number(index) : null;
}

/** The stream that a playback URL names in its first selector, so that no engine has to be asked for it; else the URL. */
function readAddress(address: string): ContentQuery {
  const { pathname, searchParams } = new URL(address);
  if (PLAYBACK_PATH.test(pathname)) {
    const contentId = searchParams.get("content_id") || searchParams.get("id");
    const infohash = contentId ? null : searchParams.get("infohash");
    const magnet = contentId || infohash || searchParams.get("url") ? null : searchParams.get("magnet");
    if (contentId && HEX_40.test(contentId)) return { kind: "content_id", id: contentId.toLowerCase() };
    if (infohash && HEX_40.test(infohash)) return { kind: "infohash", id: infohash.toLowerCase() };
    if (magnet?.startsWith("magnet:")) return { kind: "magnet", magnet };
  }
  return { kind: "url", url: address };
}

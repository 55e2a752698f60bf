/** How clients name torrents. */
import { MillraceError } from "../../../errors.ts";
import { parseMagnet } from "../../../metainfo/magnet.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import type { TorrServerState, TorrServerTorrent } from "./kept.ts";

const HASH = /^[0-9a-fA-F]{40}$/;

/** The torrent that `link` names: a magnet, an infohash, or the address of a transport file. It is in the list from then on. */
export async function namedTorrent(
  parts: HttpParts,
  state: TorrServerState,
  c: HttpContext,
  given: string,
  texts: Readonly<Record<string, string>>,
): Promise<TorrServerTorrent> {
  const link = plainLink(given);
  const { isLocal } = c.get("caller");
  const entry = (hash: string, magnet: string | null, title: string): TorrServerTorrent => ({
    hash,
    title: texts["title"] || title,
    category: texts["category"] ?? "",
    poster: texts["poster"] ?? "",
    data: texts["data"] ?? "",
    magnet,
    addedS: Math.floor(parts.clock.now() / 1000),
    sizeBytes: 0,
    isSaved: false,
    isLocal,
  });
  if (HASH.test(link)) return state.add(entry(link.toLowerCase(), null, ""));
  if (/^magnet:/i.test(link)) {
    const { infohashHex, name } = parseMagnet(link);
    return state.add(entry(infohashHex, link, name ?? ""));
  }
  if (!/^https?:\/\//i.test(link)) {
    throw new MillraceError("invalid_argument", "link: a magnet, an infohash or an http address is expected");
  }
  const context = { callerIsLocal: isLocal, signal: c.req.raw.signal };
  const metainfo = await parts.api.content.find({ kind: "url", url: link }, context);
  return state.add(entry(metainfo.infohashHex, null, metainfo.name));
}

/** A link as it was meant: some clients encode it twice, others write `&` as in HTML. */
function plainLink(given: string): string {
  const link = given.trim().replaceAll("&amp;", "&");
  if (HASH.test(link) || /^(?:magnet:|https?:\/\/)/i.test(link)) return link;
  try {
    return decodeURIComponent(link);
  } catch {
    return link;
  }
}

/** An infohash in lower case. Throws `invalid_argument`. */
export function hashOf(given: string): string {
  if (!HASH.test(given)) throw new MillraceError("invalid_argument", "hash: 40 hexadecimal characters are expected");
  return given.toLowerCase();
}

/** The torrent of the list with this infohash. Throws `not_found` and as `hashOf`. */
export function required(state: TorrServerState, given: string): TorrServerTorrent {
  const torrent = state.torrent(hashOf(given));
  if (torrent === undefined) throw new MillraceError("not_found", "the list has no such torrent");
  return torrent;
}

/** Which items this engine plays. */
import { sql } from "kysely";

/**
 * SQL condition for items that come by HTTP and that this engine plays: transport streams and HLS playlists, to the extent that
 * their address shows. Other files are for players.
 */
export const COMES_BY_HTTP = sql`((transport_type = 'hls' OR transport_type = 'direct' AND is_live <> 0)
  AND (url LIKE 'http://%' OR url LIKE 'https://%'))`;

/** The same for a row. */
export function comesByHttp(
  { transport_type: type, is_live: isLive, url }: {
    readonly transport_type: string;
    readonly is_live: number;
    readonly url: string | null;
  },
): boolean {
  return (type === "hls" || type === "direct" && isLive !== 0) && /^https?:\/\//i.test(url ?? "");
}

/** SQL condition for items that this engine plays, disabled and deleted ones among them. */
export const HAS_STREAM = sql`(transport_type = 'bt' AND (infohash <> '' OR content_id IS NOT NULL OR url IS NOT NULL)
  OR ${COMES_BY_HTTP})`;

/** The address that a session's player reads. */
import type { AnySession } from "../playback/sessions.ts";
import type { PlaybackParams } from "./playback-schema.ts";

/**
 * Characters that `encodeURIComponent` leaves unchanged, although players that take addresses as part of a command
 * interpret them.
 */
const MISREAD = /[!'()*]/g;

/**
 * The address below `base` (`http://host/engine`): MPEG TS, an HLS playlist, or the file under its name. It holds the
 * place where playing of a file begins (seconds), so that each player has its own; for a broadcast that place belongs
 * to the session. It also holds whether the player wants its renditions, or a broadcast as fragmented MP4.
 */
export function playbackUrl(
  base: string,
  session: AnySession,
  startFromS = 0,
  wants: Pick<PlaybackParams, "renditions" | "subtitles" | "playlist_output_format_live"> = {},
): string {
  const where = `${session.identity.infohashHex}/${session.id}`;
  const query = session.kind === "file" && startFromS > 0 ? `?start_from=${startFromS}` : "";
  if (session.identity.output === "hls") {
    const format = session.kind === "live" && wants.playlist_output_format_live === "fmp4" ? "fmp4" : null;
    const all = [
      ...query === "" ? [] : [query.slice(1)],
      ...format === null ? [] : [`playlist_output_format_live=${format}`],
      ...wants.renditions || wants.subtitles ? ["renditions=1"] : [],
    ];
    return `${base}/m/${where}.m3u8${all.length === 0 ? "" : `?${all.join("&")}`}`;
  }
  return session.kind === "file" && session.identity.output === "file"
    ? `${base}/f/${where}/${nameInUrl(session.file.name)}`
    : `${base}/r/${where}${query}`;
}

function nameInUrl(name: string): string {
  return encodeURIComponent(name).replace(MISREAD, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

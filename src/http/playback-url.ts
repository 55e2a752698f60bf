/** The address that a session's player reads. */
import type { AnySession } from "../playback/sessions.ts";

/** What `encodeURIComponent` leaves as it is, though players that take addresses as part of a command read it as theirs. */
const MISREAD = /[!'()*]/g;

/** The address below `base` (`http://host/engine`): MPEG TS, an HLS playlist, or the file under its name. */
export function playbackUrl(base: string, session: AnySession): string {
  const where = `${session.identity.infohashHex}/${session.id}`;
  if (session.identity.output === "hls") return `${base}/m/${where}.m3u8`;
  return session.kind === "file" && session.identity.output === "file"
    ? `${base}/f/${where}/${nameInUrl(session.file.name)}`
    : `${base}/r/${where}`;
}

function nameInUrl(name: string): string {
  return encodeURIComponent(name).replace(MISREAD, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

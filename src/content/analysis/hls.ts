/** What an HLS playlist says of its stream: RFC 8216. */

/** A playlist, read as far as analysis needs. */
export type HlsPlaylist =
  | { readonly kind: "master"; readonly title: string | null; readonly variants: readonly string[] }
  | { readonly kind: "media"; readonly title: string | null; readonly isLive: boolean };

/** Tags that an M3U list of channels has not: sections 4.3.2 to 4.3.4. */
const HLS_TAG = /^#EXT-X-(?:TARGETDURATION|MEDIA-SEQUENCE|STREAM-INF|PART-INF|PLAYLIST-TYPE|MAP|BYTERANGE):?/m;
/** Variants kept: one is looked at, the others stand by. */
const MAX_VARIANTS = 4;

/** True when `text`, or its beginning, is an HLS playlist and not a list of channels. */
export function isHlsPlaylist(text: string): boolean {
  return HLS_TAG.test(text);
}

/**
 * Reads a playlist. A media playlist is live until it has `EXT-X-ENDLIST` (4.3.3.4) or says that it will not change
 * (`EXT-X-PLAYLIST-TYPE:VOD`, 4.3.3.5). `url` is the base of relative addresses.
 */
export function readHlsPlaylist(text: string, url: string): HlsPlaylist {
  const title = sessionTitle(text);
  const variants: string[] = [];
  let isVariant = false;
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (line.startsWith("#EXT-X-STREAM-INF:")) isVariant = true;
    else if (line === "" || line.startsWith("#")) continue;
    else if (isVariant) {
      isVariant = false;
      if (variants.length < MAX_VARIANTS && URL.canParse(line, url)) variants.push(new URL(line, url).href);
    }
  }
  if (variants.length > 0 || /^#EXT-X-STREAM-INF:/m.test(text)) return { kind: "master", title, variants };
  const hasEnd = /^#EXT-X-ENDLIST\s*$/m.test(text) || /^#EXT-X-PLAYLIST-TYPE:\s*VOD\s*$/m.test(text);
  return { kind: "media", title, isLive: !hasEnd };
}

/** The title among the session data (4.3.4.4). */
function sessionTitle(text: string): string | null {
  for (const [line] of text.matchAll(/^#EXT-X-SESSION-DATA:.*$/gm)) {
    const id = /DATA-ID="([^"]*)"/.exec(line)?.[1] ?? "";
    const value = /[:,]VALUE="([^"]*)"/.exec(line)?.[1]?.trim();
    if (/(?:^|\.)title$/i.test(id) && value) return value;
  }
  return null;
}

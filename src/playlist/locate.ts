/** Derives the fields of section 2.8 that depend on an entry's address, from the form of that address alone. */
import { fileIndexIn, readContentQuery } from "../metainfo/query.ts";
import { parseMagnet } from "../metainfo/magnet.ts";

/** Fields of a playlist item that follow from its address. */
export interface LocatedItem {
  /** `unknown` when the address does not show it. */
  readonly content_type: "live" | "vod" | "unknown";
  /** `direct`: everything else that the player opens itself. */
  readonly transport_type: "bt" | "hls" | "dash" | "direct";
  /** 40 lower-case hexadecimal characters. */
  readonly content_id: string | null;
  /** 40 lower-case hexadecimal characters, empty when unknown. */
  readonly infohash: string;
  /** null when an id says everything. */
  readonly url: string | null;
  /** File of the torrent; null when the address does not name one. */
  readonly file_index: number | null;
  /** 0 recorded, 1 live, -1 unknown. */
  readonly is_live: -1 | 0 | 1;
}

const HEX_40 = /^[0-9a-f]{40}$/i;
/** File names of recorded content, which has an end. */
const RECORDED =
  /\.(?:mp4|m4v|mkv|webm|avi|mov|wmv|flv|mpe?g|vob|asf|mp3|m4a|aac|e?ac3|ec3|wma|ape|flac|ogg|opus|wav)$/i;
/** Words in the path of radio stations, cameras and channels, whose addresses end like files, too. */
const ENDLESS =
  /(?:^|[/._;-])(?:axis|cam(?:era)?|icecast|listen|live|pid|radio|shoutcast|stream(?:ing)?)(?=[/._;-]|$)/i;
/** Schemes of endless streams. */
const LIVE_SCHEME = /^(?:udp|rtp|igmp|srt|rist):/i;

/**
 * Reads `address`: a bare id, a magnet link, an engine's URI under any scheme name, the playback URL of an engine
 * (`/engine/getstream`, `/engine/manifest.m3u8` or `/engine/getfile` on any host, section 4.1), a transport file, an HLS manifest or anything
 * else. `durationSeconds` is what the list says: a positive one means that the content ends.
 */
export function locateItem(address: string, durationSeconds = -1): LocatedItem {
  const text = address.trim();
  const located = locate(text, durationSeconds);
  return located.transport_type === "bt" ? { ...located, file_index: fileIndexIn(text) } : located;
}

function locate(text: string, durationSeconds: number): LocatedItem {
  const isLive = durationSeconds > 0 ? 0 : -1;
  const query = readContentQuery(text);
  switch (query?.kind) {
    case "content_id":
      return torrent(isLive, { content_id: query.id });
    case "infohash":
      return torrent(isLive, { infohash: query.id });
    case "magnet":
      return torrent(isLive, { infohash: infohashOf(query.magnet), url: query.magnet });
  }
  // Headers for the player follow a `|`; they are not part of the address.
  const bare = text.split("|", 1)[0]!;
  if (!URL.canParse(bare)) return item("direct", isLive, { url: text });
  const url = new URL(bare);
  const path = url.pathname;
  if (/\/engine\/(?:getstream|manifest\.m3u8|getfile)$/.test(path)) return playback(url, text, isLive);
  // Another engine under another prefix, and programs in front of one that name the content in the path.
  const file = /\/getstream$/.test(path) ? url.searchParams.get("url") : null;
  if (file && URL.canParse(file)) return torrent(isLive, { url: file });
  const proxied = /\/(?:pid|content_id)\/([0-9a-f]{40})(?:\/|$)/i.exec(path)?.[1];
  if (proxied !== undefined) return torrent(isLive, { content_id: proxied.toLowerCase() });
  if (/\.torrent$/i.test(path) && /^https?:$/.test(url.protocol)) {
    return torrent(isLive, { url: text });
  }
  if (/\.m3u8$/i.test(path)) return item("hls", isLive, { url: text });
  if (/\.mpd$/i.test(path)) return item("dash", isLive, { url: text });
  if (LIVE_SCHEME.test(bare)) return item("direct", 1, { url: text });
  return item("direct", RECORDED.test(path) && !ENDLESS.test(path) ? 0 : isLive, { url: text });
}

/** Follows the selector order of section 4.1: the first present wins, even if only a later one is valid. */
function playback(url: URL, text: string, isLive: -1 | 0): LocatedItem {
  const params = url.searchParams;
  const id = params.get("content_id") || params.get("id");
  if (id) return HEX_40.test(id) ? torrent(isLive, { content_id: id.toLowerCase() }) : torrent(isLive, { url: text });
  const infohash = params.get("infohash");
  if (infohash) {
    return HEX_40.test(infohash)
      ? torrent(isLive, { infohash: infohash.toLowerCase() })
      : torrent(isLive, { url: text });
  }
  const file = params.get("url");
  if (file) return torrent(isLive, { url: file });
  const magnet = params.get("magnet");
  if (magnet) return torrent(isLive, { infohash: infohashOf(magnet), url: magnet });
  return torrent(isLive, { url: text });
}

function infohashOf(magnet: string): string {
  try {
    return parseMagnet(magnet).infohashHex;
  } catch {
    return "";
  }
}

type Known = Partial<Pick<LocatedItem, "content_id" | "infohash" | "url">>;

function torrent(isLive: -1 | 0, known: Known): LocatedItem {
  return item("bt", isLive, known);
}

function item(transport: LocatedItem["transport_type"], isLive: LocatedItem["is_live"], known: Known): LocatedItem {
  return {
    content_type: isLive === 1 ? "live" : isLive === 0 ? "vod" : "unknown",
    transport_type: transport,
    content_id: null,
    infohash: "",
    url: null,
    file_index: null,
    ...known,
    is_live: isLive,
  };
}

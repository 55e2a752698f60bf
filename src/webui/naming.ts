/** What the user pasted, as parameters of the API. */

/** The rooms of the page. */
export type PageRoom = "play" | "library" | "guide" | "recordings" | "lists" | "broadcast" | "settings";

const ROOMS: readonly PageRoom[] = ["play", "library", "guide", "recordings", "lists", "broadcast", "settings"];

/** The hash of the page's address: the room, and the stream played in it. */
export interface PagePlace {
  readonly room: PageRoom;
  /** What the user pasted or chose, as `nameOf` takes it; null at the start. */
  readonly query: string | null;
  /** Number of the file that plays, as the engine counts them; null: none was chosen yet. */
  readonly file: number | null;
  /** Where the film begins, s; 0: where it was left off. */
  readonly atS: number;
}

/** Reads a hash as `playHash` makes it; anything else is the room that plays. */
export function placeOf(hash: string): PagePlace {
  const [room = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const params = new URLSearchParams(query);
  const file = wholeNumber(params.get("file"));
  return {
    room: ROOMS.find((name) => name === room) ?? "play",
    query: params.get("q"),
    file,
    atS: file === null ? 0 : wholeNumber(params.get("t")) ?? 0,
  };
}

function wholeNumber(value: string | null): number | null {
  return value !== null && /^\d{1,7}$/.test(value) ? Number(value) : null;
}

/** The address of playing `pasted`, for links and for the back button; `file` and `atS` as in `PagePlace`. */
export function playHash(pasted: string, file: number | null = null, atS = 0): string {
  const params = new URLSearchParams({ q: pasted });
  if (file !== null) params.set("file", String(file));
  if (atS >= 1) params.set("t", String(Math.floor(atS)));
  return `#/play?${params}`;
}

/** True for the name of an M3U list. */
export function isListName(name: string): boolean {
  return /\.m3u8?$/i.test(name);
}

/** A list of one entry as an address, so that nothing is asked of the engine for it. */
export function listAddress(title: string, url: string): string {
  const line = title.replace(/\s/g, " ");
  return `data:audio/x-mpegurl;charset=utf-8,${encodeURIComponent(`#EXTM3U\n#EXTINF:-1,${line}\n${url}\n`)}`;
}

/** True for 40 hexadecimal characters: a content id or an infohash, as the engine finds out. */
export function isId(value: string): boolean {
  return /^[0-9a-f]{40}$/i.test(value);
}

/** True for 64 hexadecimal characters: the infohash of a torrent of version 2, as clients show it. */
function isIdOfV2(value: string): boolean {
  return /^[0-9a-f]{64}$/i.test(value);
}

/** True for a host name that means this machine, whichever that is: another device cannot use it. */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]" || /^127\./.test(hostname);
}

/** Parameters that select a stream. */
export type Stream = Record<string, string>;

/**
 * What to ask the engine for: a stream that it plays, or a query for `analyze_content` where only that can decide (a
 * 40-character id may be a content id or an infohash; an address may lead to anything).
 */
export function nameOf(
  pasted: string,
):
  | { readonly stream: Stream }
  | { readonly query: string }
  | { readonly channel: Stream; readonly title: string }
  | null {
  const value = pasted.trim();
  if (value === "") return null;
  const [, item, title] = /^item:(\d{1,15})(?: (.*))?$/.exec(value) ?? [];
  if (item !== undefined) return { channel: { item }, title: title ?? "" };
  if (/^magnet:\?/i.test(value)) return { stream: { magnet: value } };
  if (isIdOfV2(value)) return { stream: { magnet: `magnet:?xt=urn:btmh:1220${value.toLowerCase()}` } };
  return { query: value };
}

/** Texts that name no content, by what they were taken for. */
export interface Mistake {
  readonly kind: "notId" | "notPath" | "notScheme" | "noScheme" | "notContent";
  /** What the sentence about it quotes. */
  readonly values: readonly (string | number)[];
}

/** Characters of somebody's own words that a sentence quotes. */
const MAX_QUOTED = 40;

/** What is wrong with `pasted` where its form shows that it names no content; null where only the engine can decide. */
export function mistakeOf(pasted: string): Mistake | null {
  const value = pasted.trim();
  if (value === "" || isId(value) || isIdOfV2(value)) return null;
  if (/^[0-9a-f]{20,}$/i.test(value)) return { kind: "notId", values: [value.length] };
  if (/^(?:[a-z]:)?[\\/]|^~[\\/]|^file:/i.test(value)) return { kind: "notPath", values: [] };
  const scheme = /^([a-z][a-z0-9+.-]{1,31}):(?=\S)/i.exec(value)?.[1]?.toLowerCase();
  if (scheme !== undefined && !/^\d+(?:\/|$)/.test(value.slice(scheme.length + 1))) {
    const isKnown = /^(?:https?|magnet)$/.test(scheme) ||
      /^:(?:\/\/[0-9a-f]{40}\/?$|\?(?:content_id|infohash)=)/i.test(value.slice(scheme.length));
    return isKnown ? null : { kind: "notScheme", values: [`${scheme}:`] };
  }
  const quoted = value.length > MAX_QUOTED ? `${value.slice(0, MAX_QUOTED)}…` : value;
  const isHost = /^(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?:\/\S*)?$|^[\w.-]+:\d+(?:\/\S*)?$|^\d+(?:\.\d+){3}\/\S*$/i.test(
    value,
  );
  return { kind: isHost ? "noScheme" : "notContent", values: [quoted] };
}

/** What an item of the playlist plays; null where it is nothing that the engine plays. */
export function itemStream(item: {
  readonly infohash: string;
  readonly content_id: string | null;
  readonly url: string | null;
  readonly transport_type: string | null;
}): Stream | null {
  // A magnet carries more than its infohash: trackers, peers.
  if (item.url !== null && /^magnet:/i.test(item.url)) return { magnet: item.url };
  if (item.infohash !== "") return { infohash: item.infohash };
  if (item.content_id !== null) return { content_id: item.content_id };
  return item.url !== null && item.transport_type === "bt" ? { url: item.url } : null;
}

/** An item that comes by HTTP and that the engine plays, as `nameOf` reads it; null for others. */
export function channelName(item: {
  readonly id: number;
  readonly title: string;
  readonly url: string | null;
  readonly transport_type: string | null;
  readonly is_live: number;
}): string | null {
  const isStream = item.transport_type === "hls" || (item.transport_type === "direct" && item.is_live !== 0);
  return isStream && /^https?:/i.test(item.url ?? "") ? `item:${item.id} ${item.title}` : null;
}

/** Parameters that add what plays to the library: its file, and with its link the trackers. */
export function itemParams(stream: Stream, infohash: string): Record<string, string> {
  const { magnet, url, direct_url: address, _idx: file } = stream;
  if (address !== undefined) return { hls_manifest_url: address };
  return {
    infohash,
    ...(magnet === undefined ? {} : { magnet }),
    ...(url !== undefined && /^https?:/i.test(url) ? { url } : {}),
    ...(file === undefined ? {} : { file_index: file }),
  };
}

/**
 * The infohash that `named` says, 40 hexadecimal characters; of a torrent of version 2 alone the first 40 of 64. Null where
 * it says none.
 */
export function infohashOf(named: NonNullable<ReturnType<typeof nameOf>>): string | null {
  if ("channel" in named) return null;
  if ("query" in named) return isId(named.query) ? named.query.toLowerCase() : null;
  const magnet = named.stream["magnet"] ?? "";
  const fields = [...new URLSearchParams(magnet.slice(magnet.indexOf("?") + 1))];
  const topics = fields.filter(([field]) => /^xt(?:\.\d+)?$/i.test(field)).map(([, topic]) => topic.trim());
  const find = (form: RegExp) => topics.map((topic) => form.exec(topic)?.[1]).find((hash) => hash !== undefined);
  const hash = find(/^urn:btih:(\w+)$/i);
  if (hash === undefined) return find(/^urn:btmh:1220([0-9a-f]{40})[0-9a-f]{24}$/i)?.toLowerCase() ?? null;
  return isId(hash) ? hash.toLowerCase() : hexOfBase32(hash);
}

/** The versions of BitTorrent in which a torrent is shared; null of version 1 alone, as most are. The same in all languages. */
export function versionsOf(media: { readonly infohash: string; readonly infohash_v2?: string }): string | null {
  if (media.infohash_v2 === undefined) return null;
  return media.infohash_v2.startsWith(media.infohash) ? "BitTorrent v2" : "BitTorrent v1 + v2";
}

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** 32 characters of base32, as older magnets have them, in hexadecimal; null for anything else. */
function hexOfBase32(text: string): string | null {
  if (!/^[a-z2-7]{32}$/i.test(text)) return null;
  let value = 0n;
  for (const digit of text.toLowerCase()) value = value << 5n | BigInt(BASE32.indexOf(digit));
  return value.toString(16).padStart(40, "0");
}

/** Natural order of file names: episode 2 before episode 10. */
export function byName(a: { readonly filename: string }, b: { readonly filename: string }): number {
  return a.filename.localeCompare(b.filename, undefined, { numeric: true, sensitivity: "base" });
}

/** Extensions of files that the page offers first; others are hidden behind these where a torrent has any. */
const PLAYABLE =
  /\.(mp4|m4v|mov|mkv|webm|ts|m2ts|mts|avi|flv|mpg|mpeg|vob|wmv|asf|mp3|m4a|aac|ac3|eac3|ec3|flac|ogg|opus|wav|wma|ape|wv|aiff?|caf)$/i;

/** Files in natural order; only the playable ones where there are some. */
export function offeredFiles<File extends { readonly filename: string }>(files: readonly File[]): File[] {
  const playable = files.filter(({ filename }) => PLAYABLE.test(filename));
  return [...(playable.length > 0 ? playable : files)].sort(byName);
}

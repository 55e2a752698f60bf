/** `/engine/playlist.m3u` with a stream: the files of one torrent as a list. Our addition. */
import { looksPlayable } from "../content/file-choice.ts";
import type { MediaFiles } from "../content/media-files.ts";
import { withLocalFile } from "../content/local-file.ts";
import { selectStream, type StreamSelector } from "../content/selector.ts";
import { MillraceError } from "../errors.ts";
import type { PlaybackRoute } from "../playlist/export.ts";
import { torrentM3u } from "../playlist/torrent-list.ts";
import type { HttpContext, HttpParts } from "./context.ts";
import { parsePlaybackParams } from "./playback-params.ts";
import type { PlaybackParams } from "./playback-schema.ts";
import { isSigned } from "./playlist-key.ts";

/** Playback routes by `output`. */
export const ROUTES: Readonly<Record<string, PlaybackRoute>> = {
  ts: "getstream",
  hls: "manifest.m3u8",
  file: "getfile",
};

/**
 * Players that read every container, by the beginning of their names. In a file they seek by its index; in MPEG TS they look
 * for the place all over it, and each look is a piece of the swarm.
 */
const READS_FILES = /^(?:VLC|LibVLC|Kodi|mpv|libmpv|Lavf)\b/i;

/** What a list names for the player that asks, if it does not say. */
export function usualOutput(c: HttpContext): "file" | "ts" {
  return READS_FILES.test(c.req.header("user-agent") ?? "") ? "file" : "ts";
}

/** Whether a query of `/engine/playlist.m3u` asks for one torrent, not for the user's playlist. */
export function namesTorrent(query: URLSearchParams): boolean {
  return ["content_id", "id", "infohash", "url", "magnet"].some((name) => (query.get(name) ?? "") !== "");
}

/**
 * The list. Any caller that may play the torrent may have it. Its addresses name the torrent as the request does, with
 * its key if it has one. Rejects as playback.
 */
export async function torrentList(
  c: HttpContext,
  parts: HttpParts,
  prefix: string,
): Promise<AsyncGenerator<string>> {
  const query = new URL(c.req.url).searchParams;
  const route = ROUTES[query.get("output") ?? usualOutput(c)];
  if (route === undefined) throw new MillraceError("invalid_argument", "invalid output: ts, hls or file is expected");
  const params = parsePlaybackParams(query);
  const selector = selectStream({ ...params, content_id: params.content_id ?? params.id });
  const leave = parts.admission.enter(c.get("caller").holder);
  try {
    const { isLocal, mayReadFiles } = c.get("caller");
    const found = await parts.api.media.find(
      await withLocalFile(parts.api.files, selector, mayReadFiles),
      { expandWrapper: false, createWrappers: false, analyze: false },
      {
        callerIsLocal: await isSigned(parts.api.token, params.key, selector) || isLocal,
        signal: c.req.raw.signal,
      },
    );
    if (found.transportType !== "bt") {
      throw new MillraceError("bad_transport_file", "bad transport file: it names no torrent or broadcast");
    }
    const base = `${c.get("caller").ownUrl}/${prefix}/${route}`;
    const named = namedAs(selector, params);
    return torrentM3u({
      name: found.name,
      files: route === "getfile" && !found.isLive ? found.files : carriedFiles(found),
      urlOf: (index) => `${base}?${named}${index === null ? "" : `&_idx=${index}`}`,
    });
  } finally {
    leave();
  }
}

/** Files that MPEG TS can carry, by their names; all files if that leaves none. A broadcast has none. */
export function carriedFiles({ isLive, files }: MediaFiles): MediaFiles["files"] {
  if (isLive) return [];
  const carried = files.filter(({ filename: name, sizeBytes }) => looksPlayable({ name, sizeBytes, padding: false }));
  return carried.length > 0 ? carried : files;
}

/** The selector as it was given: a magnet or an address contains more than the infohash. */
function namedAs(selector: StreamSelector, { key }: PlaybackParams): URLSearchParams {
  const query = new URLSearchParams();
  if (selector.kind === "content_id") query.set("content_id", selector.contentId);
  else if (selector.kind === "infohash") query.set("infohash", selector.infohash);
  else if (selector.kind === "magnet") query.set("magnet", selector.magnet);
  else if (selector.kind === "url") query.set("url", selector.url);
  if (key !== undefined) query.set("key", key);
  return query;
}

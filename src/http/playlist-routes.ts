/** `/engine/playlist.m3u` and `/search`: our additions, for players that open a list and for clients that search it. */
import type { Hono } from "hono";
import type { Dispatch } from "./api/dispatch.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { playbackFailure } from "./errors.ts";
import { namesTorrent, torrentList } from "./torrent-list-route.ts";
import { logoUrl } from "./api/logo.ts";
import { playbackKeys, playlistKey } from "./playlist-key.ts";
import { sameSecret } from "../account/access-token.ts";

/** Longest owner or category, characters, as in the API. */
const MAX_NAME_CHARS = 1000;

const HEADERS = {
  "content-type": "audio/x-mpegurl; charset=utf-8",
  "content-disposition": 'inline; filename="playlist.m3u"',
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};

/** Adds the routes; `search` calls the method behind `/search`. */
export function addPlaylistRoutes(app: Hono<HttpEnv>, parts: HttpParts, search: Dispatch): void {
  for (const prefix of parts.prefixes) {
    app.get(`/${prefix}/playlist.m3u`, (c) => {
      const isTorrent = namesTorrent(new URL(c.req.url).searchParams);
      return isTorrent ? ofTorrent(c, parts, prefix) : playlist(c, parts, prefix);
    });
  }
  app.on(["GET", "POST"], "/search", (c) => {
    if (c.req.raw.method === "HEAD") return c.body(null, 200, { "content-type": "application/json; charset=utf-8" });
    return search(c.req.raw, c.get("caller"), "search");
  });
}

/**
 * The list. It belongs to the user: callers on this machine get it, others need `key` (see `get_playlist_url`) or the
 * access token. For those others its playback addresses are signed.
 */
async function playlist(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  const query = new URL(c.req.url).searchParams;
  const owner = (query.get("owner") ?? "").slice(0, MAX_NAME_CHARS);
  const category = query.get("category")?.slice(0, MAX_NAME_CHARS);
  const text = (message: string, status: number) =>
    new Response(`${message}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
  if (!await mayRead(c, parts, query, owner)) {
    return text("the playlist needs a key: see the API's method get_playlist_url", 403);
  }
  const output = query.get("output") ?? "ts";
  if (output !== "ts" && output !== "hls") return text("invalid output: ts or hls is expected", 400);
  if (c.req.raw.method === "HEAD") return c.body(null, 200, HEADERS);
  const base = c.get("caller").ownUrl;
  const list = parts.api.lists.export({
    owner,
    category: category === "" ? undefined : category,
    playbackBase: `${base}/${prefix}`,
    output: output === "hls" ? "manifest.m3u8" : "getstream",
    failover: query.get("failover") === "1",
    logoUrl: (id) => `${logoUrl(base)}${id}`,
    keyOf: c.get("caller").addressClass === "loopback" ? undefined : await playbackKeys(parts.api.token.value),
  });
  return new Response(await bytesOf(list), { headers: HEADERS });
}

/** The files of one torrent, for any caller that may play it. */
async function ofTorrent(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  try {
    const list = await torrentList(c, parts, prefix);
    if (c.req.raw.method === "HEAD") return c.body(null, 200, HEADERS);
    return new Response(await bytesOf(list), { headers: HEADERS });
  } catch (error) {
    return playbackFailure(error);
  }
}

async function mayRead(c: HttpContext, parts: HttpParts, query: URLSearchParams, owner: string): Promise<boolean> {
  const { token } = parts.api;
  await token.refresh();
  if (token.matches(query.get("token") ?? "")) return true;
  const key = query.get("key") ?? "";
  if (sameSecret(key, await playlistKey(token.value, owner)) || sameSecret(key, await playlistKey(token.value, ""))) {
    return true;
  }
  return c.get("caller").isLocal;
}

/** The first part is made at once: if it fails, nothing has been sent yet. */
async function bytesOf(parts: AsyncGenerator<string>): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  let next: IteratorResult<string> | null = await parts.next();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = next ?? await parts.next();
      next = null;
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: () => void parts.return(undefined),
  }, { highWaterMark: 0 });
}

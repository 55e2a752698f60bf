/**
 * `/engine/playlist.m3u`, `/engine/xmltv.xml` and `/search`: our additions, for players that open a list with its guide and for
 * clients that search it.
 */
import type { Hono } from "hono";
import type { ApiDispatch } from "./api/dispatch.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./context.ts";
import { playbackFailure } from "./errors.ts";
import { namesTorrent, ROUTES, torrentList, usualOutput } from "./torrent-list-route.ts";
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
export function addPlaylistRoutes(app: Hono<HttpEnv>, parts: HttpParts, search: ApiDispatch): void {
  for (const prefix of parts.prefixes) {
    app.get(`/${prefix}/playlist.m3u`, (c) => {
      const isTorrent = namesTorrent(new URL(c.req.url).searchParams);
      return isTorrent ? ofTorrent(c, parts, prefix) : playlist(c, parts, prefix);
    });
    app.get(`/${prefix}/xmltv.xml`, (c) => guide(c, parts, false));
    app.get(`/${prefix}/xmltv.xml.gz`, (c) => guide(c, parts, true));
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
  const { owner, category } = wantedOf(query);
  if (!await mayRead(c, parts, query, owner)) return refused();
  const route = ROUTES[query.get("output") ?? usualOutput(c)];
  if (route === undefined) return plain("invalid output: ts, hls or file is expected", 400);
  if (c.req.raw.method === "HEAD") return c.body(null, 200, HEADERS);
  const base = c.get("caller").ownUrl;
  const isHere = c.get("caller").addressClass === "loopback";
  const { token } = parts.api;
  const sameQuery = new URLSearchParams([...query].filter(([name]) => name === "owner" || name === "category"));
  if (!isHere) sameQuery.set("key", await playlistKey(token.value, owner));
  const list = parts.api.lists.export({
    owner,
    category,
    guideUrl: `${base}/${prefix}/xmltv.xml${sameQuery.size === 0 ? "" : `?${sameQuery}`}`,
    playbackBase: `${base}/${prefix}`,
    output: route,
    failover: query.get("failover") === "1",
    logoUrl: (id) => `${logoUrl(base)}${id}`,
    keyOf: isHere ? undefined : await playbackKeys(token.value),
  });
  return new Response(await bytesOf(list), { headers: HEADERS });
}

/** The guide of that list, for the same callers. */
async function guide(c: HttpContext, parts: HttpParts, isPacked: boolean): Promise<Response> {
  const query = new URL(c.req.url).searchParams;
  const wanted = wantedOf(query);
  if (!await mayRead(c, parts, query, wanted.owner)) return refused();
  const name = isPacked ? "xmltv.xml.gz" : "xmltv.xml";
  const headers = {
    ...HEADERS,
    "content-type": isPacked ? "application/gzip" : "application/xml; charset=utf-8",
    "content-disposition": `inline; filename="${name}"`,
  };
  if (c.req.raw.method === "HEAD") return c.body(null, 200, headers);
  const base = c.get("caller").ownUrl;
  const body = await bytesOf(parts.api.guide.export({ ...wanted, logoUrl: (id) => `${logoUrl(base)}${id}` }));
  return new Response(isPacked ? body.pipeThrough(new CompressionStream("gzip")) : body, { headers });
}

/** Whose items of which category are wanted. */
function wantedOf(query: URLSearchParams): { readonly owner: string; readonly category: string | undefined } {
  const category = query.get("category")?.slice(0, MAX_NAME_CHARS);
  return {
    owner: (query.get("owner") ?? "").slice(0, MAX_NAME_CHARS),
    category: category === "" ? undefined : category,
  };
}

function refused(): Response {
  return plain("the playlist needs a key: see the API's method get_playlist_url", 403);
}

function plain(message: string, status: number): Response {
  return new Response(`${message}\n`, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
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
async function bytesOf(parts: AsyncGenerator<string>): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const encoder = new TextEncoder();
  let next: IteratorResult<string> | null = await parts.next();
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const { done, value } = next ?? await parts.next();
      next = null;
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: () => void parts.return(undefined),
  }, { highWaterMark: 0 });
}

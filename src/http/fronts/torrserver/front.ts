/**
 * The front of a TorrServer (`--front torrserver`): apps for televisions and phones, add-ons of Kodi and extensions of
 * browsers add torrents by its API and play their files. Files count from 1 in the order of their paths.
 */
import type { Hono } from "hono";
import type * as z from "zod";
import { MillraceError } from "../../../errors.ts";
import type { HttpContext, HttpEnv } from "../../context.ts";
import { text } from "../../guard.ts";
import { startRequest } from "../../start-request.ts";
import type { Front } from "../front.ts";
import { addRoute, jsonBody } from "../requests.ts";
import { CACHE, REQUEST, SETTINGS, VIEWED } from "./bodies.ts";
import { filler } from "./filler.ts";
import { TorrServerState, type TorrServerTorrent } from "./kept.ts";
import { hashOf, namedTorrent, required } from "./links.ts";
import { listLines, m3uResponse, torrentLines } from "./m3u.ts";
import { cacheOf, probeOf, settingsOf, statusOf } from "./status.ts";
import { fileOf, goalOf, playById, stream, type StreamParts } from "./stream.ts";
import { uploadedTorrents } from "./upload.ts";
import { selectorOf, TorrentWork } from "./work.ts";

/** Clients show and hide functions by this number: that of the version whose interface this is. */
const VERSION = "MatriX.143";
/** Most that `CacheSize` may be, bytes. */
const MAX_CACHE_BYTES = 2 ** 40;

/** See the page on fronts. */
export const TORRSERVER: Front = {
  name: "torrserver",
  access: "account",
  pages: { fields: "authorization", methods: "OPTIONS" },
  open({ parts }) {
    const opening = TorrServerState.open(parts.frontStates).then((state) => {
      return { parts, state, work: new TorrentWork(parts, (...of) => state.learnt(...of)) };
    });
    return (app, prefix) => {
      const add = (methods: string | readonly string[], path: string, handle: Handle) =>
        addRoute(app, parts, methods, `${prefix}${path}`, async (c) => {
          const opened = await opening;
          const at = { base: `${c.get("caller").ownUrl}${prefix}` };
          return await handle(c, { ...opened, named: (...of) => namedTorrent(parts, opened.state, ...of) }, at);
        });
      addAnswers(app, prefix);
      addListRoutes(add);
      addStateRoutes(add);
      add("GET", "/stream", (c, of, { base }) => stream(c, of, base));
      add("GET", "/stream/*", (c, of, { base }) => stream(c, of, base));
      add("GET", "/play/:hash/:id", playById);
    };
  },
};

type Handle = (c: HttpContext, of: StreamParts, at: { readonly base: string }) => Promise<Response> | Response;
type Add = (methods: string | readonly string[], path: string, handle: Handle) => void;

/** What is the same for everybody. */
function addAnswers(app: Hono<HttpEnv>, prefix: string): void {
  app.get(`${prefix}/echo`, (c) => c.text(VERSION));
  app.get(prefix === "" ? "/" : prefix, () => text(`millrace, for clients of TorrServer ${VERSION}`, 200));
  if (prefix !== "") app.get(`${prefix}/`, () => text(`millrace, for clients of TorrServer ${VERSION}`, 200));
  app.get(`${prefix}/shutdown`, () => text("only the engine's own machine ends it", 403));
  app.get(`${prefix}/shutdown/*`, () => text("only the engine's own machine ends it", 403));
  // Clients read this as "the search is turned off".
  for (const path of ["/search", "/search/*", "/torznab/search", "/torznab/search/*"]) {
    app.get(`${prefix}${path}`, (c) => c.json([], 400));
  }
  app.get(`${prefix}/download/:size`, (c) => filler(c));
}

/** The list of torrents, and lists for players. */
function addListRoutes(add: Add): void {
  add("POST", "/torrents", async (c, of) => {
    const request = await jsonBody(c, of.parts, REQUEST);
    const { state, work } = of;
    if (request.action === "list") {
      return c.json(await Promise.all(state.torrents().map((torrent) => statusOf(torrent, work))));
    }
    if (request.action === "add") {
      const { title, category, poster, data } = request;
      let torrent = await of.named(c, request.link, { title, category, poster, data });
      if (request.save_to_db && !torrent.isSaved) torrent = state.put({ ...torrent, isSaved: true });
      return c.json(await wokenStatus(torrent, state, work));
    }
    return await changed(c, of, request);
  });
  add("POST", "/torrent/upload", async (c, { parts, state, work }) => {
    const added: TorrServerTorrent[] = [];
    for (const torrent of await uploadedTorrents(c, parts)) added.push(state.add(torrent));
    const statuses = await Promise.all(added.map((torrent) => wokenStatus(torrent, state, work)));
    return c.json(statuses.length === 1 ? statuses[0]! : statuses.length === 0 ? null : statuses);
  });
  const playlist: Handle = async (c, { state, work }, { base }) => {
    const query = new URL(c.req.url).searchParams;
    const torrent = required(state, query.get("hash") ?? "");
    const metainfo = await work.description(torrent, c.req.raw.signal);
    const seen = Math.max(1, ...state.viewed(torrent.hash).map(({ fileId }) => fileId));
    const index = query.get("index") ?? "";
    const fromId = query.has("fromlast") ? seen : /^\d{1,9}$/.test(index) ? Number(index) : 1;
    const lines = torrentLines(base, torrent.hash, metainfo, fromId);
    return m3uResponse(lines, torrent.title || metainfo.name, c.req.raw.method === "HEAD");
  };
  add("GET", "/playlist", playlist);
  add("GET", "/playlist/*", playlist);
  add("GET", "/playlistall/all.m3u", async (c, { state, work }, { base }) => {
    const query = new URL(c.req.url).searchParams;
    const [category, search] = [query.get("category"), (query.get("search") ?? "").toLowerCase()];
    const torrents = state.torrents().filter((torrent) =>
      (category === null || torrent.category === (category === "uncategorized" ? "" : category)) &&
      torrent.title.toLowerCase().includes(search)
    );
    const lines: string[] = [];
    for (const { hash, title, poster } of torrents) {
      const metainfo = query.has("flat") ? await work.known(hash) : null;
      lines.push(...metainfo === null ? listLines(base, hash, title, poster) : torrentLines(base, hash, metainfo, 1));
    }
    return m3uResponse(lines, "all.m3u", c.req.raw.method === "HEAD");
  });
}

/** The actions on a torrent of the list. Those that change it respond with an empty object: some clients read JSON. */
async function changed(
  c: HttpContext,
  { state, work }: StreamParts,
  { action, hash: given, title, category, poster, data }: z.infer<typeof REQUEST>,
): Promise<Response> {
  if (action === "wipe") {
    for (const { hash } of state.torrents()) remove(c, state, work, hash);
    return c.json({});
  }
  if (!["get", "set", "rem", "drop"].includes(action)) {
    throw new MillraceError("invalid_argument", "an action of add, get, set, rem, list, drop and wipe is expected");
  }
  const hash = hashOf(given);
  const torrent = state.torrent(hash);
  if (action === "get") {
    if (torrent === undefined) return new Response(null, { status: 404 });
    return c.json(await wokenStatus(torrent, state, work));
  }
  if (action === "set" && torrent !== undefined) {
    state.put({
      ...torrent,
      title: title || torrent.title,
      category,
      poster: poster || torrent.poster,
      data: data || torrent.data,
      isSaved: true,
    });
  }
  if (action === "rem") remove(c, state, work, hash);
  if (action === "drop") work.drop(hash, c.get("caller").clientHost);
  return c.json({});
}

async function wokenStatus(torrent: TorrServerTorrent, state: TorrServerState, work: TorrentWork) {
  await work.wake(torrent);
  return await statusOf(state.torrent(torrent.hash) ?? torrent, work);
}

function remove(c: HttpContext, state: TorrServerState, work: TorrentWork, hash: string): void {
  work.drop(hash, c.get("caller").clientHost);
  state.remove(hash);
}

/** What clients show beside a torrent. */
function addStateRoutes(add: Add): void {
  add("POST", "/settings", async (c, { parts, state }) => {
    const { action, sets } = await jsonBody(c, parts, SETTINGS);
    if (action === "get") return c.json(settingsOf(state.settings, parts.api.operating.settings()));
    if (action === "def") state.settings = { cacheBytes: 64 * 1024 * 1024, preloadPercent: 50 };
    else if (action === "set" && sets) {
      const within = (value: number, most: number) => Math.round(Math.max(0, Math.min(most, value)));
      state.settings = {
        cacheBytes: within(sets.cachesize ?? state.settings.cacheBytes, MAX_CACHE_BYTES),
        preloadPercent: within(sets.preloadcache ?? state.settings.preloadPercent, 100),
      };
    } else throw new MillraceError("invalid_argument", "an action of get, set and def is expected");
    return c.json({});
  });
  add("POST", "/viewed", async (c, { parts, state }) => {
    const { action, hash, file_index: fileId, timecode } = await jsonBody(c, parts, VIEWED);
    if (action === "list") {
      const viewed = state.viewed(hash === "" ? undefined : hashOf(hash));
      return c.json(viewed.map((one) => ({ hash: one.hash, file_index: one.fileId, timecode: one.timecode })));
    }
    if (action === "set") state.setViewed({ hash: hashOf(hash), fileId: fileId ?? 1, timecode: timecode ?? 0 });
    else if (action === "rem") state.removeViewed(hashOf(hash), fileId ?? -1);
    else throw new MillraceError("invalid_argument", "an action of list, set and rem is expected");
    return c.json({});
  });
  add("POST", "/cache", async (c, { parts, state, work }) => {
    const { action, hash } = await jsonBody(c, parts, CACHE);
    if (action !== "get") throw new MillraceError("invalid_argument", "the action get is expected");
    return c.json(await cacheOf(required(state, hash), work, goalOf(parts, state)));
  });
  add("GET", "/ffp/:hash/:id", async (c, { parts, state, work }) => {
    const torrent = required(state, c.req.param("hash") ?? "");
    const file = fileOf(await work.description(torrent, c.req.raw.signal), c.req.param("id") ?? null);
    const { signal } = c.req.raw;
    const selector = selectorOf(torrent);
    const facts = { selector, output: "ts", mayNamePrivate: torrent.isLocal, signal } as const;
    const session = await parts.sessions.start({ ...startRequest(c, parts, {}, facts), fileIndex: file.index });
    if (session.kind === "live") throw new MillraceError("unsupported_media", "a broadcast has no tracks to list");
    await session.ready(c.req.raw.signal);
    return c.json(probeOf(session));
  });
  add("GET", "/stat", async (c, { state, work }) => {
    const statuses = await Promise.all(state.torrents().map((torrent) => statusOf(torrent, work)));
    return c.text(statuses.map((one) => `${one["hash"]} ${one["stat_string"]} ${one["title"]}\n`).join(""));
  });
}

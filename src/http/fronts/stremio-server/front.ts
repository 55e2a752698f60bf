/**
 * The server beside Stremio (`--front stremio-server`), which its apps ask for torrents, their HLS, and subtitles. Apps know
 * it by its port, 11470. Files count from 0 in the order of the torrent.
 */
import * as z from "zod";
import { fromHex } from "../../../bytes/hex.ts";
import { isLive } from "../../../metainfo/live.ts";
import type { AnySession } from "../../../playback/sessions.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { text } from "../../guard.ts";
import { sessionOwner } from "../../page.ts";
import { addStreamRoutes, fileResponse } from "../../stream-routes.ts";
import type { Front } from "../front.ts";
import { addRoute, fileRequest, jsonBody } from "../requests.ts";
import { master, probe, tracks } from "./media.ts";
import { description, guessedFile, hashOf, indexOf, namedFile, selectorOf } from "./named.ts";
import { allStatistics, settingsOf, statisticsOf } from "./statistics.ts";
import { filmHash, subtitles } from "./texts.ts";

/** Largest body with a transport file, bytes: its hexadecimal digits are twice as many as its bytes. */
const MAX_BLOB_BODY_BYTES = 4 * 1024 * 1024;

const NUMBER = z.int().min(0).max(1_000_000);
/** `POST /INFOHASH/create`. */
const CREATE = z.object({
  peerSearch: z.object({ sources: z.array(z.string()).max(1000) }).nullish(),
  guessFileIdx: z.union([z.boolean(), z.object({ season: NUMBER.nullish(), episode: NUMBER.nullish() })]).nullish(),
});
/** `POST /create`. */
const BLOB = z.object({ blob: z.string() });

/** See the page on fronts. */
export const STREMIO_SERVER: Front = {
  name: "stremio-server",
  access: "network",
  pages: { fields: "accept, authorization", methods: "OPTIONS" },
  open: ({ parts }) => (app, prefix) => {
    const add = (methods: string, path: string, handle: (c: HttpContext) => Promise<Response> | Response) =>
      addRoute(app, parts, methods, `${prefix}${path}`, handle);
    const base = (c: HttpContext) => `${c.get("caller").ownUrl}${prefix}`;

    // HLS leads there.
    if (prefix === "") addStreamRoutes(app, parts);
    add("GET", "/", () => text("millrace, for apps of Stremio", 200));
    add("GET", "/settings", (c) => c.json(settingsOf(base(c), parts.api.operating.settings())));
    // Any other answer makes apps take the server for offline.
    add("POST", "/settings", async (c) => {
      await jsonBody(c, parts, z.unknown());
      return c.json({ success: true });
    });
    add("GET", "/heartbeat", (c) => c.json({ success: true }));
    for (const path of ["/casting", "/casting/"]) add("GET", path, (c) => c.json([]));
    add("GET", "/network-info", (c) => c.json({ availableInterfaces: [] }));
    add("GET", "/device-info", (c) => c.json({ availableHardwareAccelerations: [] }));
    add("GET", "/hlsv2/probe", (c) => probe(c, parts, prefix));
    add("GET", "/hlsv2/:id/master.m3u8", (c) => master(c, parts, prefix));
    add("GET", "/hlsv2/:id/destroy", (c) => c.json({}));
    add("GET", "/tracks/*", (c) => tracks(c, parts, prefix));
    add("GET", "/subtitles.vtt", (c) => subtitles(c, parts, prefix));
    add("GET", "/opensubHash", (c) => filmHash(c, parts, prefix));
    add("GET", "/subtitleSignature", (c) => c.json({ error: null, result: { signature: null } }));
    add("GET", "/stats.json", async (c) => c.json(await allStatistics(parts, ownSessions(c, parts))));
    add("GET", "/removeAll", (c) => remove(c, parts, null));
    add("POST", "/create", (c) => createFromBlob(c, parts));
    add("POST", "/:hash/create", (c) => create(c, parts));
    add("GET", "/:hash/remove", (c) => remove(c, parts, hashOf(c.req.param("hash"))));
    add("GET", "/:hash/stats.json", (c) => torrentStatistics(c, parts));
    add("GET", "/:hash/:file/stats.json", (c) => fileStatistics(c, parts));
    for (const path of ["/:hash/:file", "/:hash/:file/*"]) add("GET", path, (c) => bytes(c, parts, base(c)));
  },
};

/** The bytes of a file. */
async function bytes(c: HttpContext, parts: HttpParts, base: string): Promise<Response> {
  const query = new URL(c.req.url).searchParams;
  const named = namedFile(c.req.param("hash"), c.req.param("file") ?? "", query);
  const index = await indexOf(c, parts, named);
  const session = await parts.sessions.start(fileRequest(c, parts, named.selector, index, false));
  const name = session.kind === "file" ? encoded(session.file.name) : "";
  if (query.get("external") === "1" && session.kind === "file") {
    return c.body(null, 307, { location: `${base}/${named.hash}/${session.file.index}/${name}` });
  }
  const response = await fileResponse(c, session);
  if (query.get("download") === "1") {
    response.headers.set("content-disposition", `attachment; filename*=UTF-8''${name}`);
  }
  return response;
}

/** A name as RFC 8187 has it. */
function encoded(name: string): string {
  const code = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(name.toWellFormed()).replace(/['()*]/g, code);
}

/** Statistics of a torrent, for players that look for the name of what they play. */
async function torrentStatistics(c: HttpContext, parts: HttpParts): Promise<Response> {
  const hash = hashOf(c.req.param("hash"));
  const statistics = await statisticsOf(parts, hash, null);
  return c.json(statistics === null ? null : { ...statistics, ...await guess(parts, hash, null) });
}

async function fileStatistics(c: HttpContext, parts: HttpParts): Promise<Response> {
  const [hash, file = ""] = [hashOf(c.req.param("hash")), c.req.param("file")];
  if (!/^\d{1,9}$/.test(file)) return await torrentStatistics(c, parts);
  return c.json(await statisticsOf(parts, hash, Number(file)));
}

/** The file that the app most likely wants of a torrent that is known here; nothing: it is not, or there is none. */
async function guess({ api }: HttpParts, hash: string, wanted: Parameters<typeof guessedFile>[1]) {
  const metainfo = await api.content.known(hash);
  if (metainfo === null || isLive(metainfo)) return {};
  try {
    return { guessedFileIdx: guessedFile(metainfo, wanted).index };
  } catch {
    return {};
  }
}

/** `POST /INFOHASH/create`: names the file to play. It waits for the torrent's description only if it has to. */
async function create(c: HttpContext, parts: HttpParts): Promise<Response> {
  const hash = hashOf(c.req.param("hash"));
  const { peerSearch, guessFileIdx } = await jsonBody(c, parts, CREATE);
  const wanted = typeof guessFileIdx === "object" ? guessFileIdx : null;
  if (wanted === null) return c.json(await statisticsOf(parts, hash, null) ?? { infoHash: hash });
  const selector = selectorOf(hash, peerSearch?.sources ?? []);
  const metainfo = await description(c, parts, { hash, selector });
  if (isLive(metainfo)) return c.json({ infoHash: hash, guessedFileIdx: 0 });
  const { index } = guessedFile(metainfo, { season: wanted.season ?? undefined, episode: wanted.episode ?? undefined });
  return c.json({ ...await statisticsOf(parts, hash, null) ?? { infoHash: hash }, guessedFileIdx: index });
}

/** `POST /create`: a transport file in hexadecimal digits, which is known from then on. */
async function createFromBlob(c: HttpContext, parts: HttpParts): Promise<Response> {
  const { blob } = await jsonBody(c, parts, BLOB, MAX_BLOB_BODY_BYTES);
  const context = { callerIsLocal: c.get("caller").isLocal, signal: c.req.raw.signal };
  const { infohashHex } = await parts.api.content.find({ kind: "transport_file", bytes: fromHex(blob) }, context);
  const statistics = await statisticsOf(parts, infohashHex, null) ?? { infoHash: infohashHex };
  return c.json({ ...statistics, ...await guess(parts, infohashHex, null) });
}

/** The caller's sessions: what others watch is not its business. */
function ownSessions(c: HttpContext, { sessions }: HttpParts): readonly AnySession[] {
  const [client, owner] = [c.get("caller").clientHost, sessionOwner(c.req.raw, c.get("page"))];
  return sessions.list().filter(({ identity }) =>
    identity.client === client && identity.owner === owner && identity.output !== "ts"
  );
}

/** Ends the caller's sessions of a torrent, or of all. */
function remove(c: HttpContext, parts: HttpParts, hash: string | null): Response {
  for (const { identity, id } of ownSessions(c, parts)) {
    if (hash !== null && identity.infohashHex !== hash) continue;
    parts.sessions.stop(identity.infohashHex, id, "its client removed the torrent");
  }
  return c.json({});
}

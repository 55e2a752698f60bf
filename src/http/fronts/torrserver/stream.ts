/** `/stream` and `/play`: the bytes of a file, and what comes before them. */
import { chooseFile } from "../../../content/file-choice.ts";
import { MillraceError } from "../../../errors.ts";
import { type AnyMetainfo, isLive } from "../../../metainfo/live.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { fileResponse } from "../../stream-routes.ts";
import { fileRequest } from "../requests.ts";
import { type NumberedFile, numberedFiles } from "./file-ids.ts";
import type { TorrServerState, TorrServerTorrent } from "./kept.ts";
import { m3uResponse, torrentLines } from "./m3u.ts";
import { statusOf } from "./status.ts";
import { selectorOf, type TorrentWork } from "./work.ts";

/** What requests for streams work with. */
export interface StreamParts {
  readonly parts: HttpParts;
  readonly work: TorrentWork;
  readonly state: TorrServerState;
  /** The torrent that a link names, which is in the list from then on. */
  readonly named: (c: HttpContext, link: string, texts: Readonly<Record<string, string>>) => Promise<TorrServerTorrent>;
}

/** Most that a preload takes of the cache: other readers use it, too. */
const MAX_CACHE_SHARE = 0.25;

/** `/stream`: flags count when they are there, whatever their value. */
export async function stream(
  c: HttpContext,
  { parts, work, state, named }: StreamParts,
  base: string,
): Promise<Response> {
  const query = new URL(c.req.url).searchParams;
  const link = query.get("link") ?? "";
  if (link === "") throw new MillraceError("missing_selector", "the parameter link is missing");
  const [title, poster, category] = ["title", "poster", "category"].map((name) => query.get(name) ?? "");
  let torrent = await named(c, link, { title: title!, poster: poster!, category: category! });
  if (query.has("save") && !torrent.isSaved) torrent = state.put({ ...torrent, isSaved: true });
  const flags = ["preload", "stat", "m3u", "play"].filter((flag) => query.has(flag));
  if (flags.length === 0) {
    await work.wake(torrent);
    return new Response(null);
  }
  const { signal } = c.req.raw;
  const metainfo = await work.description(torrent, signal);
  const wanted = query.get("index");
  if (query.has("preload")) {
    const file = fileOf(metainfo, wanted);
    if (file.sizeBytes > 0) {
      // A client that only asks for the head means the same.
      const start = (own: AbortSignal) => ({
        ...fileRequest(c, parts, selectorOf(torrent), file.index, torrent.isLocal, own),
        isTrial: false,
      });
      await untilLeft(work.preload(torrent.hash, file, goalOf(parts, state), start), signal);
    }
  }
  if (query.has("stat")) return c.json(await statusOf(torrent, work));
  if (query.has("m3u")) {
    const seen = Math.max(1, ...state.viewed(torrent.hash).map(({ fileId }) => fileId));
    const fromId = query.has("fromlast") ? seen : /^\d{1,9}$/.test(wanted ?? "") ? Number(wanted) : 1;
    const lines = torrentLines(base, torrent.hash, metainfo, fromId);
    return m3uResponse(lines, torrent.title || metainfo.name, c.req.raw.method === "HEAD");
  }
  if (query.has("play")) return await play(c, { parts, work, state }, torrent, fileOf(metainfo, wanted));
  return new Response(null);
}

/** `/play/HASH/ID`, of a torrent of the list. */
export async function playById(c: HttpContext, { parts, work, state }: StreamParts): Promise<Response> {
  const torrent = state.torrent((c.req.param("hash") ?? "").toLowerCase());
  if (torrent === undefined) throw new MillraceError("not_found", "the list has no such torrent: add it first");
  const metainfo = await work.description(torrent, c.req.raw.signal);
  return await play(c, { parts, work, state }, torrent, fileOf(metainfo, c.req.param("id") ?? null));
}

async function play(
  c: HttpContext,
  { parts, state }: Pick<StreamParts, "parts" | "work" | "state">,
  torrent: TorrServerTorrent,
  file: NumberedFile,
): Promise<Response> {
  const session = await parts.sessions.start(fileRequest(c, parts, selectorOf(torrent), file.index, torrent.isLocal));
  const response = await fileResponse(c, session);
  // Kodi then seeks in the one connection that it has, and opens no second one beside it.
  response.headers.set("server", "Portable SDK for UPnP devices");
  const isBeginning = !/^bytes=0*[1-9]/.test(c.req.header("range") ?? "");
  if (c.req.raw.method !== "HEAD" && isBeginning && response.ok) {
    const known = state.viewed(torrent.hash).find(({ fileId }) => fileId === file.id);
    if (known === undefined) state.setViewed({ hash: torrent.hash, fileId: file.id, timecode: 0 });
  }
  return response;
}

/** The file of a number. Without one, and for 0, the one that playback would choose. Throws `not_found`. */
export function fileOf(metainfo: AnyMetainfo, wanted: string | null): NumberedFile {
  const files = numberedFiles(metainfo);
  if (files.length === 1) return files[0]!;
  const isId = wanted !== null && /^\d{1,9}$/.test(wanted) && Number(wanted) > 0;
  const index = isLive(metainfo) ? 0 : isId ? null : chooseFile(metainfo, undefined).index;
  const file = files.find((one) => index === null ? one.id === Number(wanted) : one.index === index);
  if (file === undefined) throw new MillraceError("not_found", `the torrent has files 1 to ${files.length}`);
  return file;
}

/** How much of a file a preload fetches, bytes. */
export function goalOf(parts: HttpParts, { settings }: TorrServerState): number {
  const { limitBytes } = parts.cacheFigures();
  const goal = Math.floor(settings.cacheBytes * settings.preloadPercent / 100);
  return limitBytes === 0 ? goal : Math.min(goal, Math.floor(limitBytes * MAX_CACHE_SHARE));
}

/** `work`, or the moment when the caller leaves: the work goes on. */
function untilLeft(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
    work.finally(resolve);
  });
}

/**
 * The library as an add-on of Stremio (`--front stremio`): channels, films and series as catalogues, with streams by address
 * and by infohash. The interface is that of the add-on protocol, version 3.
 */
import { MillraceError } from "../../../errors.ts";
import { looksPlayable } from "../../../content/file-choice.ts";
import type { MetainfoFile } from "../../../metainfo/types.ts";
import type { CatalogueFilter, CatalogueItem, CatalogueKind } from "../../../playlist/catalogue.ts";
import { VERSION } from "../../../version.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { hlsOfItem } from "../../item-response.ts";
import { addStreamRoutes, fileResponse } from "../../stream-routes.ts";
import { episodesOf } from "../episodes.ts";
import type { Front } from "../front.ts";
import { itemTorrent } from "../item-torrent.ts";
import { addRoute, fileRequest } from "../requests.ts";

/** Entries of one page of a catalogue: a shorter page is taken for the last one. */
const PAGE_ITEMS = 100;
/** Categories offered for choice: the app shows them in a menu. */
const MAX_GENRES = 200;
/** Longest text that is searched for, characters. */
const MAX_SEARCH_CHARS = 200;
/** How long apps keep an answer, s: the library may change. */
const KEPT_S = 30;
/** When an episode came out: nothing says so, and apps hide what has no date. */
const RELEASED = "2001-01-01T00:00:00.000Z";

/** The app's types, and what the library has for each. */
const KINDS: Readonly<Record<string, CatalogueKind>> = { tv: "channel", movie: "film", series: "series" };
const NAMES: Readonly<Record<string, string>> = { tv: "Channels", movie: "Films", series: "Series" };

/** See the page on fronts. */
export const STREMIO: Front = {
  name: "stremio",
  access: "network",
  pages: { fields: "accept, authorization", methods: "OPTIONS" },
  open: ({ parts }) => (app, prefix) => {
    const add = (path: string, handle: (c: HttpContext, base: string) => Promise<Response> | Response) =>
      addRoute(app, parts, "GET", `${prefix}${path}`, (c) => handle(c, `${c.get("caller").ownUrl}${prefix}`));
    add("/manifest.json", async (c) => json(c, await manifest(parts)));
    add("/catalog/:type/:last{.+\\.json}", (c) => catalog(c, parts));
    add("/meta/:type/:last{.+\\.json}", (c) => meta(c, parts));
    add("/stream/:type/:last{.+\\.json}", (c, base) => streams(c, parts, base));
    add("/video/:item/:index/:name", (c) => video(c, parts));
    add("/live/:name{[0-9]+\\.m3u8}", (c) => hlsOfItem(c, parts, Number.parseInt(c.req.param("name") ?? "", 10)));
    // HLS leads there.
    if (prefix === "") addStreamRoutes(app, parts);
  },
};

function json(c: HttpContext, value: unknown): Response {
  return c.json(value as Record<string, unknown>, 200, { "cache-control": `max-age=${KEPT_S}, public` });
}

async function manifest({ api }: HttpParts) {
  const catalogs = await Promise.all(
    Object.entries(KINDS).map(async ([type, kind]) => {
      const filter = { kind: "sort", of: kind } as const;
      const { entries } = await api.catalogue.categories({ offset: 0, limit: MAX_GENRES, filter });
      const genre = { name: "genre", options: entries.map(({ name }) => name), isRequired: false };
      const extra = [{ name: "search", isRequired: false }, { name: "skip", isRequired: false }];
      return {
        type,
        id: `millrace-${type}`,
        name: NAMES[type]!,
        extra: [...extra, ...entries.length === 0 ? [] : [genre]],
      };
    }),
  );
  return {
    id: "org.millrace.library",
    // Three numbers, or the app refuses it.
    version: /^\d+\.\d+\.\d+/.exec(VERSION)?.[0] ?? "0.0.0",
    name: "millrace",
    description: "Channels, films and series of this engine's library",
    types: Object.keys(KINDS),
    resources: ["catalog", "meta", "stream"],
    idPrefixes: ["millrace:"],
    catalogs,
    behaviorHints: { p2p: true },
  };
}

/** The last part of a path without `.json`; catalogues have their options before it, as a query. */
function lastOf(c: HttpContext): { readonly id: string; readonly options: URLSearchParams } {
  // Options are taken apart before they are decoded.
  const names = new URL(c.req.url).pathname.split("/");
  const at = names.lastIndexOf(encodeURIComponent(c.req.param("type") ?? ""));
  const [id = "", options = ""] = names.slice(at + 1).map((name) => name.replace(/\.json$/, ""));
  try {
    return { id: decodeURIComponent(id), options: new URLSearchParams(options) };
  } catch {
    throw new MillraceError("invalid_argument", "the address is malformed");
  }
}

async function catalog(c: HttpContext, { api }: HttpParts): Promise<Response> {
  const type = c.req.param("type") ?? "";
  const { id, options } = lastOf(c);
  const kind = KINDS[type];
  if (kind === undefined || id !== `millrace-${type}`) throw new MillraceError("not_found", "no such catalogue");
  const text = (options.get("search") ?? "").slice(0, MAX_SEARCH_CHARS);
  const sort: CatalogueFilter = { kind: "sort", of: kind };
  const filter: CatalogueFilter = text === ""
    ? sort
    : { kind: "all", of: [sort, { kind: "title", test: "contains", text, negated: false }] };
  const skip = /^\d{1,9}$/.exec(options.get("skip") ?? "")?.[0] ?? "0";
  const genre = options.get("genre");
  const { entries } = await api.catalogue.items({
    ...{ filter, offset: Number(skip), limit: PAGE_ITEMS },
    ...(genre === null ? {} : { category: genre }),
  });
  return json(c, { metas: entries.map((item) => preview(type, item)) });
}

function preview(type: string, { id, title, picture, category }: CatalogueItem) {
  return {
    ...{ id: `millrace:${id}`, type, name: title || "?", posterShape: type === "tv" ? "square" : "poster" },
    ...(/^https?:\/\//.test(picture) && URL.canParse(picture) ? { poster: picture } : {}),
    ...(category === "" ? {} : { genres: [category] }),
  };
}

/** The item, and the file of its torrent, that an id names: `millrace:ITEM` or `millrace:ITEM:FILE`. */
async function named(c: HttpContext, { api }: HttpParts) {
  const type = c.req.param("type") ?? "";
  const [, item, file] = /^millrace:(\d{1,15})(?::(\d{1,9}))?$/.exec(lastOf(c).id) ?? [];
  const found = item === undefined || !Object.hasOwn(KINDS, type) ? null : await api.catalogue.item(Number(item));
  if (found === null) throw new MillraceError("not_found", "the library has nothing by that id");
  return { type, item: found, fileIndex: file === undefined ? null : Number(file) };
}

async function meta(c: HttpContext, parts: HttpParts): Promise<Response> {
  const { type, item } = await named(c, parts);
  const shown = preview(type, item);
  if (type !== "series") return json(c, { meta: { ...shown, behaviorHints: { defaultVideoId: shown.id } } });
  const torrent = await itemTorrent(c, parts, item.id);
  const videos = episodesOf(torrent?.files ?? []).map(({ file, title, season, episode }) => ({
    ...{ id: `millrace:${item.id}:${file.index}`, title, released: RELEASED, season, episode },
  }));
  return json(c, { meta: { ...shown, videos } });
}

async function streams(c: HttpContext, parts: HttpParts, base: string): Promise<Response> {
  const { type, item, fileIndex } = await named(c, parts);
  if (type === "tv") {
    const url = `${base}/live/${item.id}.m3u8`;
    return json(c, {
      streams: [{ name: "millrace", description: item.title, url, behaviorHints: { notWebReady: true } }],
    });
  }
  const torrent = await itemTorrent(c, parts, item.id);
  const file = torrent === null ? null : fileOf(torrent.files, fileIndex);
  if (torrent === null || file === null) return json(c, { streams: [] });
  const behaviorHints = { filename: file.name, videoSize: file.sizeBytes, bingeGroup: `millrace-${item.id}` };
  const name = encodeURIComponent(file.name.toWellFormed());
  return json(c, {
    streams: [
      {
        ...{ name: "millrace", description: file.name, url: `${base}/video/${item.id}/${file.index}/${name}` },
        behaviorHints: { ...behaviorHints, notWebReady: true },
      },
      { name: "torrent", description: file.name, infoHash: torrent.infohashHex, fileIdx: file.index, behaviorHints },
    ],
  });
}

/** The file of that index, or the largest film. */
function fileOf(files: readonly MetainfoFile[], index: number | null): MetainfoFile | null {
  const playable = files.filter((file) => index === null ? looksPlayable(file) : file.index === index);
  return playable.reduce<MetainfoFile | null>(
    (best, file) => best === null || file.sizeBytes > best.sizeBytes ? file : best,
    null,
  );
}

/** The bytes of a file. */
async function video(c: HttpContext, parts: HttpParts): Promise<Response> {
  const [item = "", index = ""] = [c.req.param("item"), c.req.param("index")];
  const isNumbers = /^\d{1,15}$/.test(item) && /^\d{1,9}$/.test(index);
  const torrent = isNumbers ? await itemTorrent(c, parts, Number(item)) : null;
  const file = torrent?.files.find((one) => one.index === Number(index));
  if (torrent === null || file === undefined) throw new MillraceError("not_found", "the library has no such file");
  const request = fileRequest(c, parts, torrent.selector, file.index, torrent.mayNamePrivate);
  return await fileResponse(c, await parts.sessions.start(request));
}

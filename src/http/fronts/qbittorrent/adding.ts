/** `torrents/add`: magnets, addresses and transport files, which become torrents of the list and items of the library. */
import { looksPlayable } from "../../../content/file-choice.ts";
import { hasCode, MillraceError } from "../../../errors.ts";
import { type AnyMetainfo, isLive, magnetLink } from "../../../metainfo/live.ts";
import { parseMagnet } from "../../../metainfo/magnet.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import type { QbittorrentList, QbittorrentTorrent } from "./kept.ts";

/** Links and transport files of one request. */
const MAX_ADDED = 50;

/** A torrent that a request names. */
interface Named {
  readonly hash: string;
  readonly name: string;
  readonly link: string;
  readonly metainfo: AnyMetainfo | null;
}

/** Text of a field; empty: it has none. */
export function field(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}

/** Whether a field says yes, in whatever case. */
export function isTrue(form: FormData, name: string): boolean {
  return field(form, name).toLowerCase() === "true";
}

/** A number of a form; absent or unreadable: -2, "no limit of its own". */
export function limitOf(form: FormData, name: string): number {
  const value = field(form, name);
  return /^(?:-[12]|\d{1,9}(?:\.\d{1,9})?)$/.test(value) ? Number(value) : -2;
}

/**
 * Adds what the form names; returns how many torrents of the list it names. Throws `invalid_argument` for what is no
 * torrent, and as `QbittorrentList.add`.
 */
export async function addTorrents(
  c: HttpContext,
  parts: HttpParts,
  list: QbittorrentList,
  form: FormData,
): Promise<number> {
  const links = field(form, "urls").split(/[\r\n]+/).map((link) => link.trim()).filter((link) => link !== "");
  // Clients name the part as they like.
  const files = [...form.values()].filter((value): value is File => value instanceof File);
  if (links.length + files.length > MAX_ADDED) {
    throw new MillraceError("invalid_argument", `at most ${MAX_ADDED} torrents can be added at once`);
  }
  const named: Named[] = [];
  for (const link of links) named.push(await byLink(c, parts, link));
  for (const file of files) named.push(await byFile(c, parts, file));
  for (const torrent of named) {
    if (list.torrent(torrent.hash) !== undefined) continue;
    // First the list, which may be full: the library has no such bound.
    const category = field(form, "category");
    list.add({
      ...{ hash: torrent.hash, name: field(form, "rename") || torrent.name, link: torrent.link, category },
      tags: tagsOf(field(form, "tags")),
      ...{ addedS: Math.floor(parts.clock.now() / 1000), completedS: null, progress: 0, uploadedBytes: 0, seededS: 0 },
      sizeBytes: torrent.metainfo === null || isLive(torrent.metainfo) ? 0 : torrent.metainfo.totalBytes,
      ratioLimit: limitOf(form, "ratioLimit"),
      seedingTimeLimit: limitOf(form, "seedingTimeLimit"),
      inactiveSeedingTimeLimit: limitOf(form, "inactiveSeedingTimeLimit"),
      isStopped: isTrue(form, "stopped") || isTrue(form, "paused"),
      ...{ isLocal: c.get("caller").isLocal, item: null },
    });
    list.change(torrent.hash, { item: await addItem(parts, torrent, category) });
  }
  return named.length;
}

/** Tags of a text, which separates them by commas. */
export function tagsOf(text: string): string[] {
  return text.split(",").map((tag) => tag.trim().slice(0, 100)).filter((tag) => tag !== "");
}

async function byLink(c: HttpContext, parts: HttpParts, link: string): Promise<Named> {
  const { content } = parts.api;
  const magnet = /^[0-9a-fA-F]{40}$/.test(link) ? `magnet:?xt=urn:btih:${link.toLowerCase()}` : link;
  if (/^magnet:/i.test(magnet)) {
    const { infohashHex: hash, name } = parseMagnet(magnet);
    return { hash, name: name ?? hash, link: magnet, metainfo: await content.known(hash) };
  }
  if (!/^https?:\/\//i.test(link)) {
    throw new MillraceError("invalid_argument", "urls: magnets or http addresses are expected");
  }
  const context = { callerIsLocal: c.get("caller").isLocal, signal: c.req.raw.signal };
  return ofMetainfo(await content.find({ kind: "url", url: link }, context));
}

async function byFile(c: HttpContext, parts: HttpParts, file: File): Promise<Named> {
  const selector = { kind: "transport_file", bytes: new Uint8Array(await file.arrayBuffer()) } as const;
  const context = { callerIsLocal: c.get("caller").isLocal, signal: c.req.raw.signal };
  return ofMetainfo(await parts.api.content.find(selector, context));
}

function ofMetainfo(metainfo: AnyMetainfo): Named {
  if (isLive(metainfo)) throw new MillraceError("invalid_argument", "a broadcast has no end: play it instead");
  return { hash: metainfo.infohashHex, name: metainfo.name, link: magnetLink(metainfo), metainfo };
}

/** Puts a torrent into the library; returns its item, null when the library has the torrent. */
async function addItem(
  parts: HttpParts,
  { hash, name, link, metainfo }: Named,
  category: string,
): Promise<number | null> {
  const { playlist, content, catalogue } = parts.api;
  if (await catalogue.hasTorrent(hash)) return null;
  return await playlist.add({
    title: name.slice(0, 1000),
    category: category || null,
    ...{ url: link, infohash: hash, contentId: metainfo === null ? null : await content.contentId(metainfo) },
    transportType: "bt",
    isLive: metainfo === null ? -1 : 0,
    isMulti: metainfo !== null && !isLive(metainfo) && metainfo.files.filter(looksPlayable).length > 1,
  });
}

/** Moves the item that was made for a torrent to the trash. One that the user locked or deleted stays as it is. */
export async function removeItem({ api: { playlist } }: HttpParts, { item }: QbittorrentTorrent): Promise<void> {
  if (item === null) return;
  await playlist.remove([item]).catch((error) => {
    if (!hasCode(error, "not_found") && !hasCode(error, "conflict")) throw error;
  });
}

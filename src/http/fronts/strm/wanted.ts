/** What the folder should hold: a file for each film of the library, and for each episode of its series. */
import { nextTurn } from "../../../bytes/turn.ts";
import { parseMagnet } from "../../../metainfo/magnet.ts";
import { isLive } from "../../../metainfo/live.ts";
import type { Metainfo } from "../../../metainfo/types.ts";
import type { CatalogueKind } from "../../../playlist/catalogue.ts";
import type { ChannelMember } from "../../../playlist/channel.ts";
import type { ApiParts } from "../../api/parts.ts";
import { episodesOf } from "../episodes.ts";
import { foldedName, safeName } from "./names.ts";

/** Files in the folder: media centres need a second for a hundred. */
export const MAX_FILES = 20_000;
/** Episodes of one torrent. */
const MAX_EPISODES = 1000;
/** Items read at once. */
const PAGE_ITEMS = 250;

/** The parts of the library that are read. */
export type StrmLibrary = Pick<ApiParts, "catalogue" | "channels"> & {
  readonly content: Pick<ApiParts["content"], "known">;
};

/** Makes the address of a stream from the query that names it, and from what its key signs. */
export type AddressOf = (query: URLSearchParams, kind: string, value: string) => Promise<string>;

/** Addresses by the paths of their files in the folder, `/`-separated. Rejects with the signal's reason. */
export async function wantedFiles(
  library: StrmLibrary,
  addressOf: AddressOf,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  const names = new Names();
  for (const { id, title } of await items(library, "film", signal)) {
    if (files.size >= MAX_FILES) return files;
    const query = new URLSearchParams({ item: String(id) });
    files.set(`Films/${names.take("Films", safeName(title), id)}.strm`, await addressOf(query, "item", String(id)));
  }
  for (const { id, title } of await items(library, "series", signal)) {
    signal.throwIfAborted();
    await nextTurn();
    const metainfo = await knownTorrent(library, id);
    if (metainfo === null) continue;
    const { infohashHex } = metainfo;
    const folder = `Series/${names.take("Series", safeName(title), id)}`;
    for (const { file, title: own, season, episode } of episodesOf(metainfo.files).slice(0, MAX_EPISODES)) {
      if (files.size >= MAX_FILES) return files;
      const two = (value: number) => String(value).padStart(2, "0");
      const name = safeName(/\bS\d{1,2}[ ._-]?E\d/i.test(own) ? own : `${title} S${two(season)}E${two(episode)}`);
      const place = `${folder}/Season ${two(season)}`;
      const query = new URLSearchParams({ infohash: infohashHex, _idx: String(file.index) });
      const address = await addressOf(query, "infohash", infohashHex);
      files.set(`${place}/${names.take(place, name, file.index)}.strm`, address);
    }
  }
  return files;
}

/** The items of a kind by their numbers: which of two of one name keeps it must not depend on the order of the library. */
async function items({ catalogue }: StrmLibrary, of: CatalogueKind, signal: AbortSignal) {
  const found: { readonly id: number; readonly title: string }[] = [];
  for (let offset = 0; offset < MAX_FILES; offset += PAGE_ITEMS) {
    signal.throwIfAborted();
    await nextTurn();
    const { total, entries } = await catalogue.items({ filter: { kind: "sort", of }, offset, limit: PAGE_ITEMS });
    found.push(...entries.map(({ id, title }) => ({ id, title })));
    if (offset + PAGE_ITEMS >= total) break;
  }
  return found.sort((a, b) => a.id - b.id);
}

/** The torrent of an item if its description is known; nobody is asked. */
async function knownTorrent({ channels, content }: StrmLibrary, item: number): Promise<Metainfo | null> {
  const member = (await channels.members({ item })).find(({ id }) => id === item);
  if (member === undefined) return null;
  const id = idOf(member.selector);
  const metainfo = id === null ? null : await content.known(id);
  return metainfo === null || isLive(metainfo) ? null : metainfo;
}

/** The infohash or content id that a selector names; null: it names another address. */
function idOf([name, value]: ChannelMember["selector"]): string | null {
  if (name === "content_id" || name === "infohash") return value;
  if (name !== "magnet") return null;
  try {
    return parseMagnet(value).infohashHex;
  } catch {
    return null;
  }
}

/** Names in folders: the second of a name has a number behind it. */
class Names {
  readonly #taken = new Set<string>();

  take(folder: string, name: string, number: number): string {
    const given = this.#taken.has(`${folder}/${foldedName(name)}`) ? `${name} [${number}]` : name;
    this.#taken.add(`${folder}/${foldedName(given)}`);
    return given;
  }
}

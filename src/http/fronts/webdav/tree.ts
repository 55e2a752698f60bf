/**
 * The library as folders: one per category and one of everything, in them one per item, in those the files of its torrent.
 * Broadcasts and what comes by HTTP are left out, because files have lengths.
 */
import { plainName } from "../../../bytes/file-name.ts";
import type { MetainfoFile } from "../../../metainfo/types.ts";
import type { CatalogueItem } from "../../../playlist/catalogue.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { type ItemTorrent, itemTorrent } from "../item-torrent.ts";

/** Entries of a folder that are written at once while it is listed: a few milliseconds, also when nothing is compiled yet. */
const PAGE_ITEMS = 100;
/** Categories listed. */
const MAX_CATEGORIES = 5000;
/** The folder of everything. */
const ALL = "All";

/** A folder or file. */
export type Node =
  | { readonly kind: "root" }
  /** `category` null: of everything. */
  | { readonly kind: "list"; readonly name: string; readonly category: string | null }
  | { readonly kind: "folder"; readonly name: string; readonly torrent: ItemTorrent; readonly path: string }
  /** An item's folder in a list, whose torrent was not asked for. */
  | { readonly kind: "item"; readonly name: string }
  | { readonly kind: "file"; readonly name: string; readonly torrent: ItemTorrent; readonly file: MetainfoFile };

/** Reads the tree. */
export class LibraryTree {
  readonly #parts: HttpParts;

  constructor(parts: HttpParts) {
    this.#parts = parts;
  }

  /** What is at these names; null: nothing. Rejects with `timeout` when nobody says which files the torrent has. */
  async at(names: readonly string[], c: HttpContext): Promise<Node | null> {
    const [list, item, ...rest] = names;
    if (list === undefined) return { kind: "root" };
    // Systems look for their own notes in every folder: no torrent is asked about them.
    if (names.at(-1)!.startsWith(".")) return null;
    const category = list === ALL ? null : (await this.#categories()).find((name) => folderName(name) === list);
    if (category === undefined) return null;
    if (item === undefined) return { kind: "list", name: list, category };
    const id = Number(/ \[(\d{1,15})\]$/.exec(item)?.[1] ?? NaN);
    const found = Number.isNaN(id) ? null : await this.#parts.api.catalogue.item(id);
    if (found === null || itemName(found) !== item) return null;
    const torrent = await itemTorrent(c, this.#parts, id);
    if (torrent === null) return null;
    const path = rest.join("/");
    const file = torrent.files.find((one) => one.path === path);
    if (file !== undefined) return { kind: "file", name: file.name, torrent, file };
    const isFolder = path === "" || torrent.files.some((one) => one.path.startsWith(`${path}/`));
    return isFolder ? { kind: "folder", name: rest.at(-1) ?? item, torrent, path } : null;
  }

  /** What is in a folder, in parts; nothing in a file. */
  async *children(node: Node): AsyncGenerator<readonly Node[]> {
    if (node.kind === "root") {
      yield [{ kind: "list", name: ALL, category: null }];
      for (const part of pagesOf(await this.#categories())) {
        yield part.map((category) => ({ kind: "list", name: folderName(category), category }));
      }
    } else if (node.kind === "folder") {
      yield* pagesOf(inFolder(node.torrent, node.path));
    } else if (node.kind === "list") {
      const { catalogue } = this.#parts.api;
      const wanted = {
        ...(node.category === null ? {} : { category: node.category }),
        filter: { kind: "all", of: [{ kind: "live", value: false }, { kind: "peers" }] },
        limit: PAGE_ITEMS,
      } as const;
      for (let offset = 0;; offset += PAGE_ITEMS) {
        const { total, entries } = await catalogue.items({ ...wanted, offset });
        yield entries.map((item) => ({ kind: "item", name: itemName(item) }));
        if (offset + PAGE_ITEMS >= total) return;
      }
    }
  }

  /** Names of categories whose folders have names of their own. */
  async #categories(): Promise<readonly string[]> {
    const { entries } = await this.#parts.api.catalogue.categories({ offset: 0, limit: MAX_CATEGORIES });
    const names = new Map<string, string>();
    for (const { name } of entries) {
      const folder = folderName(name);
      if (folder !== "" && folder !== ALL && !names.has(folder)) names.set(folder, name);
    }
    return [...names.values()];
  }
}

function* pagesOf<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < all.length; from += PAGE_ITEMS) yield all.slice(from, from + PAGE_ITEMS);
}

function inFolder(torrent: ItemTorrent, path: string): Node[] {
  const start = path === "" ? "" : `${path}/`;
  const nodes: Node[] = [];
  const folders = new Set<string>();
  for (const file of torrent.files) {
    if (!file.path.startsWith(start)) continue;
    const rest = file.path.slice(start.length);
    const slash = rest.indexOf("/");
    if (slash < 0) {
      nodes.push({ kind: "file", name: rest, torrent, file });
    } else if (!folders.has(rest.slice(0, slash))) {
      const name = rest.slice(0, slash);
      folders.add(name);
      nodes.push({ kind: "folder", name, torrent, path: `${start}${name}` });
    }
  }
  return nodes;
}

/** A title as a name: never empty, hidden, or one that leads elsewhere. */
function folderName(title: string): string {
  return plainName(title.toWellFormed()).trim().replace(/^\.+/, "_");
}

/** Titles are not unique, so the name has the item's number. */
function itemName({ id, title }: Pick<CatalogueItem, "id" | "title">): string {
  return `${folderName(title)} [${id}]`;
}

/** The library as a tree of lists: streams playing now, all items, favourites, one list per category, and the files of torrents. */
import { deadline } from "../../bytes/deadline.ts";
import { selectStream } from "../../content/selector.ts";
import { MillraceError } from "../../errors.ts";
import type { AnySession } from "../../playback/sessions.ts";
import type { Catalogue, CatalogueFilter, CatalogueItem, PageBounds } from "../../playlist/catalogue.ts";
import { sortedFiles } from "../../playlist/torrent-list.ts";
import type { HttpParts } from "../context.ts";
import { carriedFiles } from "../torrent-list-route.ts";
import type { DidlEntry } from "./didl.ts";
import { type ListName, type ObjectId, parentOf, writeObjectId } from "./object-id.ts";
import { UpnpError } from "./soap.ts";

/** Deadline for finding out a torrent's files, ms: televisions wait some 30 s, and most torrents of a library are known. */
const FILES_MS = 10_000;

/** A part of a list. */
export interface EntryPage {
  /** Entries on all pages. */
  readonly total: number;
  readonly entries: readonly DidlEntry[];
}

/** The lists that always exist, before the categories. */
const LISTS: readonly ObjectId[] = [
  { kind: "now" },
  { kind: "list", list: { kind: "all" } },
  { kind: "list", list: { kind: "favourites" } },
];
const TITLES = { now: "Now playing", all: "All", favourites: "Favourites", recordings: "Recordings" } as const;

/** Reads the tree for one caller. */
export class MediaLibrary {
  readonly #parts: HttpParts;
  readonly #catalogue: Catalogue;
  readonly #mediaUrl: string;

  /** `baseUrl` is the engine's address as the caller knows it. */
  constructor(parts: HttpParts, baseUrl: string) {
    this.#parts = parts;
    this.#catalogue = parts.api.catalogue;
    this.#mediaUrl = `${baseUrl}/dlna/media`;
  }

  /** The entry itself. Throws `UpnpError` 701 when there is none. */
  async entry(id: ObjectId, signal: AbortSignal): Promise<DidlEntry> {
    switch (id.kind) {
      case "root": {
        const { total } = await this.#root({ offset: 0, limit: 0 });
        return container(id, "millrace", total);
      }
      case "now":
        return container(id, TITLES.now, this.#playing().length);
      case "recordings":
        return container(id, TITLES.recordings, this.#recordings().length);
      case "recording":
        return found(this.#recordings().find((entry) => entry.id === writeObjectId(id)));
      case "playing":
        return found(this.#playing().find((entry) => entry.id === writeObjectId(id)));
      case "list": {
        const { total } = await this.#catalogue.items({ ...requestOf(id.list), offset: 0, limit: 0 });
        if (id.list.kind === "category" && total === 0) throw noSuchObject();
        return container(id, id.list.kind === "category" ? id.list.name : TITLES[id.list.kind], total);
      }
      case "item":
        return (await this.#items(id.list, [found(await this.#catalogue.item(id.item))]))[0]!;
      case "file": {
        const files = await this.#files(id.list, id.item, signal);
        return found(files.find((entry) => entry.id === writeObjectId(id)));
      }
    }
  }

  /** A page of the entry's children. Throws `UpnpError` 701 when there is no such entry, and 710 when it is not a list. */
  async children(id: ObjectId, bounds: PageBounds, signal: AbortSignal): Promise<EntryPage> {
    switch (id.kind) {
      case "root":
        return await this.#root(bounds);
      case "now":
        return pageOf(this.#playing(), bounds);
      case "recordings":
        return pageOf(this.#recordings(), bounds);
      case "list": {
        const { total, entries } = await this.#catalogue.items({ ...requestOf(id.list), ...bounds });
        return { total, entries: await this.#items(id.list, entries) };
      }
      case "item":
        return pageOf(await this.#files(id.list, id.item, signal), bounds);
      default:
        throw new UpnpError(710, "No such container");
    }
  }

  /** A page of the matching items below a list, each playable. Throws `UpnpError` 710 when the entry is not a list of items. */
  async search(id: ObjectId, filter: CatalogueFilter, bounds: PageBounds): Promise<EntryPage> {
    if (id.kind !== "root" && id.kind !== "list") throw new UpnpError(710, "No such container");
    const list: ListName = id.kind === "list" ? id.list : { kind: "all" };
    const { total, entries } = await this.#catalogue.items({ ...requestOf(list), filter, ...bounds });
    return { total, entries: (await this.#withProgrammes(entries)).map((item) => this.#media(list, item)) };
  }

  /** A number that changes whenever the library changes. */
  async version(): Promise<number> {
    return (await this.#catalogue.version() + this.#playing().length + this.#recordings().length) >>> 0;
  }

  async #root({ offset, limit }: PageBounds): Promise<EntryPage> {
    const all: readonly ObjectId[] = this.#recordings().length === 0 ? LISTS : [...LISTS, { kind: "recordings" }];
    const lists = all.slice(offset, offset + limit).map((id) => {
      const kind = (id.kind === "list" ? id.list.kind : id.kind) as keyof typeof TITLES;
      return container(id, TITLES[kind], null);
    });
    const { total, entries } = await this.#catalogue.categories({
      offset: Math.max(0, offset - all.length),
      limit: limit - lists.length,
    });
    const categories = entries.map(({ name, items }) =>
      container({ kind: "list", list: { kind: "category", name } }, name, items)
    );
    return { total: all.length + total, entries: [...lists, ...categories] };
  }

  async #items(list: ListName, items: readonly CatalogueItem[]): Promise<DidlEntry[]> {
    return (await this.#withProgrammes(items)).map((item) => {
      if (!item.isMulti) return this.#media(list, item);
      return container({ kind: "item", list, item: item.id }, item.title, null);
    });
  }

  /** `items`, with what is on in the titles of channels: televisions show nothing else. */
  async #withProgrammes(items: readonly CatalogueItem[]): Promise<CatalogueItem[]> {
    const live = items.filter(({ isLive }) => isLive !== 0).map(({ id }) => id);
    const onNow = await this.#parts.api.guide.onNow(live);
    return items.map((item) => {
      const programme = onNow.get(item.id);
      return programme === undefined ? item : { ...item, title: `${item.title}: ${programme}` };
    });
  }

  #media(list: ListName, { id: item, title, isLive, picture }: CatalogueItem): DidlEntry {
    return {
      ...named({ kind: "item", list, item }),
      kind: "media",
      title,
      isLive: isLive === 1,
      url: `${this.#mediaUrl}/i${item}.ts`,
      picture,
      sizeBytes: null,
      durationMs: null,
    };
  }

  /** The playable files of an item's torrent; peers are asked if the torrent is not known yet. */
  async #files(list: ListName, item: number, signal: AbortSignal): Promise<DidlEntry[]> {
    const { api, clock } = this.#parts;
    const member = found((await api.channels.members({ item })).find(({ id }) => id === item));
    const late = deadline(clock, FILES_MS, signal, () => {
      return new MillraceError("timeout", "nobody says which files the torrent has: try again later");
    });
    const options = { expandWrapper: false, createWrappers: false, analyze: false };
    const context = { callerIsLocal: member.mayNamePrivate, signal: late.signal };
    try {
      const [name, value] = member.selector;
      if (name === "direct_url") throw noSuchObject();
      const selector = selectStream({ [name]: value });
      const files = carriedFiles(await api.media.find(selector, options, context));
      return sortedFiles(files).map(({ index: fileIndex, title }) => ({
        ...named({ kind: "file", list, item, fileIndex }),
        kind: "media",
        title,
        isLive: false,
        url: `${this.#mediaUrl}/i${item}-${fileIndex}.ts`,
        picture: "",
        sizeBytes: null,
        durationMs: null,
      }));
    } finally {
      late.cancel();
    }
  }

  /** Those of which there is anything, the newest first. One that still grows has neither length nor ranges. */
  #recordings(): DidlEntry[] {
    const recordings = this.#parts.api.recordings?.list() ?? [];
    return recordings.filter(({ sizeBytes }) => sizeBytes > 0).map(({ id, title, state, sizeBytes, durationMs }) => ({
      ...named({ kind: "recording", recording: id }),
      kind: "media",
      title,
      isLive: state === "recording",
      url: `${this.#mediaUrl}/r${id}.ts`,
      picture: "",
      sizeBytes: state === "recording" ? null : sizeBytes,
      durationMs: state === "recording" ? null : durationMs,
    }));
  }

  #playing(): DidlEntry[] {
    // A channel that comes by HTTP has no address but its item's.
    const shown = this.#parts.sessions.list().filter((session) => session.kind === "file" || !session.isChannel);
    const entries = shown.map((session) => this.#session(session));
    return [...new Map(entries.map((entry) => [entry.id, entry])).values()];
  }

  #session(session: AnySession): DidlEntry {
    const { infohashHex } = session.identity;
    const file = session.kind === "file" ? session : null;
    const fileIndex = file?.file.index ?? null;
    const name = file?.file.name ?? (session.kind === "live" ? session.metainfo.name : "");
    const made = file?.identity.output === "ts" ? file.presentation : null;
    return {
      ...named({ kind: "playing", infohashHex, fileIndex }),
      kind: "media",
      title: name.slice(name.lastIndexOf("/") + 1),
      isLive: session.kind === "live",
      url: `${this.#mediaUrl}/s${infohashHex}${fileIndex === null ? "" : `-${fileIndex}`}.ts`,
      picture: "",
      sizeBytes: made?.ts.sizeBytes ?? null,
      durationMs: made?.durationMs ?? null,
    };
  }
}

function named(id: ObjectId): { readonly id: string; readonly parentId: string } {
  return { id: writeObjectId(id), parentId: parentOf(id) };
}

function container(id: ObjectId, title: string, childCount: number | null): DidlEntry {
  return { ...named(id), kind: "container", title, childCount };
}

function requestOf(list: ListName): { readonly category?: string; readonly isFavorite?: boolean } {
  if (list.kind === "category") return { category: list.name };
  return list.kind === "favourites" ? { isFavorite: true } : {};
}

function pageOf(entries: readonly DidlEntry[], { offset, limit }: PageBounds): EntryPage {
  return { total: entries.length, entries: entries.slice(offset, offset + limit) };
}

function found<T>(thing: T | null | undefined): T {
  if (thing === null || thing === undefined) throw noSuchObject();
  return thing;
}

/** The error for an id without an entry. */
export function noSuchObject(): UpnpError {
  return new UpnpError(701, "No such object");
}

/** What the front remembers: the torrents that clients added, and categories. */
import * as z from "zod";
import { MillraceError } from "../../../errors.ts";
import type { FrontState, FrontStates } from "../states.ts";

/** Torrents in the list. A client removes what it has imported. */
const MAX_TORRENTS = 1000;
const MAX_CATEGORIES = 200;
/** Tags of one torrent. */
const MAX_TAGS = 50;
/** Longest texts, characters. */
const MAX_NAME_CHARS = 1024;
const MAX_CATEGORY_CHARS = 256;
const MAX_LINK_CHARS = 64 * 1024;
/** Characters of all links together: those of torrents with many trackers have some thousand. */
const MAX_ALL_CHARS = 8 * 1024 * 1024;

const TORRENT = z.object({
  hash: z.string().regex(/^[0-9a-f]{40}$/),
  name: z.string(),
  category: z.string(),
  tags: z.array(z.string()),
  /** Its magnet. */
  link: z.string(),
  /** Unix seconds. */
  addedS: z.int(),
  /** null: it is not whole. */
  completedS: z.int().nullable(),
  /** 0: not known yet. */
  sizeBytes: z.int(),
  /** From 0 to 1, as it was when it last ran. */
  progress: z.number(),
  uploadedBytes: z.int(),
  /** How long it was shared after it was whole, s. */
  seededS: z.int(),
  /** What ends that, in minutes and as a part of its size; -1: nothing, -2: no such limit. */
  ratioLimit: z.number(),
  seedingTimeLimit: z.number(),
  inactiveSeedingTimeLimit: z.number(),
  /** A client stopped it. */
  isStopped: z.boolean(),
  /** The caller that added it may name addresses of the private network. */
  isLocal: z.boolean(),
  /** The item of the library that was made for it; null: the library had it. */
  item: z.int().nullable(),
});
const STATE = z.object({ torrents: z.array(TORRENT), categories: z.array(z.string()) });

/** A torrent of the list. */
export type QbittorrentTorrent = z.infer<typeof TORRENT>;

/** The list. Opened once per engine. */
export class QbittorrentList {
  readonly #state: FrontState<z.infer<typeof STATE>>;
  readonly #byHash = new Map<string, QbittorrentTorrent>();
  readonly #categories: Set<string>;
  #chars = 0;

  constructor(state: FrontState<z.infer<typeof STATE>>) {
    this.#state = state;
    for (const torrent of state.value.torrents) this.#set(torrent);
    this.#categories = new Set(state.value.categories);
  }

  /** Never rejects. */
  static async open(states: FrontStates): Promise<QbittorrentList> {
    return new QbittorrentList(await states.open("qbittorrent", STATE, { torrents: [], categories: [] }));
  }

  /** All torrents, the oldest first. */
  torrents(): readonly QbittorrentTorrent[] {
    return [...this.#byHash.values()];
  }

  torrent(hash: string): QbittorrentTorrent | undefined {
    return this.#byHash.get(hash);
  }

  /** Throws `too_busy` when the list is full, and `too_large`. */
  add(torrent: QbittorrentTorrent): void {
    if (torrent.link.length > MAX_LINK_CHARS) throw new MillraceError("too_large", "a magnet is too long");
    if (this.#byHash.size >= MAX_TORRENTS || this.#chars + torrent.link.length > MAX_ALL_CHARS) {
      throw new MillraceError("too_busy", `the list has ${this.#byHash.size} torrents: remove some`);
    }
    this.#set({ ...torrent, name: torrent.name.slice(0, MAX_NAME_CHARS) });
    this.addCategory(torrent.category);
    this.#changed();
  }

  /** Changes a torrent if it is still there. */
  change(hash: string, changes: Partial<Omit<QbittorrentTorrent, "hash" | "link">>): void {
    const torrent = this.#byHash.get(hash);
    if (torrent === undefined) return;
    const { name = torrent.name, tags = torrent.tags } = changes;
    this.#byHash.set(hash, {
      ...torrent,
      ...changes,
      name: name.slice(0, MAX_NAME_CHARS),
      tags: [...new Set(tags)].slice(0, MAX_TAGS),
    });
    if (changes.category !== undefined) this.addCategory(changes.category);
    this.#changed();
  }

  remove(hash: string): void {
    const torrent = this.#byHash.get(hash);
    if (torrent === undefined) return;
    this.#chars -= torrent.link.length;
    this.#byHash.delete(hash);
    this.#changed();
  }

  categories(): readonly string[] {
    return [...this.#categories];
  }

  /** Adds a category; an empty name is none. Throws `invalid_argument` and `too_busy`. */
  addCategory(name: string): void {
    if (name === "" || this.#categories.has(name)) return;
    if (name.length > MAX_CATEGORY_CHARS) {
      throw new MillraceError("invalid_argument", "the category's name is too long");
    }
    if (this.#categories.size >= MAX_CATEGORIES) throw new MillraceError("too_busy", "there are too many categories");
    this.#categories.add(name);
    this.#changed();
  }

  removeCategory(name: string): void {
    if (!this.#categories.delete(name)) return;
    for (const { hash, category } of this.torrents()) if (category === name) this.change(hash, { category: "" });
    this.#changed();
  }

  #set(torrent: QbittorrentTorrent): void {
    this.#chars += torrent.link.length - (this.#byHash.get(torrent.hash)?.link.length ?? 0);
    this.#byHash.set(torrent.hash, torrent);
  }

  #changed(): void {
    this.#state.changed(() => ({ torrents: [...this.torrents()], categories: [...this.#categories] }));
  }
}

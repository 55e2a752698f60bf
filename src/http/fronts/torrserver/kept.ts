/** What the front remembers: the list of torrents, the files that were seen, and two settings. */
import * as z from "zod";
import { MillraceError } from "../../../errors.ts";
import { type AnyMetainfo, isLive } from "../../../metainfo/live.ts";
import type { FrontState, FrontStates } from "../states.ts";
import { numberedFiles } from "./file-ids.ts";

/** Torrents in the list. The oldest that no client saved make room; saved ones don't. */
const MAX_TORRENTS = 1000;
/** Files that were seen, the newest: a series watched every day for years. */
const MAX_VIEWED = 5000;
/** Longest texts of a torrent, characters. A client keeps a film's description and pictures in `data`. */
const MAX_CHARS = { title: 1024, category: 64, poster: 64 * 1024, data: 128 * 1024, magnet: 64 * 1024 } as const;
/** Characters of all torrents together. */
const MAX_ALL_CHARS = 8 * 1024 * 1024;

const HASH = z.string().regex(/^[0-9a-f]{40}$/);
const TORRENT = z.object({
  hash: HASH,
  title: z.string(),
  category: z.string(),
  poster: z.string(),
  data: z.string(),
  /** The magnet that it came with; null: none. */
  magnet: z.string().nullable(),
  /** When it was added, Unix seconds. */
  addedS: z.int(),
  /** 0: not known yet. */
  sizeBytes: z.int(),
  /** A client asked to keep it over restarts. */
  isSaved: z.boolean(),
  /** The caller that added it may name addresses of the private network. */
  isLocal: z.boolean(),
});
const VIEWED = z.object({ hash: HASH, fileId: z.int(), timecode: z.number() });
const STATE = z.object({
  torrents: z.array(TORRENT),
  viewed: z.array(VIEWED),
  cacheBytes: z.int(),
  preloadPercent: z.int(),
});

/** A torrent of the list. */
export type TorrServerTorrent = z.infer<typeof TORRENT>;
/** A file that somebody watched; `timecode` is where, s. */
export type Viewed = z.infer<typeof VIEWED>;

/** The list and the rest. Opened once per engine. */
export class TorrServerState {
  readonly #state: FrontState<z.infer<typeof STATE>>;
  readonly #byHash = new Map<string, TorrServerTorrent>();
  /** Characters of all torrents. */
  #chars = 0;

  constructor(state: FrontState<z.infer<typeof STATE>>) {
    this.#state = state;
    for (const torrent of state.value.torrents) this.#set(torrent);
  }

  /** Never rejects. */
  static async open(states: FrontStates): Promise<TorrServerState> {
    const initial = { torrents: [], viewed: [], cacheBytes: 64 * 1024 * 1024, preloadPercent: 50 };
    return new TorrServerState(await states.open("torrserver", STATE, initial));
  }

  /** Goal of a preload: as much of a cache of `cacheBytes`. */
  get settings(): { readonly cacheBytes: number; readonly preloadPercent: number } {
    return this.#state.value;
  }

  set settings({ cacheBytes, preloadPercent }) {
    Object.assign(this.#state.value, { cacheBytes, preloadPercent });
    this.#changed();
  }

  /** All torrents, the newest first. */
  torrents(): readonly TorrServerTorrent[] {
    return [...this.#byHash.values()].reverse();
  }

  torrent(hash: string): TorrServerTorrent | undefined {
    return this.#byHash.get(hash);
  }

  /** Adds a torrent; one of the list keeps what `torrent` does not say. Throws as `put`. */
  add(torrent: TorrServerTorrent): TorrServerTorrent {
    const known = this.#byHash.get(torrent.hash);
    if (known === undefined) return this.put(torrent);
    return this.put({
      ...known,
      title: torrent.title || known.title,
      category: torrent.category || known.category,
      poster: torrent.poster || known.poster,
      data: torrent.data || known.data,
      magnet: torrent.magnet ?? known.magnet,
      isSaved: torrent.isSaved || known.isSaved,
      isLocal: torrent.isLocal || known.isLocal,
    });
  }

  /** Adds a torrent, or replaces it. Throws `too_large`, and `too_busy` when saved ones fill the list. */
  put(torrent: TorrServerTorrent): TorrServerTorrent {
    for (const [name, most] of Object.entries(MAX_CHARS)) {
      const text = torrent[name as keyof typeof MAX_CHARS] ?? "";
      if (text.length > most) throw new MillraceError("too_large", `${name} has more than ${most} characters`);
    }
    this.#makeRoom(torrent);
    this.#set(torrent);
    if (torrent.isSaved) this.#changed();
    return torrent;
  }

  /**
   * Notes what the description of a torrent says. Clients that gave no `data` find the files there, in the form in which the
   * original keeps them: they list torrents that sleep.
   */
  learnt(hash: string, metainfo: AnyMetainfo): void {
    const known = this.#byHash.get(hash);
    if (known === undefined || isLive(metainfo) || known.sizeBytes === metainfo.totalBytes) return;
    const files = numberedFiles(metainfo).map(({ id, path, sizeBytes }) => ({ id, path, length: sizeBytes }));
    const data = known.data === "" ? JSON.stringify({ TorrServer: { Files: files } }) : known.data;
    const { totalBytes: sizeBytes } = metainfo;
    this.#set({ ...known, sizeBytes, data: data.length > MAX_CHARS.data ? known.data : data });
    if (known.isSaved) this.#changed();
  }

  remove(hash: string): void {
    if (this.#delete(hash)) this.#changed();
  }

  /** What was seen, of one torrent or of all. */
  viewed(hash?: string): readonly Viewed[] {
    const { viewed } = this.#state.value;
    return hash === undefined ? viewed : viewed.filter((one) => one.hash === hash);
  }

  setViewed(viewed: Viewed): void {
    const others = this.#state.value.viewed.filter((one) => one.hash !== viewed.hash || one.fileId !== viewed.fileId);
    this.#state.value.viewed = [...others, viewed].slice(-MAX_VIEWED);
    this.#changed();
  }

  /** `fileId` -1: all files of the torrent. */
  removeViewed(hash: string, fileId: number): void {
    this.#state.value.viewed = this.#state.value.viewed.filter((one) =>
      one.hash !== hash || (fileId !== -1 && one.fileId !== fileId)
    );
    this.#changed();
  }

  /** Takes the place of the torrent of that hash, if any. */
  #set(torrent: TorrServerTorrent): void {
    this.#chars += charsOf(torrent) - charsOf(this.#byHash.get(torrent.hash));
    this.#byHash.set(torrent.hash, torrent);
  }

  #delete(hash: string): boolean {
    this.#chars -= charsOf(this.#byHash.get(hash));
    return this.#byHash.delete(hash);
  }

  #makeRoom(torrent: TorrServerTorrent): void {
    const known = this.#byHash.get(torrent.hash);
    const more = charsOf(torrent) - charsOf(known);
    const isFull = () =>
      this.#byHash.size + (known === undefined ? 1 : 0) > MAX_TORRENTS || this.#chars + more > MAX_ALL_CHARS;
    if (!isFull()) return;
    for (const { hash, isSaved } of this.#byHash.values()) {
      if (isSaved || hash === torrent.hash) continue;
      this.#delete(hash);
      if (!isFull()) return;
    }
    throw new MillraceError("too_busy", "the list of torrents is full: remove some");
  }

  #changed(): void {
    const saved = () => [...this.#byHash.values()].filter(({ isSaved }) => isSaved);
    this.#state.changed(() => ({ ...this.#state.value, torrents: saved() }));
  }
}

function charsOf(torrent: TorrServerTorrent | undefined): number {
  if (torrent === undefined) return 0;
  const { title, poster, data, magnet } = torrent;
  return title.length + poster.length + data.length + (magnet?.length ?? 0);
}

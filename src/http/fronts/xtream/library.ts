/** The library in the words of Xtream codes: categories with numbers, streams, series. Types of fields are those of its panels. */
import * as z from "zod";
import type { CatalogueItem, CatalogueKind } from "../../../playlist/catalogue.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { episodesOf } from "../episodes.ts";
import { itemTorrent } from "../item-torrent.ts";
import type { FrontState, FrontStates } from "../states.ts";

/** Items read at once. */
const PAGE_ITEMS = 250;
/** Categories with a number of their own; further ones are in "Other". */
const MAX_CATEGORIES = 5000;
/** Files of a series that have a number: the rest of it is the item's. Numbers stay below 2³¹ for 200,000 items. */
const FILES_PER_ITEM = 10_000;
/** Longest title and description, characters. */
const MAX_TEXT_CHARS = 8192;
/** Programmes of one answer: three weeks of a channel have some 1,000. */
const MAX_PROGRAMMES = 4000;
/** How far the guide reaches back and ahead, s. */
const KEPT_BEFORE_S = 7 * 86_400;
const KEPT_AHEAD_S = 15 * 86_400;
/** Name of what has no category. */
const OTHER = "Other";

const STATE = z.object({ categories: z.array(z.tuple([z.string(), z.int()])) });
type Field = string | number | null | readonly unknown[] | Readonly<Record<string, unknown>>;
type Fields = Readonly<Record<string, Field>>;

/** Reads the library. Numbers of categories never change. */
export class XtreamLibrary {
  readonly #parts: HttpParts;
  readonly #state: FrontState<z.infer<typeof STATE>>;
  readonly #numbers: Map<string, number>;

  constructor(parts: HttpParts, state: FrontState<z.infer<typeof STATE>>) {
    this.#parts = parts;
    this.#state = state;
    this.#numbers = new Map(state.value.categories);
  }

  /** Never rejects. */
  static async open(parts: HttpParts, states: FrontStates): Promise<XtreamLibrary> {
    return new XtreamLibrary(parts, await states.open("xtream", STATE, { categories: [[OTHER, 1]] }));
  }

  /** The number of a category, as text. */
  #numberOf(name: string): string {
    const wanted = name === "" ? OTHER : name;
    const known = this.#numbers.get(wanted);
    if (known !== undefined) return String(known);
    if (this.#numbers.size >= MAX_CATEGORIES) return this.#numberOf(OTHER);
    const number = this.#numbers.size + 1;
    this.#numbers.set(wanted, number);
    this.#state.value.categories.push([wanted, number]);
    this.#state.changed(() => this.#state.value);
    return String(number);
  }

  async categories(kind: CatalogueKind): Promise<Fields[]> {
    const { catalogue } = this.#parts.api;
    const filter = { kind: "sort", of: kind } as const;
    const { entries } = await catalogue.categories({ offset: 0, limit: MAX_CATEGORIES, filter });
    const { total } = await catalogue.items({ offset: 0, limit: 0, filter });
    const named = new Set(entries.map(({ name }) => name));
    if (entries.reduce((sum, { items }) => sum + items, 0) < total) named.add(OTHER);
    return [...named].map((name) => ({ category_id: this.#numberOf(name), category_name: name, parent_id: 0 }));
  }

  /** Items of a kind in parts, each with its place in the list from 1; `category`: a number as text, null for all. */
  async *items(
    kind: CatalogueKind,
    category: string | null,
  ): AsyncGenerator<readonly (readonly [CatalogueItem, number])[]> {
    let place = 0;
    for (let offset = 0;; offset += PAGE_ITEMS) {
      const request = { filter: { kind: "sort", of: kind }, offset, limit: PAGE_ITEMS } as const;
      const { total, entries } = await this.#parts.api.catalogue.items(request);
      const wanted = entries.filter((item) => category === null || this.#numberOf(item.category) === category);
      yield wanted.map((item) => [item, ++place] as const);
      if (offset + PAGE_ITEMS >= total) return;
    }
  }

  /** An entry of `get_live_streams`, `get_vod_streams` or `get_series`. */
  entry(kind: CatalogueKind, item: CatalogueItem, num: number): Fields {
    const category = this.#numberOf(item.category);
    const name = item.title || "?";
    const common = {
      ...{ num, name, category_id: category, category_ids: [Number(category)] },
      ...{ added: String(item.addedS), is_adult: "0", custom_sid: "", direct_source: "" },
    };
    switch (kind) {
      case "channel":
        return {
          ...common,
          ...{ stream_type: "live", stream_id: item.id, stream_icon: item.picture, thumbnail: "" },
          ...{ epg_channel_id: item.tvgId === "" ? null : item.tvgId, tv_archive: Number(item.archiveDays > 0) },
          tv_archive_duration: item.archiveDays,
        };
      case "film":
        return {
          ...common,
          ...{ stream_type: "movie", stream_id: item.id, stream_icon: item.picture },
          ...{ rating: "0", rating_5based: 0, container_extension: "ts" },
        };
      case "series":
        return {
          num,
          ...this.#series(item),
          series_id: item.id,
          category_id: category,
          category_ids: [Number(category)],
        };
    }
  }

  #series({ title, picture, addedS }: CatalogueItem): Fields {
    return {
      ...{ name: title || "?", cover: picture, plot: "", cast: "", director: "", genre: "", releaseDate: "" },
      ...{ last_modified: String(addedS), rating: "0", rating_5based: 0, backdrop_path: [], youtube_trailer: "" },
      episode_run_time: "0",
    };
  }

  /** The answer to `get_vod_info`; null: there is no such film. */
  async film(id: number): Promise<Fields | null> {
    const item = await this.#parts.api.catalogue.item(id);
    if (item === null) return null;
    const { title, picture, category, addedS } = item;
    return {
      info: {
        ...{ movie_image: picture, cover_big: picture, name: title, plot: "", cast: "", director: "", genre: "" },
        ...{ releasedate: "", rating: "0", duration: "00:00:00", duration_secs: 0, tmdb_id: "", backdrop_path: [] },
        ...{ youtube_trailer: "", video: {}, audio: {}, bitrate: 0 },
      },
      movie_data: {
        ...{ stream_id: id, name: title, added: String(addedS), category_id: this.#numberOf(category) },
        ...{ container_extension: "ts", custom_sid: "", direct_source: "" },
      },
    };
  }

  /**
   * Programmes of a channel as `epg_listings`: those that are on or come, or all that are kept; at most `limit`. Texts are
   * in base64, as panels send them.
   */
  async programmes(id: number, which: "from now" | "all", limit: number): Promise<Fields[]> {
    const { clock, api: { guide, catalogue } } = this.#parts;
    const nowS = Math.floor(clock.now() / 1000);
    const fromS = which === "all" ? nowS - KEPT_BEFORE_S : nowS;
    const most = Math.min(limit, MAX_PROGRAMMES);
    const [found] = await guide.programmes([id], fromS, nowS + KEPT_AHEAD_S, most);
    const channel = found === undefined ? null : await catalogue.item(id);
    if (found === undefined || channel === null) return [];
    return found.programmes.map(({ start, stop, lang, title, description }) => ({
      ...{ id: String(start), epg_id: channel.tvgId, channel_id: channel.tvgId, lang },
      ...{ title: base64(title), description: base64(description), start: clockText(start), end: clockText(stop) },
      ...{ start_timestamp: String(start), stop_timestamp: String(stop) },
      has_archive: Number(start < nowS && start > nowS - channel.archiveDays * 86_400),
      now_playing: Number(start <= nowS && nowS < stop),
    }));
  }

  /** The answer to `get_series_info`; null: there is no such series. Rejects as `itemTorrent`. */
  async series(c: HttpContext, id: number): Promise<Fields | null> {
    const item = await this.#parts.api.catalogue.item(id);
    const torrent = item === null ? null : await itemTorrent(c, this.#parts, id);
    if (item === null || torrent === null) return null;
    const episodes: Record<string, Fields[]> = {};
    const files = torrent.files.filter(({ index }) => index < FILES_PER_ITEM);
    for (const { file, title, season, episode } of episodesOf(files)) {
      (episodes[String(season)] ??= []).push({
        ...{ id: String(id * FILES_PER_ITEM + file.index), episode_num: episode, season },
        ...{ title, container_extension: "ts", added: String(item.addedS) },
        info: { movie_image: item.picture, plot: "", duration_secs: 0, duration: "00:00:00" },
        ...{ custom_sid: "", direct_source: "" },
      });
    }
    const seasons = Object.entries(episodes).map(([number, list]) => ({
      ...{ season_number: Number(number), name: `Season ${number}`, cover: item.picture, episode_count: list.length },
      ...{ air_date: "", overview: "", id: Number(number) },
    }));
    return { seasons, info: { ...this.#series(item), category_id: this.#numberOf(item.category) }, episodes };
  }
}

/** Item and file of an episode's number. */
export function episodeOf(id: number): { readonly item: number; readonly fileIndex: number } {
  return { item: Math.floor(id / FILES_PER_ITEM), fileIndex: id % FILES_PER_ITEM };
}

/** A time as panels of the time zone UTC write it. */
function clockText(unixS: number): string {
  return new Date(unixS * 1000).toISOString().slice(0, 19).replace("T", " ");
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text.slice(0, MAX_TEXT_CHARS))));
}

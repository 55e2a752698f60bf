/** Programme guides, our addition: where they come from, and what is on. */
import * as z from "zod";
import type { Programme } from "../../../playlist/guide/programmes.ts";
import type { GuideSourceRow } from "../../../playlist/guide/sources.ts";
import { API_CODES, ApiError } from "../codes.ts";
import { type Method, methodsWith } from "../method.ts";
import { INFOHASH, ITEM_ID, NONE, OK } from "../schemas.ts";
import { PROGRAMME } from "./playlist-item.ts";

const defineMethod = methodsWith<"clock" | "guide">();

const ID = z.int().min(1).describe("Number of a guide");
/** Seconds since 1970. */
const TIME = z.int().min(0);
/** Channels of one call: more than a page shows. */
const MAX_CHANNELS = 100;
/** Programmes of one call, some MB: a hundred channels for two days. */
const MAX_PROGRAMMES = 5000;
/** Longest time of one call, seconds: all that is kept. */
const MAX_SPAN_S = 22 * 86_400;
/** Without `to`, seconds. */
const DEFAULT_SPAN_S = 86_400;

const SOURCE = z.object({
  id: ID,
  url: z.string(),
  from_list: z.boolean().describe("A list names it; false: it was added by epg_source_add"),
  update_interval: z.int().min(0),
  last_update: TIME,
  next_update: TIME,
  last_error: z.string().describe("Why the last fetch failed; empty when it did not"),
  channels: z.int().describe("Channels of the guide"),
  programmes: z.int().describe("Programmes that are kept: those of channels in the playlist"),
}).meta({ id: "EpgSource" });

function sourceJson(row: GuideSourceRow): z.input<typeof SOURCE> {
  const { id, url, update_interval, last_update, next_update, last_error, channels, programmes } = row;
  const from_list = row.is_given === 0;
  return { id, url, from_list, update_interval, last_update, next_update, last_error, channels, programmes };
}

/** In the first of `languages` that it has, else in the guide's own first one. */
function programmeJson(programme: Programme, languages: readonly string[]): z.input<typeof PROGRAMME> {
  const { start, stop, categories, icon, episode, year, more, ...first } = programme;
  const all = [first, ...more];
  const wanted = languages.map((language) => all.find(({ lang }) => isLanguage(lang, language))).find(Boolean) ?? first;
  const { lang, title, subtitle, description } = wanted;
  return {
    start,
    stop,
    language: lang,
    title,
    subtitle,
    description,
    categories: [...categories],
    icon,
    episode,
    year,
  };
}

/** Whether `en-GB` is `en`. */
function isLanguage(tag: string, wanted: string): boolean {
  return tag.toLowerCase().split(/[-_]/, 1)[0] === wanted.toLowerCase().split(/[-_]/, 1)[0];
}

/** The methods of programme guides. */
export const GUIDE_METHODS: readonly Method[] = [
  defineMethod({
    name: "epg_get",
    summary: "The programmes of channels between two times, merged from all guides; time is in Unix seconds.",
    public: false,
    remote: true,
    params: z.object({
      playlist_item_id: z.array(ITEM_ID).max(MAX_CHANNELS).optional().describe("Numbers of items of the playlist"),
      infohash: INFOHASH.optional().describe("Without numbers: of the items that play it"),
      content_id: INFOHASH.optional().describe("Without numbers and infohash: of the items that play it"),
      from: TIME.optional().describe("Programmes that end later; default now"),
      to: TIME.optional().describe("Programmes that begin earlier; default a day after from"),
      language: z.array(z.string().max(16)).max(8).optional().describe(
        "Languages of titles in the order of preference; default the guide's first one",
      ),
    }),
    result: z.object({
      channels: z.array(z.object({ playlist_item_id: ITEM_ID, programmes: z.array(PROGRAMME) })),
    }),
    async handle({ playlist_item_id = [], infohash, content_id, language = [], ...span }, { parts }) {
      const ids = playlist_item_id.length > 0
        ? playlist_item_id
        : infohash !== undefined || content_id !== undefined
        ? await parts.guide.itemsOf({
          infohash: infohash ?? "",
          contentId: infohash === undefined ? content_id! : null,
        })
        : null;
      if (ids === null) {
        throw new ApiError(API_CODES.missingParameter, "missing parameter: playlist_item_id or infohash");
      }
      const from = span.from ?? Math.floor(parts.clock.now() / 1000);
      const to = Math.min(span.to ?? from + DEFAULT_SPAN_S, from + MAX_SPAN_S);
      const languages = language.flatMap((one) => one.split(","));
      const channels = await parts.guide.programmes([...new Set(ids)], from, to, MAX_PROGRAMMES);
      return {
        channels: channels.map(({ playlistItemId, programmes }) => ({
          playlist_item_id: playlistItemId,
          programmes: programmes.map((programme) => programmeJson(programme, languages)),
        })),
      };
    },
  }),
  defineMethod({
    name: "epg_sources",
    summary: "The programme guides that are fetched: those that lists name, and those that were added.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({ sources: z.array(SOURCE) }),
    handle: async (_params, { parts }) => ({ sources: (await parts.guide.sources()).map(sourceJson) }),
  }),
  defineMethod({
    name: "epg_source_add",
    summary: "Adds a programme guide (XMLTV, also packed with gzip or xz) that is fetched regularly; returns its id.",
    public: false,
    remote: true,
    params: z.object({
      url: z.string().max(8192).describe("Address of the guide"),
      update_interval: z.int().min(0).default(43_200).describe("Seconds: at least 60, or 0 for updates by hand alone"),
      update_now: z.boolean().default(true).describe("Fetches it at once, in the background"),
    }),
    result: ID,
    handle: ({ url, update_interval: updateInterval, update_now }, { parts, mayFetchPrivate: allowPrivate }) =>
      parts.guide.add({ url, updateInterval, allowPrivate }, update_now),
  }),
  defineMethod({
    name: "epg_source_update",
    summary: "Fetches a programme guide now and returns when its programmes are kept.",
    public: false,
    remote: true,
    params: z.object({ id: ID }),
    result: OK,
    async handle({ id }, { parts }) {
      await parts.guide.update(id);
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "epg_source_delete",
    summary: "Deletes a programme guide that was added, and its programmes; one that a list names goes with the list.",
    public: false,
    remote: true,
    params: z.object({ id: ID }),
    result: OK,
    async handle({ id }, { parts }) {
      await parts.guide.delete(id);
      return "ok" as const;
    },
  }),
];

/** `search`, our addition: titles of the playlist, by item or by channel. Also on `/search`. */
import * as z from "zod";
import { JsonStream } from "../json-stream.ts";
import { defineMethod, type Method } from "../method.ts";
import { logoUrl } from "../logo.ts";
import { OWNER, SHORT_TEXT } from "../schemas.ts";
import { LISTED_ITEM } from "./playlist-item.ts";

/** Results of one page at most. */
const MAX_PAGE_SIZE = 200;

/** The method that searches titles. */
export const SEARCH_METHODS: readonly Method[] = [
  defineMethod({
    name: "search",
    summary: "Searches the titles of enabled items, in any case and with or without diacritics; time is in seconds.",
    public: false,
    remote: true,
    params: z.object({
      query: SHORT_TEXT.default("").describe("Part of the title; empty: all items"),
      page: z.int().min(0).max(1_000_000).default(0).describe("Which page, from 0"),
      page_size: z.int().min(1).max(MAX_PAGE_SIZE).default(10).describe("Results of a page"),
      category: SHORT_TEXT.optional().describe("Items of this category alone"),
      is_favorite: z.boolean().optional().describe("Favourites alone, or all others"),
      group_by_channels: z.boolean().default(false).describe("One result per channel, with all its items"),
      show_epg: z.boolean().default(false).describe("Adds where the programme guide of the result is found"),
      owner: OWNER,
    }),
    result: z.object({
      total: z.int(),
      time: z.number(),
      results: z.array(z.object({
        name: z.string(),
        items: z.array(LISTED_ITEM),
        epg: z.object({ tvg_id: z.string(), sources: z.array(z.string()) }).optional(),
      })),
    }),
    async handle(params, { parts, ownUrl }) {
      const begun = parts.clock.monotonic();
      const { total, results } = await parts.lists.search({
        query: params.query,
        page: params.page,
        pageSize: params.page_size,
        category: params.category || undefined,
        owner: params.owner,
        isFavorite: params.is_favorite,
        groupByChannels: params.group_by_channels,
        logoUrl: logoUrl(ownUrl),
      });
      const sources = params.show_epg ? await parts.lists.guides() : [];
      const texts = results.map(({ name, items }) => {
        const epg = params.show_epg ? `,"epg":${JSON.stringify({ tvg_id: tvgId(items), sources })}` : "";
        return `{"name":${JSON.stringify(name)},"items":[${items.join(",")}]${epg}}`;
      });
      const time = Math.round((parts.clock.monotonic() - begun) * 1000) / 1e6;
      return new JsonStream((async function* () {
        yield `{"total":${total},"time":${time},"results":[${texts.join(",")}]}`;
      })());
    },
  }),
];

/** The one of the first item that has one. */
function tvgId(items: readonly string[]): string {
  return items.map((item) => (JSON.parse(item) as { tvg_id: string }).tvg_id).find((id) => id !== "") ?? "";
}

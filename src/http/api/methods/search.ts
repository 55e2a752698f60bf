/** `search`, our addition, and `/search`: titles of the playlist, by item or by channel. */
import * as z from "zod";
import { JsonStream } from "../json-stream.ts";
import { type Method, methodsWith } from "../method.ts";
import { logoUrl } from "../logo.ts";
import { PageCount } from "../page-count.ts";
import { HEX_40, OWNER, SHORT_TEXT } from "../schemas.ts";
import { guideTime, LISTED_ITEM, NOW_AND_NEXT } from "./playlist-item.ts";

const defineMethod = methodsWith<"clock" | "guide" | "lists">();

/** Results of one page at most. */
const MAX_PAGE_SIZE = 200;

const FILTER = {
  query: SHORT_TEXT.default("").describe("Part of the title; empty: all items"),
  category: SHORT_TEXT.optional().describe("Items of this category alone"),
  is_favorite: z.boolean().optional().describe("Favourites alone, or all others"),
  group_by_channels: z.boolean().default(false).describe("One result per channel, with all its items"),
  owner: OWNER,
};

/** The method that searches titles. */
export const SEARCH_METHODS: readonly Method[] = [
  defineMethod({
    name: "search",
    summary: "Searches the titles of enabled items, in any case and with or without diacritics; time is in seconds.",
    public: false,
    remote: true,
    params: z.object({
      ...FILTER,
      page: z.int().min(0).max(1_000_000).default(0).describe("Which page, from 0"),
      page_size: z.int().min(1).max(MAX_PAGE_SIZE).default(10).describe("Results of a page"),
      show_epg: z.boolean().default(false).describe("Adds what is on, what is next, and where the guides are"),
    }),
    result: z.object({
      total: z.int(),
      time: z.number(),
      results: z.array(z.object({
        name: z.string(),
        items: z.array(LISTED_ITEM),
        epg: z.object({ tvg_id: z.string(), sources: z.array(z.string()), ...NOW_AND_NEXT }).optional(),
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
        guideAtS: params.show_epg ? await guideTime(parts) : undefined,
      });
      const sources = params.show_epg ? await parts.lists.guides() : [];
      const texts = results.map(({ name, items }) => {
        const epg = params.show_epg ? `,"epg":${JSON.stringify({ ...guideOf(items), sources })}` : "";
        return `{"name":${JSON.stringify(name)},"items":[${items.join(",")}]${epg}}`;
      });
      return pageJson(total, (parts.clock.monotonic() - begun) / 1000, texts);
    },
  }),
];

/** A torrent or broadcast as clients of `/search` read it. */
const FOUND_ITEM = z.object({
  name: z.string(),
  infohash: HEX_40,
  status: z.int().describe("2: the last check found it alive; 1: that is not known, or it was silent"),
  availability: z.number().describe("0: the last check found nobody who shares it; else 1"),
  availability_updated_at: z.int().describe("When it was checked, Unix seconds; now if it never was"),
  categories: z.array(z.string()),
  languages: z.array(z.string()),
  countries: z.array(z.string()),
  channel_id: z.int().describe("The same for all items of a channel"),
  bitrate: z.int().describe("Always 0: unknown"),
}).meta({ id: "FoundItem" });

/** The method behind `/search`, for clients that make lists of what they find: they know neither tokens nor bounds of a page. */
export function searchForClients(): Method {
  const count = new PageCount();
  return defineMethod({
    name: "search",
    summary:
      "Searches the titles of enabled torrents and broadcasts; open without a token on this machine and in its subnet.",
    public: false,
    openNearby: true,
    remote: true,
    params: z.object({
      ...FILTER,
      page: z.int().min(0).max(1_000_000).default(0).describe(
        "Which page. A search that begins with page 1 counts from 1, others from 0",
      ),
      page_size: z.int().min(1).default(10).describe(
        `Results of a page; more than ${MAX_PAGE_SIZE} are ${MAX_PAGE_SIZE}`,
      ),
      show_epg: z.boolean().default(false).describe("Has no effect: what is on is not known"),
    }),
    result: z.object({
      total: z.int(),
      time: z.number(),
      results: z.array(z.object({
        name: z.string(),
        icons: z.array(z.object({ url: z.string(), type: z.int() })).optional().describe("Absent when there are none"),
        items: z.array(FOUND_ITEM),
      })),
    }),
    async handle({ page, page_size, ...params }, { parts, ownUrl, clientHost }) {
      const { clock } = parts;
      const begun = clock.monotonic();
      const { total, results } = await parts.lists.search({
        query: params.query,
        page: count.indexOf(JSON.stringify([clientHost, page_size, params]), page, begun),
        pageSize: Math.min(page_size, MAX_PAGE_SIZE),
        category: params.category || undefined,
        owner: params.owner,
        isFavorite: params.is_favorite,
        groupByChannels: params.group_by_channels,
        logoUrl: logoUrl(ownUrl),
        foundAtS: Math.floor(clock.now() / 1000),
      });
      const texts = results.map(({ name, icons, items }) => {
        const urls = JSON.parse(icons) as string[];
        const pictures = urls.length === 0 ? "" : `"icons":${JSON.stringify(urls.map((url) => ({ url, type: 0 })))},`;
        return `{"name":${JSON.stringify(name)},${pictures}"items":[${items.join(",")}]}`;
      });
      return pageJson(total, (clock.monotonic() - begun) / 1000, texts);
    },
  });
}

function pageJson(total: number, timeS: number, results: readonly string[]): JsonStream {
  return new JsonStream((async function* () {
    yield `{"total":${total},"time":${Math.round(timeS * 1e6) / 1e6},"results":[${results.join(",")}]}`;
  })());
}

/** The `tvg-id` and the programmes of the first item that has any. */
function guideOf(items: readonly string[]): z.infer<z.ZodObject<typeof NOW_AND_NEXT>> & { tvg_id: string } {
  const all = items.map((item) => JSON.parse(item) as z.infer<typeof LISTED_ITEM>);
  const { now = null, next = null } = all.find(({ epg }) => epg?.now || epg?.next)?.epg ?? {};
  return { tvg_id: all.find(({ tvg_id }) => tvg_id !== "")?.tvg_id ?? "", now, next };
}

/** `analyze_deferred_playlist_items` of section 4.4, whose result and effect the document leaves to us. */
import * as z from "zod";
import { looksPlayable } from "../../../content/file-choice.ts";
import type { Analysis, Outcome } from "../../../content/analysis/analysis.ts";
import { analysisQuery } from "../../../playlist/learn.ts";
import { API_CODES, ApiError, toApiError } from "../codes.ts";
import { type ApiCall, type Method, methodsWith } from "../method.ts";
import { ITEM_ID } from "../schemas.ts";
import { analysisJson, OUTCOME } from "./analyze.ts";

type Parts = "analyzer" | "content" | "lists";
const defineMethod = methodsWith<Parts>();

/** Items of one call, those of their channels included. */
const MAX_ITEMS = 200;

/** The method that analyses items of the playlist later. It changes items, so pages of other origins may not call it. */
export const DEFERRED_METHODS: readonly Method[] = [
  defineMethod({
    name: "analyze_deferred_playlist_items",
    summary:
      "Analyses the content of items and stores the result: ids, live or not, several files. One element per item.",
    public: true,
    remote: true,
    sameOriginOnly: true,
    params: z.object({
      playlist_item_id: z.array(ITEM_ID).min(1).max(MAX_ITEMS).describe("Numbers of the items"),
      use_media_groups: z.boolean().default(false).describe(
        `Also the other items of their channels, ${MAX_ITEMS} in all`,
      ),
    }),
    result: z.array(OUTCOME.extend({ playlist_item_id: z.int() })),
    async handle({ playlist_item_id, use_media_groups }, call) {
      const { lists, analyzer } = call.parts;
      const items = await lists.itemsToAnalyze(playlist_item_id, use_media_groups, MAX_ITEMS);
      // What came from the Internet may not lead into the private network, whoever asks.
      const outcomes = new Map<number, Outcome>();
      for (const isFromPublic of [false, true]) {
        const part = items.filter(({ is_from_public }) => Boolean(is_from_public) === isFromPublic);
        if (part.length === 0) continue;
        const found = await analyzer.analyze(part.map((item) => analysisQuery(item) ?? ""), { ...call, isFromPublic });
        for (const [i, { id }] of part.entries()) outcomes.set(id, found[i]!);
      }
      return await Promise.all(items.map(async ({ id, title }) => {
        const outcome = outcomes.get(id);
        try {
          if (outcome === undefined || "error" in outcome) throw outcome?.error;
          if (outcome.analysis === null) throw new ApiError(API_CODES.documented, "unknown protocol");
          await store(call, id, outcome.analysis);
          return { playlist_item_id: id, result: analysisJson({ ...outcome.analysis, title }) };
        } catch (error) {
          const { message, code } = toApiError(error);
          return { playlist_item_id: id, error: { message, code } };
        }
      }));
    },
  }),
];

async function store({ parts }: ApiCall<Parts>, id: number, analysis: Analysis): Promise<void> {
  const { infohash } = analysis;
  const metainfo = infohash === null ? null : await parts.content.known(infohash);
  const isHls = analysis.contentType === "hls" || analysis.contentType === "hls_vode";
  await parts.lists.learn(id, {
    contentId: analysis.contentId,
    infohash,
    transportType: analysis.transportType === "bt" ? "bt" : isHls ? "hls" : "direct",
    isLive: analysis.isLive,
    isMulti: metainfo === null || !("files" in metainfo) ? null : metainfo.files.filter(looksPlayable).length > 1,
  });
}

/** `analyze_content` and `analyze_content_multi` of section 4.4, section 2.7. */
import * as z from "zod";
import type { Analysis, Outcome } from "../../../content/analysis/analysis.ts";
import { API_CODES, ApiError, toApiError } from "../codes.ts";
import { type Method, methodsWith } from "../method.ts";
import { HEX_40 } from "../schemas.ts";

const defineMethod = methodsWith<"analyzer">();

/** Queries of one call. */
const MAX_QUERIES = 200;

const QUERY = z.string().max(65_536);
/** Section 2.7. */
export const ANALYSIS = z.object({
  content_type: z.enum(["transport_file", "hls", "hls_vode", "direct_content", "direct_stream", "playlist"]),
  transport_type: z.enum(["bt", "hls"]),
  content_id: HEX_40.nullable(),
  infohash: HEX_40.nullable(),
  item_url: z.string().nullable(),
  title: z.string(),
  is_live: z.literal([-1, 0, 1]),
  categories: z.array(z.string()),
}).meta({ id: "Analysis" });

/** The outcome of one of several: a result or an error. Few client generators could read it as alternatives. */
export const OUTCOME = z.object({
  result: ANALYSIS.optional(),
  error: z.object({ message: z.string(), code: z.int() }).optional(),
});

/** An analysis as callers see it. */
export function analysisJson(analysis: Analysis): z.input<typeof ANALYSIS> {
  const { contentType, transportType, contentId, infohash, itemUrl, title, isLive, categories } = analysis;
  return {
    content_type: contentType,
    transport_type: transportType,
    content_id: contentId,
    infohash,
    item_url: itemUrl,
    title,
    is_live: isLive,
    categories: [...categories],
  };
}

/** The analysis, or the error that the document gives for a text that names nothing. */
function analysisOf(outcome: Outcome | undefined): Analysis {
  if (outcome === undefined || "error" in outcome) throw outcome?.error;
  if (outcome.analysis === null) throw new ApiError(API_CODES.documented, "unknown protocol");
  return outcome.analysis;
}

/** The methods that report what a text names. */
export const ANALYZE_METHODS: readonly Method[] = [
  defineMethod({
    name: "analyze_content",
    summary: "What an id, a magnet link, a URI or an address names: torrents, broadcasts, HLS, media files and lists.",
    public: true,
    remote: true,
    params: z.object({
      query: QUERY.describe("An id, a magnet link, a URI or an address"),
      title: z.string().max(1000).optional().describe("Title to answer instead of the one that is found"),
    }),
    result: ANALYSIS,
    async handle({ query, title }, call) {
      const [outcome] = await call.parts.analyzer.analyze([query], call);
      const analysis = analysisOf(outcome);
      return analysisJson(title ? { ...analysis, title } : analysis);
    },
  }),
  defineMethod({
    name: "analyze_content_multi",
    summary: "analyze_content for each query; the elements stand in the order of the queries.",
    public: true,
    remote: true,
    params: z.object({ query: z.array(QUERY).min(1).max(MAX_QUERIES).describe("Repeated: one query each") }),
    result: z.array(OUTCOME),
    async handle({ query }, call) {
      return (await call.parts.analyzer.analyze(query, call)).map((outcome) => {
        try {
          return { result: analysisJson(analysisOf(outcome)) };
        } catch (error) {
          const { message, code } = toApiError(error);
          return { error: { message, code } };
        }
      });
    },
  }),
];

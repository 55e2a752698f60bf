/** What a pasted text names: `analyze_content` and `analyze_content_multi` of section 4.4, section 2.7. */
import { z } from "zod";
import { readContentQuery } from "../../../transport/query.ts";
import { hasCode } from "../../../errors.ts";
import { parseMagnet } from "../../../transport/magnet.ts";
import type { Metainfo } from "../../../transport/types.ts";
import { API_CODES, ApiError, toApiError } from "../codes.ts";
import { type ApiCall, defineMethod, type Method } from "../method.ts";
import { HEX_40 } from "../schemas.ts";

/** Queries of one call. */
const MAX_QUERIES = 200;
/** Of those, analysed at once. */
const PARALLEL = 8;

const QUERY = z.string().max(65_536);
const ANALYSIS = z.object({
  content_type: z.enum(["transport_file", "hls", "hls_vode", "direct_content", "direct_stream", "playlist"]),
  transport_type: z.enum(["bt", "hls"]),
  content_id: HEX_40.nullable(),
  infohash: HEX_40.nullable(),
  item_url: z.string().nullable(),
  title: z.string(),
  is_live: z.literal([-1, 0, 1]),
  categories: z.array(z.string()),
});
type Analysis = z.output<typeof ANALYSIS>;

const unknownProtocol = () => new ApiError(API_CODES.documented, "unknown protocol");

/** What is known of a torrent; `metainfo` null: it was never seen, and asking peers for it is not worth the wait. */
async function describe(
  call: ApiCall,
  metainfo: Metainfo | null,
  otherwise: { title: string; contentId?: string; infohash?: string; url?: string },
): Promise<Analysis> {
  return {
    content_type: "transport_file",
    transport_type: "bt",
    content_id: otherwise.contentId ?? (metainfo === null ? null : await call.parts.content.contentId(metainfo)),
    infohash: metainfo?.infohashHex ?? otherwise.infohash ?? null,
    item_url: otherwise.url ?? null,
    title: metainfo?.name ?? otherwise.title,
    is_live: metainfo === null ? -1 : 0,
    categories: [],
  };
}

async function analyze(text: string, call: ApiCall): Promise<Analysis> {
  const query = readContentQuery(text);
  const { content } = call.parts;
  switch (query?.kind) {
    case undefined:
      throw unknownProtocol();
    case "content_id":
      return await describe(call, await content.known(query.id), { title: query.id, contentId: query.id });
    case "infohash":
      return await describe(call, await content.known(query.id), { title: query.id, infohash: query.id });
    case "magnet": {
      const { infohashHex, name } = parseMagnet(query.magnet);
      const title = name ?? infohashHex;
      return await describe(call, await content.known(infohashHex), {
        title,
        infohash: infohashHex,
        url: query.magnet,
      });
    }
    case "url": {
      const { url } = query;
      const metainfo = await content.find({ kind: "url", url }, call).catch((error) => {
        // It answers, but not with a transport file.
        throw hasCode(error, "bad_transport_file") || hasCode(error, "too_large") ? unknownProtocol() : error;
      });
      return await describe(call, metainfo, { title: url, url });
    }
  }
}

/** See the module. */
export const ANALYZE_METHODS: readonly Method[] = [
  defineMethod({
    name: "analyze_content",
    summary: "What an id, a magnet link, a URI or the URL of a transport file names.",
    public: true,
    remote: true,
    params: z.object({
      query: QUERY,
      title: z.string().max(1000).optional().describe("Title to answer instead of the one that is found"),
    }),
    result: ANALYSIS,
    async handle({ query, title }, call) {
      const analysis = await analyze(query, call);
      return title ? { ...analysis, title } : analysis;
    },
  }),
  defineMethod({
    name: "analyze_content_multi",
    summary: "analyze_content for each query; the elements stand in the order of the queries.",
    public: true,
    remote: true,
    params: z.object({ query: z.array(QUERY).min(1).max(MAX_QUERIES) }),
    result: z.array(z.union([
      z.object({ result: ANALYSIS }),
      z.object({ error: z.object({ message: z.string(), code: z.int() }) }),
    ])),
    async handle({ query }, call) {
      const answers: ({ result: Analysis } | { error: { message: string; code: number } })[] = [];
      for (let at = 0; at < query.length; at += PARALLEL) {
        answers.push(
          ...await Promise.all(
            query.slice(at, at + PARALLEL).map(async (text) => {
              try {
                return { result: await analyze(text, call) };
              } catch (error) {
                const { message, code } = toApiError(error);
                return { error: { message, code } };
              }
            }),
          ),
        );
      }
      return answers;
    },
  }),
];

/** What a pasted text names: `analyze_content` of section 4.4, section 2.7 of the HTTP API. */
import { deadline } from "../../bytes/deadline.ts";
import { forEachLimited } from "../../bytes/limited.ts";
import { abortError } from "../../errors.ts";
import type { AnyMetainfo } from "../../metainfo/live.ts";
import { parseMagnet } from "../../metainfo/magnet.ts";
import { readMutableMagnet } from "../../metainfo/mutable-magnet.ts";
import { type ContentQuery, readContentQuery } from "../../metainfo/query.ts";
import type { MetainfoFinder } from "../metainfo.ts";
import type { ResolveContext } from "../resolve.ts";
import type { StreamSelector } from "../selector.ts";
import { torrent, wrapped } from "./describe.ts";
import { inspectUrl } from "./inspect-url.ts";
import type { Analysis, AnalyzerParts, Inspection, Outcome } from "./analysis.ts";

/** Finds out what pasted texts name. Made by `createAnalyzer`. */
export interface Analyzer {
  /** Analyses each query; the results are in the order of the queries. Rejects only when the caller gave up. */
  analyze(queries: readonly string[], context: ResolveContext): Promise<readonly Outcome[]>;
  /**
   * Analyses the content of `url`; null when it is no content.
   *
   * @throws `invalid_argument`, `denied`, `not_found`, `too_large`, `timeout`, `protocol_violation`,
   * `connection_failed`, or the signal's reason: as `guardedOpen`; and for failure statuses
   */
  inspect(url: string, context: ResolveContext): Promise<Inspection | null>;
  /** The analysis of a torrent or broadcast whose metadata is known; `url` is where it came from. */
  describe(metainfo: AnyMetainfo, url: string | null): Promise<Analysis>;
}

/** Queries analysed at once. */
const PARALLEL = 8;
/** See `Analyzer`. */
export function createAnalyzer(parts: AnalyzerParts): Analyzer {
  return {
    inspect: (url, context) => inspectUrl(parts, url, context),
    describe: (metainfo, url) => torrent(parts.content, metainfo, { title: metainfo.name, itemUrl: url }),
    async analyze(queries, context) {
      const search = deadline(parts.ports.clock, parts.searchTimeoutMs, context.signal);
      const outcomes: Outcome[] = [];
      try {
        await forEachLimited(queries.entries(), PARALLEL, async ([i, text]) => {
          try {
            const query = readContentQuery(text);
            outcomes[i] = { analysis: query === null ? null : await analyzeOne(parts, query, context, search.signal) };
          } catch (error) {
            if (context.signal.aborted) throw abortError(context.signal);
            outcomes[i] = { error };
          }
        });
      } finally {
        search.cancel();
      }
      return outcomes;
    },
  };
}

async function analyzeOne(
  parts: AnalyzerParts,
  query: ContentQuery,
  context: ResolveContext,
  search: AbortSignal,
): Promise<Analysis | null> {
  const ask = (selector: StreamSelector) => searched(parts.content, selector, context, search);
  switch (query.kind) {
    case "content_id": {
      const wrapper = await parts.wrappers.byContentId(query.id) ?? await parts.wrappers.byInfohash(query.id);
      if (wrapper !== null) return wrapped(wrapper, wrapper.url);
      const found = await ask({ kind: "content_id", contentId: query.id });
      return await torrent(parts.content, found, { title: query.id, contentId: query.id });
    }
    case "infohash": {
      const wrapper = await parts.wrappers.byInfohash(query.id);
      if (wrapper !== null) return wrapped(wrapper, wrapper.url);
      const found = await ask({ kind: "infohash", infohash: query.id });
      return await torrent(parts.content, found, { title: query.id, infohash: query.id });
    }
    case "magnet": {
      const named = readMutableMagnet(query.magnet) === null ? parseMagnet(query.magnet) : null;
      return await torrent(parts.content, await ask({ kind: "magnet", magnet: query.magnet }), {
        title: named?.name ?? named?.infohashHex ?? query.magnet,
        infohash: named?.infohashHex ?? null,
        itemUrl: query.magnet,
      });
    }
    case "url":
      return (await inspectUrl(parts, query.url, context))?.analysis ?? null;
  }
}

/** The torrent that `selector` names; null when no peer sent it in time, which is no failure: the id alone is a result. */
async function searched(
  content: MetainfoFinder,
  selector: StreamSelector,
  context: ResolveContext,
  signal: AbortSignal,
): Promise<AnyMetainfo | null> {
  try {
    return await content.find(selector, { ...context, signal });
  } catch {
    return null;
  }
}

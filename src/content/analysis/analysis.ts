/** Results of analysis: section 2.7 of the HTTP API, and the facts that they are made from. */
import type { AnyMetainfo } from "../../metainfo/live.ts";
import type { Wrapper } from "../../metainfo/wrapper.ts";
import type { FetchPorts } from "../fetch-guard.ts";
import type { MetainfoFinder } from "../metainfo.ts";
import type { TransportCache } from "../transport-cache.ts";

/** Section 2.7, whose `transport_type` has two values: `hls` stands for everything that comes by HTTP. */
export interface Analysis {
  readonly contentType: "transport_file" | "hls" | "hls_vode" | "direct_content" | "direct_stream" | "playlist";
  readonly transportType: "bt" | "hls";
  readonly contentId: string | null;
  readonly infohash: string | null;
  readonly itemUrl: string | null;
  readonly title: string;
  /** 0 recorded, 1 live, -1 unknown. */
  readonly isLive: -1 | 0 | 1;
  readonly categories: readonly string[];
}

/** The result of one query; null: it names nothing that is known here. */
export type Outcome = { readonly analysis: Analysis | null } | { readonly error: unknown };

/** The content of an address. */
export interface Inspection {
  readonly analysis: Analysis;
  /** The torrent or broadcast; null for everything else. */
  readonly metainfo: AnyMetainfo | null;
  /** The wrapper; null for everything else. */
  readonly wrapper: Wrapper | null;
  /** MIME type of the content. */
  readonly mime: string;
  /** null when it has no size, or states none. */
  readonly sizeBytes: number | null;
  /** Names of the entries of a list, in their order; empty for everything else. */
  readonly entries: readonly string[];
}

/** Summary of an M3U list. */
export interface ListSummary {
  /** Names of its entries, in their order, as many as are reported. */
  readonly entries: readonly string[];
  /** Names of its groups, each once, in their order. */
  readonly categories: readonly string[];
}

/** What the analyzer is made of. */
export interface AnalyzerParts {
  readonly ports: FetchPorts;
  readonly content: MetainfoFinder;
  readonly wrappers: Pick<TransportCache<Wrapper>, "byInfohash" | "byContentId">;
  /** Also lets callers elsewhere name private addresses. */
  readonly allowPrivateFetch: boolean;
  /** As in `ResolverParts`. */
  readonly isFromPublic: (address: string) => Promise<boolean>;
  /** Reads as much of an M3U list as it needs, packed unless `isUnpacked`; null when it is none. */
  readonly readList: (
    body: ReadableStream<Uint8Array>,
    url: string,
    signal: AbortSignal,
    isUnpacked: boolean,
  ) => Promise<ListSummary | null>;
  /** Deadline for asking peers about unknown ids, for all queries of one call together. */
  readonly searchTimeoutMs: number;
}

/** The files of content: `get_media_files` of section 4.4, section 2.6 of the HTTP API. */
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import { type AnyMetainfo, encodeAnyMetainfo, isLive } from "../metainfo/live.ts";
import { createWrapper, encodeWrapper, isWrapperFile, parseWrapper, type Wrapper } from "../metainfo/wrapper.ts";
import type { WrapperCache } from "./wrapper-cache.ts";
import type { Analyzer } from "./analysis/analyzer.ts";
import type { Analysis, Inspection } from "./analysis/analysis.ts";
import { chooseFile, looksPlayable, mimeTypeOf } from "./file-choice.ts";
import type { MetainfoFinder } from "./metainfo.ts";
import type { ResolveContext } from "./resolve.ts";
import type { StreamSelector } from "./selector.ts";

/** One file of the response. */
export interface MediaFile {
  /** As `_idx` of playback. */
  readonly index: number;
  readonly filename: string;
  readonly mime: string;
  /** 0 when it has no end, or no known one. */
  readonly sizeBytes: number;
}

/** What a selector names. */
export interface MediaFiles {
  readonly infohash: string;
  /** SHA-256 of a torrent of version 2 or of both versions, 64 hexadecimal digits; absent of others. */
  readonly infohashV2?: string;
  readonly name: string;
  readonly isLive: boolean;
  /** `hls` is everything that comes by HTTP. */
  readonly transportType: "bt" | "hls" | "wrapper";
  /** Under which the transport file is kept; null when it is not. */
  readonly cacheKey: string | null;
  readonly files: readonly MediaFile[];
  /** The transport file: a torrent's, a broadcast's, or a wrapper's. */
  readonly transportFile: Uint8Array;
  /** null unless it was requested. */
  readonly analysis: Analysis | null;
}

/** Options besides the selector. */
export interface MediaFilesOptions {
  /** Returns the content of a wrapper instead of the wrapper. */
  readonly expandWrapper: boolean;
  /** Wraps an address that leads to anything but a transport file, and keeps the wrapper: its ids are known from then on. */
  readonly createWrappers: boolean;
  readonly analyze: boolean;
}

/** What the finder needs. */
export interface MediaFinderParts {
  readonly content: MetainfoFinder;
  readonly analyzer: Pick<Analyzer, "inspect" | "describe">;
  readonly wrappers: WrapperCache;
}

/** Lists the media files behind a selector. Made by `createMediaFinder`. */
export interface MediaFinder {
  /**
   * The files behind a selector. Rejects as `MetainfoFinder.find` and `Analyzer.inspect`, and with `bad_transport_file`
   * for an address that leads to no content.
   */
  find(selector: StreamSelector, options: MediaFilesOptions, context: ResolveContext): Promise<MediaFiles>;
  /** The content id behind a selector. Rejects as `find`; an address that is not wrapped has none. */
  contentId(selector: StreamSelector, context: ResolveContext): Promise<string>;
}

/** The content of a selector. */
type Located =
  | { readonly kind: "metainfo"; readonly metainfo: AnyMetainfo; readonly url: string | null }
  | { readonly kind: "wrapper"; readonly wrapper: Wrapper }
  | { readonly kind: "address"; readonly inspection: Inspection; readonly url: string };

/** See `MediaFinder`. */
export function createMediaFinder(parts: MediaFinderParts): MediaFinder {
  return {
    async find(selector, options, context) {
      const located = await locate(parts, selector, context);
      switch (located.kind) {
        case "metainfo":
          return await fromMetainfo(parts, located.metainfo, options.analyze ? { url: located.url } : null);
        case "wrapper":
          return await fromWrapper(parts, located.wrapper, options, context);
        case "address":
          return await fromAddress(parts, located, options, context);
      }
    },
    async contentId(selector, context) {
      const located = await locate(parts, selector, context);
      if (located.kind === "metainfo") return await parts.content.contentId(located.metainfo);
      if (located.kind === "wrapper") return await parts.wrappers.keep(located.wrapper, context.callerIsLocal);
      throw noTransportFile();
    },
  };
}

function noTransportFile(): MillraceError {
  return new MillraceError("bad_transport_file", "bad transport file: the address leads to something else");
}

async function locate(
  { content, analyzer, wrappers }: MediaFinderParts,
  selector: StreamSelector,
  context: ResolveContext,
): Promise<Located> {
  switch (selector.kind) {
    case "transport_file":
      if (isWrapperFile(selector.bytes)) return { kind: "wrapper", wrapper: await parseWrapper(selector.bytes) };
      break;
    case "infohash": {
      const wrapper = await wrappers.byInfohash(selector.infohash);
      if (wrapper !== null) return { kind: "wrapper", wrapper };
      break;
    }
    case "content_id": {
      const { contentId } = selector;
      const wrapper = await wrappers.byContentId(contentId) ?? await wrappers.byInfohash(contentId);
      if (wrapper !== null) return { kind: "wrapper", wrapper };
      break;
    }
    case "url": {
      if (selector.url.startsWith("magnet:")) break;
      const { url } = selector;
      const inspection = await analyzer.inspect(url, context);
      if (inspection === null) throw noTransportFile();
      if (inspection.wrapper !== null) return { kind: "wrapper", wrapper: inspection.wrapper };
      if (inspection.metainfo === null) return { kind: "address", inspection, url };
      return { kind: "metainfo", metainfo: inspection.metainfo, url };
    }
  }
  return { kind: "metainfo", metainfo: await content.find(selector, context), url: null };
}

async function fromMetainfo(
  { content, analyzer }: MediaFinderParts,
  metainfo: AnyMetainfo,
  analyze: { readonly url: string | null } | null,
): Promise<MediaFiles> {
  return {
    infohash: metainfo.infohashHex,
    ...(isLive(metainfo) || metainfo.infohashV2 === undefined ? {} : { infohashV2: toHex(metainfo.infohashV2) }),
    name: metainfo.name,
    isLive: isLive(metainfo),
    transportType: "bt",
    cacheKey: await content.known(metainfo.infohashHex) === null ? null : metainfo.infohashHex,
    files: torrentFiles(metainfo),
    transportFile: encodeAnyMetainfo(metainfo),
    analysis: analyze === null ? null : await analyzer.describe(metainfo, analyze.url),
  };
}

async function fromWrapper(
  { analyzer, wrappers }: MediaFinderParts,
  wrapper: Wrapper,
  { expandWrapper, createWrappers, analyze }: MediaFilesOptions,
  context: ResolveContext,
): Promise<MediaFiles> {
  if (createWrappers) await wrappers.keep(wrapper, context.callerIsLocal);
  const inspection = expandWrapper || analyze ? await analyzer.inspect(wrapper.url, context) : null;
  if (expandWrapper && inspection === null) {
    throw new MillraceError("not_found", "the wrapped address leads to no content any more");
  }
  const isKept = await wrappers.byInfohash(wrapper.infohashHex) !== null;
  return {
    ...(expandWrapper ? expanded(wrapper, inspection!) : packed(wrapper)),
    cacheKey: isKept ? wrapper.infohashHex : null,
    analysis: analyze ? inspection?.analysis ?? null : null,
  };
}

async function fromAddress(
  { wrappers }: MediaFinderParts,
  { inspection, url }: Located & { readonly kind: "address" },
  { expandWrapper, createWrappers, analyze }: MediaFilesOptions,
  context: ResolveContext,
): Promise<MediaFiles> {
  const { analysis, mime, sizeBytes } = inspection;
  const wrapper = await createWrapper({
    url,
    name: analysis.title,
    isLive: analysis.isLive,
    mime,
    sizeBytes: sizeBytes ?? 0,
  });
  if (createWrappers) await wrappers.keep(wrapper, context.callerIsLocal);
  return {
    ...(createWrappers && !expandWrapper ? packed(wrapper) : expanded(wrapper, inspection)),
    cacheKey: createWrappers ? wrapper.infohashHex : null,
    analysis: analyze ? analysis : null,
  };
}

type Described = Omit<MediaFiles, "cacheKey" | "analysis">;

/** The wrapper as one file. */
function packed(wrapper: Wrapper): Described {
  return {
    infohash: wrapper.infohashHex,
    name: wrapper.name,
    isLive: wrapper.isLive !== 0,
    transportType: "wrapper",
    files: [{ index: 0, filename: wrapper.name, mime: wrapper.mime, sizeBytes: wrapper.sizeBytes }],
    transportFile: encodeWrapper(wrapper),
  };
}

/** The content of the wrapper: the entries of a list, else one file. */
function expanded(wrapper: Wrapper, { analysis, mime, sizeBytes, entries, metainfo }: Inspection): Described {
  const entryFile = (filename: string, index: number) => ({
    index,
    filename,
    mime: mimeTypeOf(filename),
    sizeBytes: 0,
  });
  const whole = { index: 0, filename: analysis.title, mime, sizeBytes: sizeBytes ?? 0 };
  return {
    infohash: wrapper.infohashHex,
    name: analysis.title,
    // A playlist that does not state its end is treated as live, as players do.
    isLive: analysis.isLive !== 0,
    transportType: metainfo === null ? "hls" : "bt",
    files: metainfo !== null ? torrentFiles(metainfo) : entries.length > 0 ? entries.map(entryFile) : [whole],
    transportFile: encodeWrapper(wrapper),
  };
}

/** Files named like media; without any, the one that playback would choose. */
function torrentFiles(metainfo: AnyMetainfo): MediaFile[] {
  // A broadcast is one stream of MPEG TS without an end.
  if (isLive(metainfo)) {
    return [{ index: 0, filename: metainfo.name, mime: mimeTypeOf(`${metainfo.name}.ts`), sizeBytes: 0 }];
  }
  const media = metainfo.files.filter((file) =>
    looksPlayable(file) || (!file.padding && file.sizeBytes > 0 && /^(?:audio|video)\//.test(mimeTypeOf(file.name)))
  );
  return (media.length > 0 ? media : onlyFile(metainfo)).map(({ index, path, name, sizeBytes }) => ({
    index,
    filename: path,
    mime: mimeTypeOf(name),
    sizeBytes,
  }));
}

function onlyFile(metainfo: Parameters<typeof chooseFile>[0]) {
  try {
    return [chooseFile(metainfo, undefined)];
  } catch {
    return [];
  }
}

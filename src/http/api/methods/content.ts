/** What a torrent holds and by which ids it is known: "Content" of section 4.4. */
import * as z from "zod";
import { deadline } from "../../../bytes/deadline.ts";
import { MAX_TRANSPORT_FILE_BYTES, type ResolveContext } from "../../../content/resolve.ts";
import { withLocalFile } from "../../../content/local-file.ts";
import { selectStream, type StreamSelector } from "../../../content/selector.ts";
import { MillraceError } from "../../../errors.ts";
import { selectorOf } from "../../../playlist/export.ts";
import { type ApiCall, type Method, methodsWith } from "../method.ts";
import { HEX_40, ITEM_ID, SELECTORS } from "../schemas.ts";
import { ANALYSIS, analysisJson } from "./analyze.ts";

type Parts = "clock" | "files" | "media" | "playlist";
const defineMethod = methodsWith<Parts>();

const MEDIA_FILES = z.object({
  infohash: HEX_40,
  infohash_v2: z.string().regex(/^[0-9a-f]{64}$/).optional().describe(
    "Our addition, of torrents of BitTorrent v2 alone: the whole infohash, of which infohash is the beginning, and of hybrids: the second one",
  ),
  name: z.string(),
  type: z.enum(["live", "vod"]),
  transport_type: z.enum(["bt", "hls", "wrapper"]),
  transport_file_cache_key: z.string().nullable(),
  files: z.array(z.object({
    index: z.int(),
    filename: z.string(),
    mime: z.string().optional(),
    size: z.int().optional(),
  })),
  transport_file_data: z.string().optional(),
  analysis: ANALYSIS.nullable().optional(),
});

function toBase64(bytes: Uint8Array): string {
  let text = "";
  // In steps: an argument list has its limits.
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/** Time in which a method answers, ms: widespread clients give up after ten seconds. */
const ANSWER_MS = 8000;

/** Runs `find` within the patience of clients. A search among peers goes on after it, so that the next call may find it done. */
async function inTime<T>(call: ApiCall<Parts>, find: (context: ResolveContext) => Promise<T>): Promise<T> {
  const late = deadline(
    call.parts.clock,
    ANSWER_MS,
    call.signal,
    () => new MillraceError("timeout", "nobody has answered yet; the search goes on: ask again in a moment"),
  );
  try {
    return await find({ ...call, signal: late.signal });
  } finally {
    late.cancel();
  }
}

async function postedFile(file: File): Promise<StreamSelector> {
  return { kind: "transport_file", bytes: new Uint8Array(await file.arrayBuffer()) };
}

/** The methods that list media files and translate ids. */
export const CONTENT_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_media_files",
    summary:
      "The media files of a torrent, a broadcast or an address. A transport file may be posted as the body or as the part file.",
    public: true,
    remote: true,
    params: z.object({
      ...SELECTORS,
      url: SELECTORS.url.describe("Address of a transport file, or of HLS, media or a list"),
      file: z.file().max(MAX_TRANSPORT_FILE_BYTES).optional().describe("A transport file"),
      mode: z.enum(["brief", "full"]).default("full").describe(
        "brief: index and filename only; full: also mime and size",
      ),
      dump_transport_file: z.boolean().default(false).describe(
        "Adds transport_file_data, the transport file in base64",
      ),
      create_wrappers: z.boolean().default(false).describe(
        "For a url that leads to HLS, media or a list: gives it an infohash that is known from then on",
      ),
      expand_wrapper: z.boolean().default(false).describe("Answers what a wrapper wraps instead of the wrapper"),
      analyze_content: z.boolean().default(false).describe("Adds analysis, as analyze_content answers it"),
    }),
    result: MEDIA_FILES,
    async handle(params, call) {
      const { files } = call.parts;
      const selector = params.file === undefined
        ? await withLocalFile(files, selectStream(params), call.mayReadFiles)
        : await postedFile(params.file);
      const options = {
        expandWrapper: params.expand_wrapper,
        createWrappers: params.create_wrappers,
        analyze: params.analyze_content,
      };
      const found = await inTime(call, (context) => call.parts.media.find(selector, options, context));
      const isFull = params.mode === "full";
      return {
        infohash: found.infohash,
        ...(found.infohashV2 === undefined ? {} : { infohash_v2: found.infohashV2 }),
        name: found.name,
        type: found.isLive ? "live" as const : "vod" as const,
        transport_type: found.transportType,
        transport_file_cache_key: found.cacheKey,
        files: found.files.map(({ index, filename, mime, sizeBytes }) => ({
          index,
          filename,
          ...(isFull ? { mime, size: sizeBytes } : {}),
        })),
        ...(params.dump_transport_file ? { transport_file_data: toBase64(found.transportFile) } : {}),
        ...(params.analyze_content ? { analysis: found.analysis && analysisJson(found.analysis) } : {}),
      };
    },
  }),
  defineMethod({
    name: "get_content_id",
    summary: "The content id of a torrent, a broadcast, a wrapped address or an item of the playlist.",
    public: true,
    remote: true,
    params: z.object({
      playlist_item_id: ITEM_ID.optional(),
      infohash: SELECTORS.infohash,
      url: SELECTORS.url,
    }),
    result: z.object({ content_id: HEX_40 }),
    async handle({ playlist_item_id: id, ...params }, call) {
      const { media, playlist, files } = call.parts;
      if (id === undefined) {
        const selector = await withLocalFile(files, selectStream(params), call.mayReadFiles);
        return { content_id: await inTime(call, (context) => media.contentId(selector, context)) };
      }
      const item = await playlist.get(id);
      if (item.content_id !== null) return { content_id: item.content_id };
      const named = selectorOf(item.transport_type === "bt" ? item : { ...item, url: null });
      if (named === null) throw new MillraceError("not_found", `item ${id} is no torrent`);
      const selector = selectStream({ [named[0]]: named[1] });
      return { content_id: await inTime(call, (context) => media.contentId(selector, context)) };
    },
  }),
];

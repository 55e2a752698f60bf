/** What a torrent holds and by which ids it is known: "Content" of section 4.4. */
import { z } from "zod";
import { chooseFile, looksPlayable, mimeTypeOf } from "../../../content/file-choice.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../../../content/resolve.ts";
import { selectStream, type StreamSelector } from "../../../content/selector.ts";
import { MillraceError } from "../../../errors.ts";
import { encodeMetainfo } from "../../../transport/transport-file.ts";
import type { Metainfo, MetainfoFile } from "../../../transport/types.ts";
import { type ApiCall, defineMethod, type Method } from "../method.ts";
import { HEX_40 } from "../schemas.ts";

/** Longest selector: a magnet link. */
const SELECTOR = z.string().max(65_536);

const MEDIA_FILES = z.object({
  infohash: HEX_40,
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
});

/** Files named like media; without any, the one that playback would choose. */
function mediaFiles(metainfo: Metainfo): readonly MetainfoFile[] {
  const media = metainfo.files.filter((file) =>
    looksPlayable(file) || (!file.padding && file.sizeBytes > 0 && /^(?:audio|video)\//.test(mimeTypeOf(file.name)))
  );
  if (media.length > 0) return media;
  try {
    return [chooseFile(metainfo, undefined)];
  } catch {
    return [];
  }
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  // In steps: an argument list has its limits.
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

async function postedFile(file: File): Promise<StreamSelector> {
  return { kind: "transport_file", bytes: new Uint8Array(await file.arrayBuffer()) };
}

/** Also what the `file` parameter of other methods means. */
async function find(
  params: { file?: File | undefined } & Parameters<typeof selectStream>[0],
  call: ApiCall,
): Promise<Metainfo> {
  const selector = params.file === undefined ? selectStream(params) : await postedFile(params.file);
  return await call.parts.content.find(selector, call);
}

/** See the module. */
export const CONTENT_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_media_files",
    summary: "The media files of a torrent. A transport file may be posted as the body or as the part file.",
    public: true,
    remote: true,
    params: z.object({
      content_id: SELECTOR.optional(),
      infohash: SELECTOR.optional(),
      url: SELECTOR.optional(),
      magnet: SELECTOR.optional(),
      file: z.file().max(MAX_TRANSPORT_FILE_BYTES).optional(),
      mode: z.enum(["brief", "full"]).default("full").describe(
        "brief: index and filename only; full: also mime and size",
      ),
      dump_transport_file: z.boolean().default(false).describe(
        "Adds transport_file_data, the transport file in base64",
      ),
    }),
    result: MEDIA_FILES,
    async handle(params, call) {
      const metainfo = await find(params, call);
      const isFull = params.mode === "full";
      return {
        infohash: metainfo.infohashHex,
        name: metainfo.name,
        type: "vod" as const,
        transport_type: "bt" as const,
        transport_file_cache_key: await call.parts.content.known(metainfo.infohashHex) === null
          ? null
          : metainfo.infohashHex,
        files: mediaFiles(metainfo).map((file) => ({
          index: file.index,
          filename: file.path,
          ...(isFull ? { mime: mimeTypeOf(file.name), size: file.sizeBytes } : {}),
        })),
        ...(params.dump_transport_file ? { transport_file_data: toBase64(encodeMetainfo(metainfo)) } : {}),
      };
    },
  }),
  defineMethod({
    name: "get_content_id",
    summary: "The content id of a torrent.",
    public: true,
    remote: true,
    params: z.object({
      playlist_item_id: z.int().min(1).optional(),
      infohash: SELECTOR.optional(),
      url: SELECTOR.optional(),
    }),
    result: z.object({ content_id: HEX_40 }),
    async handle({ playlist_item_id: id, ...params }, call) {
      if (id === undefined) return { content_id: await call.parts.content.contentId(await find(params, call)) };
      const item = await call.parts.playlist.get(id);
      if (item.content_id !== null) return { content_id: item.content_id };
      if (item.infohash === "") throw new MillraceError("not_found", `item ${id} is no torrent`);
      return { content_id: await call.parts.content.contentId(await find({ infohash: item.infohash }, call)) };
    },
  }),
];

/** Makes a new item from the parameters of `playlist_add_item`: which content it is and what it is called. */
import { looksPlayable } from "../../../content/file-choice.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../../../content/resolve.ts";
import { selectStream } from "../../../content/selector.ts";
import { MAX_LOGO_BYTES, readLogo } from "../logo.ts";
import type { NewItem } from "../../../playlist/items.ts";
import { locateItem } from "../../../playlist/locate.ts";
import { isLive, magnetLink } from "../../../metainfo/live.ts";
import { parseMagnet } from "../../../metainfo/magnet.ts";
import * as z from "zod";
import { API_CODES, ApiError } from "../codes.ts";
import type { ApiCall } from "../method.ts";
import { jsonList } from "../params.ts";
import { SHORT_TEXT } from "../schemas.ts";

/** Most tags, and most characters of each. */
export const TAGS = jsonList(100, 100).describe("Tags, as a JSON array of texts");
/** Addresses, characters. */
const ADDRESS = z.string().max(8192).regex(/^https?:\/\/./i, "an http or https address is expected");
/** Addresses of pictures; a logo may be inline. */
export const PICTURE = z.string().max(8192).regex(/^(?:|https?:\/\/.*)$/i, "an http or https address is expected")
  .describe("Address of a picture; empty: none");
/** A picture sent along. */
export const LOGO_FILE = z.file().max(MAX_LOGO_BYTES).describe("PNG, JPEG, GIF or WebP");

/** Parameters of `playlist_add_item`; `owner` is our addition. */
export const ADD_PARAMS = z.object({
  title: SHORT_TEXT.optional().describe("Title; without it that of the content, where it is known"),
  description: z.string().max(10_000).optional().describe("Description"),
  content_id: z.string().max(100).optional().describe("Content id of the stream: 40 hexadecimal digits"),
  id: z.string().max(100).optional().describe("The same as content_id (deprecated)"),
  infohash: z.string().max(100).optional().describe("Infohash of the stream: 40 hexadecimal digits"),
  magnet: z.string().max(65_536).optional().describe("Magnet link of the stream: keeps its trackers and peers"),
  url: ADDRESS.optional().describe("Address of a transport file"),
  file_index: z.int().min(0).max(9_999_999).optional().describe(
    "File of the torrent, as _idx of playback; without it playback chooses one",
  ),
  file: z.file().max(MAX_TRANSPORT_FILE_BYTES).optional().describe("A transport file"),
  logo_file: LOGO_FILE.optional(),
  use_media_groups: z.boolean().optional().describe("Takes over favourite and enabled from items of the same channel"),
  auto_search: z.boolean().optional().describe("Content is searched for by title; the item may come without any"),
  is_live: z.int().min(-1).max(1).optional().describe("1: a broadcast; 0: a recording; -1: not known"),
  hls_manifest_url: ADDRESS.optional().describe("Address of an HLS playlist"),
  dash_manifest_url: ADDRESS.optional().describe("Address of a DASH manifest"),
  video_url: ADDRESS.optional().describe("Address of a media file or an endless stream"),
  category: SHORT_TEXT.optional().describe("Category"),
  subcategory: SHORT_TEXT.optional().describe("Subcategory"),
  tags: TAGS.optional(),
  poster: PICTURE.optional(),
  owner: SHORT_TEXT.optional().describe("Owner of the item; without one it belongs to everybody"),
});

type AddParams = z.output<typeof ADD_PARAMS>;
/** What the item plays. */
type Content = Pick<NewItem, "infohash" | "contentId" | "url" | "transportType" | "isLive" | "isMulti"> & {
  /** Name of the content, when there is one. */
  readonly name: string;
};

/** The new item. Throws `ApiError` or `MillraceError` naming the parameter at fault. */
export async function newItem(params: AddParams, call: ApiCall<"content">): Promise<NewItem> {
  const { name, ...content } = await contentOf(params, call);
  const title = params.title || name;
  if (title === "") throw new ApiError(API_CODES.missingParameter, "missing parameter: title");
  return {
    ...content,
    title: title.slice(0, 1000),
    isLive: params.is_live ?? content.isLive,
    owner: params.owner ?? "",
    description: params.description ?? "",
    poster: params.poster ?? "",
    category: params.category || null,
    subcategory: params.subcategory ?? "",
    tags: params.tags ?? [],
    fileIndex: params.file_index ?? null,
    tvgLogo: params.logo_file === undefined ? "" : await readLogo(params.logo_file),
    autoSearch: params.auto_search ?? false,
    useMediaGroups: params.use_media_groups ?? false,
  };
}

/** A transport file determines most, then ids, then addresses. With auto_search an item may wait for its content. */
async function contentOf({ id, ...given }: AddParams, call: ApiCall<"content">): Promise<Content> {
  const params = { ...given, content_id: given.content_id || id };
  const { content } = call.parts;
  const { magnet, url } = params;
  if (params.file !== undefined || params.content_id || params.infohash || magnet || url) {
    const selector = params.file === undefined
      ? selectStream(params)
      : { kind: "transport_file" as const, bytes: new Uint8Array(await params.file.arrayBuffer()) };
    // Throws for a magnet that names nothing.
    const linked = magnet ? parseMagnet(magnet).infohashHex : "";
    const ids = {
      contentId: selector.kind === "content_id" ? selector.contentId : null,
      infohash: selector.kind === "infohash"
        ? selector.infohash
        : params.infohash
        ? infohashOf(params.infohash)
        : linked,
    };
    if (linked !== "" && linked !== ids.infohash) {
      throw new ApiError(
        API_CODES.invalidParameter,
        "invalid parameter: magnet: it names another torrent than infohash",
      );
    }
    const known = ids.contentId ?? ids.infohash;
    const metainfo = selector.kind === "transport_file"
      ? await content.find(selector, call)
      : known === ""
      ? null
      : await content.known(known);
    // A link stays beside the ids: it names trackers and peers.
    const link = magnet || url || null;
    if (metainfo === null) return { ...ids, url: link, transportType: "bt", isLive: -1, name: known || url! };
    return {
      url: link ?? (metainfo.trackers.length > 0 ? magnetLink(metainfo) : null),
      contentId: ids.contentId ?? await content.contentId(metainfo),
      infohash: metainfo.infohashHex,
      transportType: "bt",
      isLive: isLive(metainfo) ? 1 : 0,
      isMulti: !isLive(metainfo) && metainfo.files.filter(looksPlayable).length > 1,
      name: metainfo.name,
    };
  }
  const addresses = [["hls", params.hls_manifest_url], ["dash", params.dash_manifest_url], [
    null,
    params.video_url,
  ]] as const;
  for (const [told, url] of addresses) if (url) return addressed(url, told);
  if (params.auto_search === true) return { transportType: "bt", isLive: -1, name: "" };
  throw new ApiError(
    API_CODES.missingParameter,
    "missing parameter: content_id, infohash, magnet, url, file, hls_manifest_url, dash_manifest_url or video_url",
  );
}

/**
 * The same facts as for an address in a list; `told` is the type that its parameter implies, used if its form shows
 * none.
 */
function addressed(address: string, told: "hls" | "dash" | null): Content {
  const located = locateItem(address);
  return {
    url: located.url,
    contentId: located.content_id,
    infohash: located.infohash,
    transportType: told !== null && located.transport_type === "direct" ? told : located.transport_type,
    isLive: located.is_live,
    name: address,
  };
}

function infohashOf(text: string): string {
  const selector = selectStream({ infohash: text });
  return selector.kind === "infohash" ? selector.infohash : "";
}

/** Analyses of content with ids: section 2.7 of the HTTP API. */
import { contentId } from "../../metainfo/content-id.ts";
import { type AnyMetainfo, isLive } from "../../metainfo/live.ts";
import type { Wrapper } from "../../metainfo/wrapper.ts";
import type { MetainfoFinder } from "../metainfo.ts";
import type { Analysis } from "./analysis.ts";

/** What is known without the content itself. */
type Known = Partial<Analysis> & Pick<Analysis, "title">;

/** The analysis of a torrent or broadcast; with null, only from its ids. */
export async function torrent(content: MetainfoFinder, metainfo: AnyMetainfo | null, known: Known): Promise<Analysis> {
  return {
    ...NOTHING,
    ...known,
    contentType: "transport_file",
    transportType: "bt",
    ...(metainfo === null ? {} : {
      contentId: known.contentId ?? await content.contentId(metainfo),
      infohash: metainfo.infohashHex,
      title: metainfo.name,
      isLive: isLive(metainfo) ? 1 : 0,
    }),
  };
}

/** An analysis that knows nothing. */
export const NOTHING: Omit<Analysis, "contentType" | "title"> = {
  transportType: "hls",
  contentId: null,
  infohash: null,
  itemUrl: null,
  isLive: -1,
  categories: [],
};

/** An address that was given ids. */
export async function wrapped(wrapper: Wrapper, url: string): Promise<Analysis> {
  return {
    ...NOTHING,
    contentType: "transport_file",
    contentId: await contentId(wrapper),
    infohash: wrapper.infohashHex,
    itemUrl: url,
    title: wrapper.name,
    isLive: wrapper.isLive,
  };
}

/** The torrent of an item of the library, and its files. */
import { deadline } from "../../bytes/deadline.ts";
import { selectStream, type StreamSelector } from "../../content/selector.ts";
import { hasCode, MillraceError } from "../../errors.ts";
import { isLive } from "../../metainfo/live.ts";
import type { MetainfoFile } from "../../metainfo/types.ts";
import type { HttpContext, HttpParts } from "../context.ts";

/** Deadline for finding out a torrent's files, ms: clients wait some 30 s, and most torrents of a library are known. */
const FILES_MS = 10_000;

/** A torrent with the files that the item stands for: one, or all that have bytes. */
export interface ItemTorrent {
  readonly selector: StreamSelector;
  readonly mayNamePrivate: boolean;
  readonly infohashHex: string;
  readonly files: readonly MetainfoFile[];
}

/**
 * The torrent, as the caller of `c` may find it; null when the item is none, a broadcast, or comes by HTTP. Peers are asked if its description is not here. Rejects with
 * `timeout` when nobody sends it.
 */
export async function itemTorrent(c: HttpContext, parts: HttpParts, item: number): Promise<ItemTorrent | null> {
  const { api, clock } = parts;
  const member = (await api.channels.members({ item })).find(({ id }) => id === item);
  // What comes by HTTP is no torrent.
  if (member === undefined || member.selector[0] === "direct_url") return null;
  const selector = selectStream({ [member.selector[0]]: member.selector[1] });
  const late = deadline(clock, FILES_MS, c.req.raw.signal, () => {
    return new MillraceError("timeout", "nobody says which files the torrent has: try again later");
  });
  try {
    const { mayNamePrivate, fileIndex } = member;
    const callerIsLocal = mayNamePrivate || c.get("caller").isLocal;
    const metainfo = await api.content.find(selector, { callerIsLocal, signal: late.signal });
    if (isLive(metainfo)) return null;
    const files = metainfo.files.filter(({ index, padding, sizeBytes }) =>
      !padding && sizeBytes > 0 && (fileIndex === null || index === fileIndex)
    );
    return { selector, mayNamePrivate, infohashHex: metainfo.infohashHex, files };
  } catch (error) {
    // An address that leads to something other than a torrent.
    if (hasCode(error, "bad_transport_file") || hasCode(error, "unsupported_media")) return null;
    throw error;
  } finally {
    late.cancel();
  }
}

/** An item of the library as MPEG TS in the response itself, since many televisions do not follow redirects. */
import { MillraceError } from "../errors.ts";
import { startOne } from "../playback/failover.ts";
import { addressHead, channelResponse, membersAt, playbackOf } from "./channel.ts";
import type { HttpContext, HttpParts } from "./context.ts";
import { addDlnaFields } from "./dlna-fields.ts";
import { playbackUrl } from "./playback-url.ts";
import { OUTPUT_TYPES, tsResponse } from "./stream-routes.ts";

/** A time of a channel that is over: Unix seconds, and how long is asked for, s. */
export interface PastTime {
  readonly startS: number;
  readonly durationS: number;
}

/**
 * The MPEG TS of an item under this MIME type, with failover to others of its channel unless a file of its torrent is
 * named. With `past` it is what the channel sent then, as its list says where that is. Rejects as playback.
 */
export async function itemResponse(
  c: HttpContext,
  parts: HttpParts,
  { item, fileIndex }: { readonly item: number; readonly fileIndex: number | null },
  type: string,
  past?: PastTime,
): Promise<Response> {
  const all = await parts.api.channels.members({ item });
  // A file index is valid only for its own torrent, not for others of the channel.
  const own = fileIndex === null ? all : all.filter(({ id }) => id === item);
  const members = past === undefined ? own : membersAt(parts, past.startS, own, past.durationS);
  if (members.length === 0) throw new MillraceError("not_found", "the library has nothing by that name");
  const params = {
    ...(fileIndex === null ? {} : { _idx: fileIndex }),
    ...(past === undefined ? {} : { start_from: past.startS }),
  };
  const channel = playbackOf(c, parts, params, "ts", members);
  const head = addressHead(c, channel, type);
  if (head !== null) {
    addDlnaFields(c.req.raw.headers, head.headers, false);
    return head;
  }
  const { index, session } = await startOne(channel.parts, channel.sources, c.req.raw.signal);
  if (session.kind !== "live") return await tsResponse(c, session, type);
  const response = channelResponse(channel, { index, session });
  response.headers.set("content-type", type);
  addDlnaFields(c.req.raw.headers, response.headers, false);
  return c.req.raw.method === "HEAD" ? new Response(null, response) : response;
}

/** Leads to the HLS of an item, with failover to others of its channel at the start. Rejects as playback. */
export async function hlsOfItem(c: HttpContext, parts: HttpParts, item: number): Promise<Response> {
  const members = await parts.api.channels.members({ item });
  if (members.length === 0) throw new MillraceError("not_found", "the library has nothing by that name");
  const channel = playbackOf(c, parts, {}, "hls", members);
  const head = addressHead(c, channel, OUTPUT_TYPES.hls);
  if (head !== null) return head;
  const { session } = await startOne(channel.parts, channel.sources, c.req.raw.signal);
  return c.body(null, 302, { location: playbackUrl(`${c.get("caller").ownUrl}/engine`, session) });
}

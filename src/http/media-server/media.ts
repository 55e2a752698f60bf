/** Serves streams of the media server to televisions, in the response itself, since many do not follow redirects. */
import { selectStream } from "../../content/selector.ts";
import { MillraceError } from "../../errors.ts";
import { startOne } from "../../playback/failover.ts";
import { channelResponse, playbackOf } from "../channel.ts";
import type { HttpContext, HttpParts } from "../context.ts";
import { addDlnaFields } from "../dlna-fields.ts";
import { startRequest } from "../start-request.ts";
import { tsResponse } from "../stream-routes.ts";
import { MEDIA_TYPE } from "./didl.ts";

/** What an address made by `MediaLibrary` names. */
type Wanted =
  | { readonly item: number; readonly fileIndex: number | null }
  | { readonly infohashHex: string; readonly fileIndex: number | null };

/** Responds with the MPEG TS of an item of the library, or of a stream that is playing now. Rejects as playback. */
export async function mediaResponse(c: HttpContext, parts: HttpParts): Promise<Response> {
  const wanted = readName(c.req.param("name") ?? "");
  if (wanted === null) throw new MillraceError("not_found", "the library has nothing by that name");
  const leave = parts.admission.enter(c.get("caller").holder);
  try {
    return "item" in wanted ? await item(c, parts, wanted) : await playing(c, parts, wanted);
  } finally {
    leave();
  }
}

async function item(
  c: HttpContext,
  parts: HttpParts,
  { item, fileIndex }: Extract<Wanted, { item: number }>,
): Promise<Response> {
  const all = await parts.api.channels.members({ item });
  // A file index is valid only for its own torrent, not for others of the channel.
  const members = fileIndex === null ? all : all.filter(({ id }) => id === item);
  if (members.length === 0) throw new MillraceError("not_found", "the library has nothing by that name");
  const params = fileIndex === null ? {} : { _idx: fileIndex };
  const channel = playbackOf(c, parts, params, "ts", members);
  const { index, session } = await startOne(channel.parts, channel.sources, c.req.raw.signal);
  if (session.kind !== "live") return await tsResponse(c, session, MEDIA_TYPE);
  const response = channelResponse(channel, { index, session });
  response.headers.set("content-type", MEDIA_TYPE);
  addDlnaFields(c.req.raw.headers, response.headers, false);
  return c.req.raw.method === "HEAD" ? new Response(null, response) : response;
}

/** A stream that somebody is playing: other streams cannot be reached by this address. */
async function playing(
  c: HttpContext,
  parts: HttpParts,
  { infohashHex, fileIndex }: Extract<Wanted, { infohashHex: string }>,
): Promise<Response> {
  const isThere = parts.sessions.list().some((session) =>
    session.identity.infohashHex === infohashHex &&
    (session.kind === "file" ? session.file.index === fileIndex : fileIndex === null && !session.isChannel)
  );
  if (!isThere) throw new MillraceError("not_found", "nobody plays this any more");
  const params = fileIndex === null ? {} : { _idx: fileIndex };
  const facts = {
    selector: selectStream({ infohash: infohashHex }),
    output: "ts",
    mayNamePrivate: false,
    signal: c.req.raw.signal,
  } as const;
  return await tsResponse(c, await parts.sessions.start(startRequest(c, parts, params, facts)), MEDIA_TYPE);
}

function readName(name: string): Wanted | null {
  const match = /^(?:i(\d{1,15})|s([0-9a-f]{40}))(?:-(\d{1,9}))?\.ts$/.exec(name);
  if (match === null) return null;
  const [, item, infohashHex, index] = match;
  const fileIndex = index === undefined ? null : Number(index);
  return item === undefined ? { infohashHex: infohashHex!, fileIndex } : { item: Number(item), fileIndex };
}

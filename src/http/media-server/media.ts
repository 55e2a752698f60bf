/** Serves streams of the media server to televisions, in the response itself, since many do not follow redirects. */
import { selectStream } from "../../content/selector.ts";
import { MillraceError } from "../../errors.ts";
import type { HttpContext, HttpParts } from "../context.ts";
import { itemResponse } from "../item-response.ts";
import { recordingMedia } from "../recording-routes.ts";
import { startRequest } from "../start-request.ts";
import { tsResponse } from "../stream-routes.ts";
import { MEDIA_TYPE } from "./didl.ts";

/** What an address made by `MediaLibrary` names. */
type Wanted =
  | { readonly item: number; readonly fileIndex: number | null }
  | { readonly infohashHex: string; readonly fileIndex: number | null }
  | { readonly recording: string };

/** Responds with the MPEG TS of an item of the library, of a stream that is playing now, or of a recording. Rejects as playback. */
export async function mediaResponse(c: HttpContext, parts: HttpParts): Promise<Response> {
  const wanted = readName(c.req.param("name") ?? "");
  if (wanted !== null && "recording" in wanted) {
    const found = parts.api.recordings?.find(wanted.recording) ?? null;
    if (found !== null) return recordingMedia(c, found, MEDIA_TYPE);
  }
  if (wanted === null || "recording" in wanted) {
    throw new MillraceError("not_found", "the library has nothing by that name");
  }
  const leave = parts.admission.enter(c.get("caller").holder);
  try {
    return "item" in wanted ? await itemResponse(c, parts, wanted, MEDIA_TYPE) : await playing(c, parts, wanted);
  } finally {
    leave();
  }
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
  const recording = /^r([0-9a-f]{16})\.ts$/.exec(name)?.[1];
  if (recording !== undefined) return { recording };
  const match = /^(?:i(\d{1,15})|s([0-9a-f]{40}))(?:-(\d{1,9}))?\.ts$/.exec(name);
  if (match === null) return null;
  const [, item, infohashHex, index] = match;
  const fileIndex = index === undefined ? null : Number(index);
  return item === undefined ? { infohashHex: infohashHex!, fileIndex } : { item: Number(item), fileIndex };
}

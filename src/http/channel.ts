/**
 * `getstream?item=` and `?group=`: a channel of the library, whose items replace each other when one fails. Our
 * addition.
 */
import { selectStream } from "../content/selector.ts";
import { MillraceError } from "../errors.ts";
import { channelStream, type FailoverParts, type Source } from "../playback/failover.ts";
import type { LiveSession } from "../playback/live/live-session.ts";
import type { OutputKind } from "../playback/session-base.ts";
import type { ChannelMember, ChannelName } from "../playlist/channel.ts";
import type { HttpContext, HttpParts } from "./context.ts";
import type { PlaybackParams } from "./playback-schema.ts";
import { isSignedAs } from "./playlist-key.ts";
import { startRequest } from "./start-request.ts";
import { OUTPUT_TYPES } from "./stream-routes.ts";

/** A channel to be played. */
export interface ChannelPlayback {
  readonly parts: FailoverParts;
  readonly sources: readonly Source[];
}

/**
 * The sources of the channel that a start names; null when it names none. The library belongs to the user, so on other
 * machines its items need a key. Rejects with `denied`, and `not_found` when nothing of the channel can be played.
 */
export async function channelSources(
  c: HttpContext,
  parts: HttpParts,
  params: PlaybackParams,
  output: OutputKind,
): Promise<ChannelPlayback | null> {
  const { content_id, id, infohash, url, magnet, manifest_url } = params;
  // Selectors of the API document win.
  if (content_id || id || infohash || url || magnet || manifest_url) return null;
  const name = params.item !== undefined
    ? { item: params.item }
    : params.group !== undefined
    ? { group: params.group }
    : null;
  if (name === null) return null;
  const isHere = c.get("caller").isLocal;
  if (!await isSignedAs(parts.api.token, params.key, ...keyName(name)) && !isHere) {
    throw new MillraceError("denied", "items of the playlist need a key: see the API's method get_playlist_url");
  }
  const members = await parts.api.channels.members(name);
  if (members.length === 0) throw new MillraceError("not_found", "the playlist has nothing by that name to play");
  return playbackOf(c, parts, params, output, members);
}

/** `members` as sources of one playback. */
export function playbackOf(
  c: HttpContext,
  parts: HttpParts,
  params: PlaybackParams,
  output: OutputKind,
  members: readonly ChannelMember[],
): ChannelPlayback {
  const { sessions, clock, log } = parts;
  const sources = members.map((member): Source => ({
    start: async (signal) => {
      const selector = selectStream({ [member.selector[0]]: member.selector[1] });
      const { mayNamePrivate, fileIndex } = member;
      const request = startRequest(c, parts, params, { selector, output, mayNamePrivate, signal });
      return await sessions.start({ ...request, fileIndex: params._idx ?? fileIndex ?? undefined });
    },
    played: () => parts.api.channels.played(member),
  }));
  return { parts: { clock, log, startTimeoutMs: sessions.startTimeoutMs }, sources };
}

/** The MPEG TS of a channel that has begun. */
export function channelResponse(
  { parts, sources }: ChannelPlayback,
  started: { readonly index: number; readonly session: LiveSession },
): Response {
  const headers = { "content-type": OUTPUT_TYPES.ts, "cache-control": "no-store", "accept-ranges": "none" };
  return new Response(channelStream(parts, sources, started), { headers });
}

/** The text that a key of the channel signs. */
export function keyName(name: ChannelName): readonly [kind: string, value: string] {
  return "item" in name ? ["item", String(name.item)] : ["group", name.group];
}

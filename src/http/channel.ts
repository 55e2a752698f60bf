/**
 * `getstream?item=` and `?group=`: a channel of the library, whose items replace each other when one fails; and
 * `?direct_url=`, an address. Our addition.
 */
import { MillraceError } from "../errors.ts";
import { channelStream, type FailoverParts, type Source } from "../playback/failover.ts";
import type { LiveSession } from "../playback/live/live-session.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { OutputKind } from "../playback/session-base.ts";
import { catchupAddress } from "../playlist/catchup.ts";
import type { ChannelMember, ChannelName } from "../playlist/channel.ts";
import { channelStarts } from "./channel-starts.ts";
import type { HttpContext, HttpParts } from "./context.ts";
import type { PlaybackParams } from "./playback-schema.ts";
import { isSignedAs } from "./playlist-key.ts";
import { startRequest } from "./start-request.ts";
import { OUTPUT_TYPES } from "./stream-routes.ts";
import { isUser } from "./user.ts";

/** Unix seconds from here on are a time of the day, and no place in a film. */
const LEAST_UNIX_S = 1e9;
/** So much is in the window of any channel that plays, s. */
const LEAST_BACK_S = 10;
/** As much as is asked for of a channel's past, s: a long film. */
const MOST_BACK_S = 4 * 3600;

/** A channel to be played. */
export interface ChannelPlayback {
  readonly parts: FailoverParts;
  readonly sources: readonly Source[];
  /** One of the sources is an address, so it is television. */
  readonly hasAddress: boolean;
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
  if (name === null) return await addressed(c, parts, params, output);
  if (
    !await isSignedAs(parts.api.token, params.key, ...keyName(name)) &&
    !await isUser(c.get("caller"), parts.api, params.token)
  ) {
    throw new MillraceError("denied", "items of the playlist need a key: see the API's method get_playlist_url");
  }
  const members = await parts.api.channels.members(name);
  if (members.length === 0) throw new MillraceError("not_found", "the playlist has nothing by that name to play");
  return playbackOf(c, parts, params, output, earlier(parts, params, members));
}

/** `members` as they were at `start_from`, if it names such a time; `members` themselves where nobody has that. */
function earlier(
  parts: HttpParts,
  { start_from: startS }: PlaybackParams,
  members: readonly ChannelMember[],
): readonly ChannelMember[] {
  // Small numbers are seconds of a film.
  if (startS === undefined || startS < LEAST_UNIX_S || startS > parts.clock.now() / 1000 - LEAST_BACK_S) return members;
  const found = membersAt(parts, startS, members);
  return found.length === 0 ? members : found;
}

/**
 * Those of `members` whose lists say where they have what they sent from `startS` on, Unix seconds, at the addresses of that, for
 * `durationS` or a long film. All of them where the engine's own window reaches back that far.
 */
export function membersAt(
  { sessions, clock }: HttpParts,
  startS: number,
  members: readonly ChannelMember[],
  durationS: number = MOST_BACK_S,
): readonly ChannelMember[] {
  const nowS = Math.floor(clock.now() / 1000);
  const isHere = sessions.list().some((session) => {
    if (session.kind !== "live" || session.stream.source.channel === undefined) return false;
    const { stream } = session;
    const { item } = stream.source.channel!;
    return members.some(({ id }) => id === item) && (stream.window.oldestMs ?? Infinity) <= startS * 1000;
  });
  if (isHere) return members;
  const time = { startS: Math.floor(startS), durationS: Math.min(durationS, nowS - Math.floor(startS)), nowS };
  return members.flatMap((member) => {
    const [name, address] = member.selector;
    const at = name === "direct_url" ? catchupAddress(address, member.attributes, time) : null;
    return at === null ? [] : [{ ...member, selector: ["direct_url", at] as const }];
  });
}

/** The channel whose address a start names itself; null when it names none. Rejects with `denied`. */
async function addressed(
  c: HttpContext,
  parts: HttpParts,
  params: PlaybackParams,
  output: OutputKind,
): Promise<ChannelPlayback | null> {
  const { direct_url: address } = params;
  if (!address) return null;
  // Anybody else would have an open proxy.
  const isSigned = await isSignedAs(parts.api.token, params.key, "direct_url", address);
  if (!isSigned && !await isUser(c.get("caller"), parts.api, params.token)) {
    throw new MillraceError("denied", "direct_url needs the access token or a key on other machines");
  }
  const addresses = [{ address, named: address, mayNamePrivate: isSigned, item: null }];
  const selector = { kind: "channel", name: "channel", addresses } as const;
  return {
    parts: failoverParts(parts),
    sources: [{
      start: (signal) =>
        parts.sessions.start(startRequest(c, parts, params, { selector, output, mayNamePrivate: false, signal })),
      played: () => {},
    }],
    hasAddress: true,
  };
}

/** `members` as sources of one playback. */
export function playbackOf(
  c: HttpContext,
  parts: HttpParts,
  params: PlaybackParams,
  output: OutputKind,
  members: readonly ChannelMember[],
): ChannelPlayback {
  const starts = channelStarts(members);
  const sources = starts.map(({ selector, fileIndex, mayNamePrivate, memberOf }): Source => {
    let session: AnySession | null = null;
    return {
      start: async (signal) => {
        const request = startRequest(c, parts, params, { selector, output, mayNamePrivate, signal });
        const wanted = { ...request, fileIndex: params._idx ?? fileIndex ?? undefined };
        return session = await parts.sessions.start(wanted);
      },
      played: () => {
        const member = session === null ? undefined : memberOf(session);
        if (member !== undefined) parts.api.channels.played(member);
      },
    };
  });
  return {
    parts: failoverParts(parts),
    sources,
    hasAddress: starts.some(({ selector }) => selector.kind === "channel"),
  };
}

function failoverParts({ sessions, clock, log }: HttpParts): FailoverParts {
  return { clock, log, startTimeoutMs: sessions.startTimeoutMs };
}

/** The MPEG TS of a channel that has begun. */
export function channelResponse(
  { parts, sources }: ChannelPlayback,
  started: { readonly index: number; readonly session: LiveSession },
): Response {
  return new Response(channelStream(parts, sources, started), { headers: channelFields(OUTPUT_TYPES.ts) });
}

/**
 * Returns the response to HEAD for a channel that comes by HTTP; null for others. Nothing is opened for it: a player that
 * looks before it plays would have the provider's connection made twice, and some accounts have only one.
 */
export function addressHead(c: HttpContext, { hasAddress }: ChannelPlayback, type: string): Response | null {
  if (c.req.raw.method !== "HEAD" || !hasAddress) return null;
  return new Response(null, { headers: channelFields(type) });
}

function channelFields(type: string): Record<string, string> {
  return { "content-type": type, "cache-control": "no-store", "accept-ranges": "none" };
}

/** The text that a key of the channel signs. */
export function keyName(name: ChannelName): readonly [kind: string, value: string] {
  return "item" in name ? ["item", String(name.item)] : ["group", name.group];
}

/** HLS of a broadcast with a choice of sounds, our addition: the multivariant playlist, those of pictures and sounds, and their files. */
import { listSounds, soundGroups, soundInside } from "../playback/renditions.ts";
import { bytesBody, type OutputBody } from "../playback/output.ts";
import type { LiveFacts, LiveTrack } from "../playback/live/live-renditions.ts";
import type { LivePart } from "../playback/live/live-fragments.ts";
import type { LiveSession } from "../playback/live/live-session.ts";
import { type Multivariant, renderMultivariant, type VariantFacts } from "../media/hls/multivariant.ts";
import { pictureAttributes } from "../media/codec/picture-facts.ts";
import type { HttpContext } from "./context.ts";

/** Name of the pictures in addresses; sounds are `a` and their PID. */
const PICTURES = "v";
const FRAGMENTED = "playlist_output_format_live=fmp4";

/** Whether the request is for fragmented MP4. */
export function isLiveFragmented(c: HttpContext): boolean {
  return c.req.query("playlist_output_format_live") === "fmp4";
}

/**
 * The multivariant playlist of a broadcast whose media playlist is at `url`; null for other outputs than HLS, or before there is
 * anything. Rejects as `LiveSession.playlist`.
 */
export async function liveMultivariant(c: HttpContext, session: LiveSession, url: string): Promise<string | null> {
  const isFragmented = isLiveFragmented(c);
  const facts = await session.facts(isFragmented, c.req.raw.signal);
  if (facts === null) return null;
  const urlOf = (rendition: string) => `${url}?rendition=${rendition}${isFragmented ? `&${FRAGMENTED}` : ""}`;
  const { video, sounds, captions } = facts;
  if (video === null || sounds.length < 2) {
    const whole = isFragmented ? `${url}?${FRAGMENTED}` : url;
    return renderMultivariant({ ...wholeOf(facts, isFragmented), videoUrl: whole, subtitles: [], captions });
  }
  const variants = [...soundGroups(sounds)].map(([group, [sound]]) => variantOf(facts, [video, sound!], group));
  return renderMultivariant({
    videoUrl: urlOf(PICTURES),
    sounds: listSounds(sounds, ({ track }) => urlOf(`a${track.id}`)),
    subtitles: [],
    captions,
    variants,
  });
}

/** A broadcast with nothing to choose: its segments hold all of it. */
function wholeOf(facts: LiveFacts, isFragmented: boolean): Pick<Multivariant, "sounds" | "variants"> {
  const { video, sounds } = facts;
  // Listed in fragmented MP4 some players take the segments for MPEG TS, as of films.
  const inside = video === null || isFragmented ? [] : soundInside(sounds.map(({ track }) => track));
  // As of films, no sound of MPEG TS is named: browsers refuse all of a variant with one that they lack.
  const named = isFragmented ? [...video === null ? [] : [video], ...sounds.slice(0, 1)] : [];
  return { sounds: inside, variants: [variantOf(facts, named, inside[0]?.group)] };
}

function variantOf(facts: LiveFacts, named: readonly LiveTrack[], sound?: string): VariantFacts {
  const { bandwidth, averageBandwidth, video } = facts;
  const codecs = named.map((one) => one.codecs).filter((one) => one !== null);
  const { width = null, height = null } = video?.track ?? {};
  return {
    bandwidth,
    averageBandwidth,
    codecs: codecs.length === named.length ? codecs : [],
    width,
    height,
    ...video === null ? {} : { picture: pictureAttributes(video.track) },
    ...sound === undefined ? {} : { sound },
  };
}

/** What `name` of an address is of a broadcast; undefined when it is nothing. */
function partNamed(name: string): LivePart | undefined {
  if (name === PICTURES) return "pictures";
  return /^a\d{1,5}$/.test(name) ? Number(name.slice(1)) : undefined;
}

/** The playlist of the rendition of that name, with its files below `base`; null when there is none. Rejects as `LiveSession.playlist`. */
export async function liveRenditionList(
  c: HttpContext,
  session: LiveSession,
  name: string,
  base: string,
): Promise<string | null> {
  const part = partNamed(name);
  if (part === undefined) return null;
  const isFragmented = isLiveFragmented(c);
  const initUrl = (first: number) => `${base}/${name}-${first}-init.mp4`;
  const fileUrl = (n: number) => `${base}/${name}-${n}.${isFragmented ? "m4s" : "ts"}`;
  return await session.playlist(fileUrl, c.req.raw.signal, isFragmented ? initUrl : undefined, part);
}

/** A file of a rendition of a broadcast. */
export type LiveRenditionFile =
  | { readonly init: OutputBody }
  | { readonly isFragmented: boolean; readonly open: () => ReadableStream<Uint8Array> };

/** The segment or init segment of that name, as `liveRenditionList` gives it; null when there is none. */
export function liveRenditionFile(session: LiveSession, file: string): LiveRenditionFile | null {
  const match = /^(v|a\d{1,5})-(\d{1,9})(?:\.(ts|m4s)|-init\.mp4)$/.exec(file);
  const part = match === null ? undefined : partNamed(match[1]!);
  if (match === null || part === undefined || session.identity.output !== "hls") return null;
  const [, name, number, extension] = match;
  const n = Number(number);
  if (extension === undefined) {
    const init = session.initSegment(n, part);
    return init && { init: bytesBody(init, `${session.identity.infohashHex}/${name}/${n}/init`) };
  }
  const segment = session.segment(n);
  const isFragmented = extension === "m4s";
  return segment && { isFragmented, open: () => session.openSegment(segment, isFragmented, part) };
}

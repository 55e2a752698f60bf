/** The sounds of a session's film apart from its pictures: what playlists say of them, and their segments. */
import { groupFacts, type SoundRendition, type VariantFacts } from "../media/hls/multivariant.ts";
import { renderVodPlaylist } from "../media/hls/playlist.ts";
import type { Rendition, Renditions, Track } from "../media/model/types.ts";
import { bytesBody, fingerprintOf, type OutputBody } from "./output.ts";
import { distinct, renditionName } from "./rendition-names.ts";
import type { PlaybackSession } from "./session.ts";
import { skipBytes } from "./shared-output.ts";

/** Name of the pictures in addresses; sounds are `a` and the number of their track. */
const PICTURES = "v";

const nameOf = ({ track: { kind }, trackIndex }: Rendition) => kind === "video" ? PICTURES : `a${trackIndex}`;

/** The address of a rendition's playlist from its name. */
export type RenditionUrl = (name: string) => string;

/** What a multivariant playlist says of `renditions`. `bytesPerSecond`: as of `Presentation`. */
export function listRenditions(
  { video, sounds }: Renditions,
  bytesPerSecond: number | null,
  urlOf: RenditionUrl,
): {
  readonly videoUrl: string;
  readonly sounds: readonly SoundRendition[];
  readonly variants: readonly VariantFacts[];
} {
  const groups = soundGroups(sounds);
  return {
    videoUrl: urlOf(PICTURES),
    sounds: listSounds(sounds, (one) => urlOf(nameOf(one))),
    variants: [...groups].map(([group, all]) => groupFacts(video, all, group, bytesPerSecond)),
  };
}

/** A sound, and its name in `CODECS`; null: it has none. */
type Sound = Pick<Rendition, "track" | "codecs">;

/** `sounds` by their codec: players refuse a variant of which they lack one. */
export function soundGroups<T extends Sound>(sounds: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of sounds) {
    const group = one.codecs ?? one.track.codec;
    groups.set(group, [...groups.get(group) ?? [], one]);
  }
  return groups;
}

/** What a multivariant playlist says of `sounds`; `urlOf`: address of the playlist of each. */
export function listSounds<T extends Sound>(sounds: readonly T[], urlOf: (sound: T) => string): SoundRendition[] {
  const groups = soundGroups(sounds);
  return distinct(sounds.map((one): SoundRendition => {
    const group = [...groups.keys()].find((name) => groups.get(name)!.includes(one))!;
    const { track } = one;
    return {
      ...renditionName(track, "Sound"),
      channels: track.channels,
      group,
      isDefault: groups.get(group)![0] === one,
      isAutomatic: track.isCommentary !== true,
      url: urlOf(one),
    };
  }));
}

/** The sound among `tracks` that is in the segments of the pictures, named; none where there are several. */
export function soundInside(tracks: readonly Track[]): readonly SoundRendition[] {
  const sounds = tracks.filter(({ kind }) => kind === "audio");
  const [track] = sounds;
  if (track === undefined || sounds.length > 1) return [];
  const { channels } = track;
  const one = { channels, group: "sound", isDefault: true, isAutomatic: true, url: null };
  return [{ ...renditionName(track, "Sound"), ...one }];
}

async function find(session: PlaybackSession, name: string, signal: AbortSignal): Promise<Rendition | null> {
  const renditions = await session.renditions(signal);
  if (renditions === null) return null;
  return [renditions.video, ...renditions.sounds].find((one) => nameOf(one) === name) ?? null;
}

/**
 * The playlist of the rendition of that name; null when there is none. `segmentUrl` gives the address of a file of it, `fromMs`
 * is where players should begin, `isCut` as of `renderVodPlaylist`. Rejects as `PlaybackSession.renditions`.
 */
export async function renditionPlaylist(
  session: PlaybackSession,
  name: string,
  segmentUrl: (file: string) => string,
  signal: AbortSignal,
  fromMs: number,
  isCut: boolean,
): Promise<string | null> {
  const rendition = await find(session, name, signal);
  if (rendition === null) return null;
  const extension = rendition.plan.fragmented === undefined ? "ts" : "m4s";
  const fileOf = (n: number | "init") => `${name}-${n === "init" ? "init.mp4" : `${n}.${extension}`}`;
  return renderVodPlaylist(rendition.plan, (n) => segmentUrl(fileOf(n)), fromMs, isCut);
}

/** A file of a rendition. */
export interface RenditionFile extends OutputBody {
  readonly isFragmented: boolean;
}

/**
 * The segment or init segment of that name, as `renditionPlaylist` gives it; null when there is none. Rejects as
 * `PlaybackSession.renditions`.
 */
export async function renditionFile(
  session: PlaybackSession,
  file: string,
  signal: AbortSignal,
): Promise<RenditionFile | null> {
  const match = /^(v|a\d{1,4})-(?:(\d{1,9})\.(ts|m4s)|init\.mp4)$/.exec(file);
  const rendition = match === null ? null : await find(session, match[1]!, signal);
  if (match === null || rendition === null) return null;
  const [, name, number, extension] = match;
  const { plan, track } = rendition;
  const { fragmented } = plan;
  const isFragmented = fragmented !== undefined;
  const fingerprint = `${fingerprintOf(session)}/${name}-${track.codec}/${number ?? "init"}`;
  if (number === undefined) {
    return isFragmented ? { ...bytesBody(fragmented.init, fingerprint), isFragmented } : null;
  }
  const n = Number(number);
  const segment = plan.segments[n];
  if (segment === undefined || extension !== (isFragmented ? "m4s" : "ts")) return null;
  return {
    sizeBytes: plan.segmentBytes(n),
    fingerprint,
    isFragmented,
    open: (start, end) =>
      session.streamShared(
        session.hls!,
        `${name}-${n}`,
        [start, end],
        (offset, ...from) => skipBytes(plan.readSegment(n, ...from), offset),
        // The time of a film is counted once.
        name === PICTURES ? segment.durationMs / 1000 : null,
      ),
  };
}

/** Multivariant playlists and those of subtitles (RFC 8216, sections 4.3.4 and 3.5). */

import type { HlsPlan, Rendition, Track } from "../model/types.ts";
import { pictureAttributes } from "../codec/picture-facts.ts";

/** What players show of a rendition, and choose it by. */
interface Listed {
  /** Different from the names of all others of its kind. */
  readonly name: string;
  /** BCP 47; null: unknown. */
  readonly language: string | null;
  /** Values of `CHARACTERISTICS`. */
  readonly characteristics: readonly string[];
}

/** Subtitles that players offer. */
export interface SubtitleRendition extends Listed {
  /** Translates only foreign text and speech of the film ("forced"). */
  readonly isForced: boolean;
  /** Of its playlist; holds no line break. */
  readonly url: string;
}

/** A sound that players offer. */
export interface SoundRendition extends Listed {
  readonly channels: number | null;
  /** The group of its codec: one for each variant. */
  readonly group: string;
  /** The one that is heard unless the viewer chooses another; one of each group. */
  readonly isDefault: boolean;
  /** Players may choose it by the viewer's language. */
  readonly isAutomatic: boolean;
  /** Of its playlist; null: it is in the segments of the pictures. */
  readonly url: string | null;
}

/** Bit rate that players assume for a film of unknown bit rate, bits per second. */
const UNKNOWN_BANDWIDTH = 5_000_000;
/** MPEG TS on top of the media, at most. */
const OVERHEAD = 1.3;
/** Shorter segments say nothing of the bit rate: a film may end with a picture. */
const LEAST_MEASURED_MS = 500;

/** What a multivariant playlist says of a variant. */
export interface VariantFacts {
  /** Bits per second of the segment with the most, and of all of them. */
  readonly bandwidth: number;
  readonly averageBandwidth: number | null;
  /** Of each track; empty: not stated. */
  readonly codecs: readonly string[];
  readonly width: number | null;
  readonly height: number | null;
  /** Further attributes of its pictures. Absent: none. */
  readonly picture?: readonly string[];
  /** Group of its sound. Absent: none is named. */
  readonly sound?: string;
}

/** The facts of a film with this plan; `bytesPerSecond` is that of the source, null: not known. */
export function variantFacts(
  plan: HlsPlan,
  tracks: readonly Track[],
  bytesPerSecond: number | null,
): VariantFacts {
  const video = tracks.find(({ kind }) => kind === "video");
  const { width = null, height = null } = video ?? {};
  return {
    ...ratesOf(plan, () => 0) ?? rateOfSource(bytesPerSecond),
    // No sound of MPEG TS is named: browsers refuse all of a variant with one that they lack, and else show the pictures.
    codecs: plan.fragmented?.codecs ?? [],
    width,
    height,
    ...video === undefined ? {} : { picture: pictureAttributes(video) },
  };
}

/** The facts of `video` with `sounds`, which are those of one group. */
export function groupFacts(
  video: Rendition,
  sounds: readonly Rendition[],
  group: string,
  bytesPerSecond: number | null,
): VariantFacts {
  // Where the size of a sound is not known, the room of the pictures bounds both: it is that of all their source.
  const soundBytes = (n: number) => Math.max(...sounds.map(({ plan }) => plan.segmentBytes(n) ?? 0));
  const rate = ratesOf(video.plan, soundBytes) ?? rateOfSource(bytesPerSecond);
  const { codecs: picture, track: { width, height } } = video;
  const [sound] = sounds;
  const isNamed = picture !== null && sound!.codecs !== null;
  return {
    ...rate,
    codecs: isNamed ? [picture, sound!.codecs!] : [],
    width,
    height,
    picture: pictureAttributes(video.track),
    sound: group,
  };
}

type Rates = Pick<VariantFacts, "bandwidth" | "averageBandwidth">;

function rateOfSource(bytesPerSecond: number | null): Rates {
  const bandwidth = bytesPerSecond === null ? UNKNOWN_BANDWIDTH : Math.max(1, Math.ceil(bytesPerSecond * 8 * OVERHEAD));
  return { bandwidth, averageBandwidth: null };
}

/** The bit rates of `plan`, each segment with `moreBytes` beside it; null where its sizes are not known. */
function ratesOf({ segments, segmentBytes }: HlsPlan, moreBytes: (n: number) => number): Rates | null {
  const sizes = segments.map(({ index }) => segmentBytes(index));
  const durationMs = segments.reduce((sum, segment) => sum + segment.durationMs, 0);
  if (sizes.includes(null) || durationMs <= 0) return null;
  const whole = sizes.map((size, n) => size! + moreBytes(n));
  const averageBandwidth = Math.ceil(whole.reduce((sum, size) => sum + size, 0) * 8000 / durationMs);
  const rates = segments.map((segment, n) =>
    segment.durationMs < LEAST_MEASURED_MS ? 0 : Math.ceil(whole[n]! * 8000 / segment.durationMs)
  );
  return { bandwidth: rates.reduce((most, rate) => Math.max(most, rate), averageBandwidth), averageBandwidth };
}

/** What a multivariant playlist lists. */
export interface Multivariant {
  readonly videoUrl: string;
  readonly sounds: readonly SoundRendition[];
  /** Off until the viewer wants them. */
  readonly subtitles: readonly SubtitleRendition[];
  /** Captions in the pictures, by `INSTREAM-ID`. Absent: nobody knows of any. */
  readonly captions?: readonly string[];
  /** One for each group of sounds, the default one first. */
  readonly variants: readonly VariantFacts[];
}

/** The playlist as text. */
export function renderMultivariant({ videoUrl, sounds, subtitles, captions = [], variants }: Multivariant): string {
  const isNumbered = captions.some((one) => one.startsWith("SERVICE"));
  return [
    "#EXTM3U",
    // Services of CEA-708 came later (RFC 8216, 7).
    `#EXT-X-VERSION:${isNumbered ? 7 : 4}`,
    ...sounds.map((sound) =>
      mediaLine("AUDIO", sound.group, sound, [
        `DEFAULT=${yesNo(sound.isDefault)},AUTOSELECT=${yesNo(sound.isAutomatic || sound.isDefault)}`,
        ...sound.channels === null ? [] : [`CHANNELS="${sound.channels}"`],
        ...sound.url === null ? [] : [`URI="${sound.url}"`],
      ])
    ),
    ...subtitles.map((one) =>
      mediaLine("SUBTITLES", "subtitles", one, [
        "DEFAULT=NO,AUTOSELECT=NO",
        `FORCED=${yesNo(one.isForced)}`,
        `URI="${one.url}"`,
      ])
    ),
    ...captions.map((name) =>
      mediaLine("CLOSED-CAPTIONS", "captions", { name, language: null, characteristics: [] }, [
        "DEFAULT=NO,AUTOSELECT=NO",
        `INSTREAM-ID="${name}"`,
      ])
    ),
    ...variants.flatMap(({ bandwidth, averageBandwidth, codecs, width, height, picture, sound }) => [
      [
        `#EXT-X-STREAM-INF:BANDWIDTH=${bandwidth}`,
        ...averageBandwidth === null ? [] : [`AVERAGE-BANDWIDTH=${averageBandwidth}`],
        ...codecs.length === 0 ? [] : [`CODECS="${codecs.join(",")}"`],
        ...width && height ? [`RESOLUTION=${width}x${height}`] : [],
        ...picture ?? [],
        ...sound === undefined ? [] : [`AUDIO="${quotable(sound)}"`],
        ...subtitles.length > 0 ? ['SUBTITLES="subtitles"'] : [],
        ...captions.length > 0 ? ['CLOSED-CAPTIONS="captions"'] : [],
      ].join(","),
      videoUrl,
    ]),
    "",
  ].join("\n");
}

const yesNo = (value: boolean) => value ? "YES" : "NO";

function mediaLine(
  type: string,
  group: string,
  { name, language, characteristics }: Listed,
  rest: readonly string[],
): string {
  return [
    `#EXT-X-MEDIA:TYPE=${type}`,
    `GROUP-ID="${quotable(group)}"`,
    `NAME="${quotable(name)}"`,
    ...language === null ? [] : [`LANGUAGE="${quotable(language)}"`],
    ...characteristics.length === 0 ? [] : [`CHARACTERISTICS="${characteristics.join(",")}"`],
    ...rest,
  ].join(",");
}

/** The playlist of subtitles of which segment n lasts `durationsMs[n]` and is at `segmentUrl(n)`. */
export function renderSubtitlePlaylist(durationsMs: readonly number[], segmentUrl: (n: number) => string): string {
  return [
    "#EXTM3U",
    "#EXT-X-VERSION:3",
    `#EXT-X-TARGETDURATION:${Math.max(1, Math.ceil(Math.max(...durationsMs) / 1000))}`,
    "#EXT-X-MEDIA-SEQUENCE:0",
    "#EXT-X-PLAYLIST-TYPE:VOD",
    ...durationsMs.flatMap((ms, n) => [`#EXTINF:${(ms / 1000).toFixed(6)},`, segmentUrl(n)]),
    "#EXT-X-ENDLIST",
    "",
  ].join("\n");
}

/** A quoted string holds neither quotes nor line breaks (section 4.2). */
function quotable(text: string): string {
  // deno-lint-ignore no-control-regex -- those are what it must not hold
  return text.replace(/["\u0000-\u001f\u2028\u2029]/g, " ");
}

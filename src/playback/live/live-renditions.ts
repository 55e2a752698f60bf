/** What a multivariant playlist says of a broadcast: its pictures, and the sounds that players can choose from. */
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { cmafFormat } from "../../media/mux/cmaf/formats.ts";
import { describeTracks } from "../../media/mux/cmaf/live/fragments.ts";
import { codecName } from "../../media/codec/codec-name.ts";
import type { Track } from "../../media/model/types.ts";
import type { LiveSegment } from "./live-cuts.ts";
import type { LiveStream } from "./live-stream.ts";

/** A track of a broadcast, and its name in `CODECS`; null: it has none. */
export interface LiveTrack {
  readonly track: Track;
  readonly codecs: string | null;
}

/** A broadcast as its newest segments have it. */
export interface LiveFacts {
  /** Null: it is sound alone. */
  readonly video: LiveTrack | null;
  /** Those that segments can carry, the wanted one first. */
  readonly sounds: readonly LiveTrack[];
  /** Captions in the pictures, by `INSTREAM-ID`. */
  readonly captions: readonly string[];
  /** Bits per second of the segment with the most, and of all of them. */
  readonly bandwidth: number;
  readonly averageBandwidth: number;
}

/** The facts of `segments`; null where there are none. Rejects with the signal's reason. */
export async function describeLive(
  stream: LiveStream,
  segments: readonly LiveSegment[],
  audioWish: string | null,
  isFragmented: boolean,
  signal: AbortSignal,
): Promise<LiveFacts | null> {
  const newest = segments.at(-1);
  if (newest === undefined) return null;
  const tracks = stream.tracksOf(newest, audioWish);
  const { known, captions } = await describeTracks(stream.readSegment(newest, audioWish, signal), tracks, signal);
  const named = tracks.flatMap((one): LiveTrack[] => {
    const track = known.get(one.id) ?? one;
    if (!isFragmented) return [{ track, codecs: codecName(track) }];
    const format = known.has(one.id) ? cmafFormat(track) : null;
    return format === null ? [] : [{ track, codecs: format.codecs }];
  });
  const bitsOf = ({ firstPacket, limitPacket }: LiveSegment) => (limitPacket - firstPacket) * PACKET_BYTES * 8;
  const seconds = segments.reduce((sum, { durationMs }) => sum + durationMs, 0) / 1000;
  const averageBandwidth = Math.ceil(segments.reduce((sum, one) => sum + bitsOf(one), 0) / seconds);
  const rates = segments.map((one) => Math.ceil(bitsOf(one) * 1000 / one.durationMs));
  return {
    video: named.find(({ track }) => track.kind === "video") ?? null,
    sounds: named.filter(({ track }) => track.kind === "audio"),
    captions,
    bandwidth: rates.reduce((most, rate) => Math.max(most, rate), averageBandwidth),
    averageBandwidth,
  };
}

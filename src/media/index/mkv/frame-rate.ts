/** The frame rate of files that lack a DefaultDuration, as libraries in browsers write them. */
import type { ByteSource } from "../../../bytes/source.ts";
import type { MatroskaHead } from "./head.ts";
import type { MatroskaTrack } from "./tracks.ts";
import { walkBlocks } from "./walk-blocks.ts";

/** Media read for it, bytes: some of the first piece of a torrent, which holds the head. */
const READ_BYTES = 128 * 1024;
/** Blocks read for it. */
const MAX_BLOCKS = 1000;
/** Fewest pictures from which a rate is inferred. */
const LEAST_PICTURES = 16;
/** Longest distance of two pictures, times the mean: with longer ones the rate varies, and may be higher later on. */
const MOST_UNEVEN = 1.5;
/** Lowest rate that is believed, pictures per second: recordings of screens have few where nothing moves. */
const LEAST_RATE = 20;

/** Last pictures that do not count: at the end of the bytes read, pictures shown before them may be missing. */
const LAST_PICTURES = 8;

/** Mean distance of `times`; null when no rate can be inferred. */
function evenDistance(times: readonly number[]): number | null {
  const sorted = times.toSorted((a, b) => a - b).slice(0, -LAST_PICTURES);
  if (sorted.length < LEAST_PICTURES) return null;
  const mean = (sorted.at(-1)! - sorted[0]!) / (sorted.length - 1);
  return sorted.every((time, i) => i === 0 || time - sorted[i - 1]! <= MOST_UNEVEN * mean) ? mean : null;
}

/**
 * The tracks of `head`. Video tracks without a DefaultDuration get the mean distance of their pictures at the start of
 * the media, unless that start has too few pictures. Rejects as the source does.
 */
export async function withFrameRates(
  source: ByteSource,
  head: MatroskaHead,
  signal: AbortSignal,
): Promise<readonly MatroskaTrack[]> {
  const { tracks, firstClusterAt, timestampScaleNs } = head;
  const isUnknown = ({ track, defaultDurationNs }: MatroskaTrack) =>
    track.kind === "video" && defaultDurationNs === null;
  const seen = new Map(tracks.filter(isUnknown).map(({ track }) => [track.id, [] as number[]]));
  if (seen.size === 0) return tracks;
  let blocks = 0;
  const start: ByteSource = {
    sizeBytes: Math.min(source.sizeBytes, firstClusterAt + READ_BYTES),
    read: (offset, length, options) => source.read(offset, length, options),
  };
  await walkBlocks(start, firstClusterAt, signal, ({ track, time }) => {
    seen.get(track)?.push(time);
    return ++blocks < MAX_BLOCKS;
  });
  return tracks.map((track) => {
    const times = seen.get(track.track.id) ?? [];
    const measuredDurationNs = (evenDistance(times) ?? 0) * timestampScaleNs;
    return measuredDurationNs > 0 && measuredDurationNs <= 1e9 / LEAST_RATE ? { ...track, measuredDurationNs } : track;
  });
}

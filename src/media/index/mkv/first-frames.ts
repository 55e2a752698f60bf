/** Codec data that Matroska does not keep, as the first frame of a track shows it. */
import type { ByteSource } from "../../../bytes/source.ts";
import { ac3Config, eac3Config } from "../../codec/ac3-config.ts";
import { vp9ConfigFrom } from "../../codec/vpx-config.ts";
import type { Codec, Track } from "../../model/types.ts";
import { splitFrames } from "./block.ts";
import { wholeFrame } from "./encodings.ts";
import type { MatroskaHead } from "./head.ts";
import type { MatroskaTrack } from "./tracks.ts";
import { walkBlocks } from "./walk-blocks.ts";

/** Bytes of the media, and blocks, among which the first frames are looked for. */
const READ_BYTES = 1024 * 1024;
const MAX_BLOCKS = 200;

/** Bodies of the boxes in which MP4 keeps it: vpcC after version and flags, dac3, dec3. */
const CONFIGS: Readonly<Partial<Record<Codec, (frame: Uint8Array, track: Track) => Uint8Array | null>>> = {
  vp9: (picture, { width, height }) => vp9ConfigFrom(picture, width ?? 0, height ?? 0),
  ac3: ac3Config,
  eac3: eac3Config,
};

/**
 * `tracks` of `head`, those of the codecs `wanted` (VP9, AC-3, E-AC-3) with their codec data, if their first frame has it; what
 * Matroska keeps there has another form. Rejects as the source does.
 */
export async function withFirstFrames(
  source: ByteSource,
  head: MatroskaHead,
  tracks: readonly MatroskaTrack[],
  wanted: ReadonlySet<Codec>,
  signal: AbortSignal,
): Promise<readonly MatroskaTrack[]> {
  const open = new Map(tracks.filter(({ track }) => wanted.has(track.codec)).map((one) => [one.track.id, one]));
  if (open.size === 0) return tracks;
  const found = new Map<MatroskaTrack, Uint8Array | null>();
  const start: ByteSource = {
    sizeBytes: Math.min(source.sizeBytes, head.firstClusterAt + READ_BYTES),
    read: (offset, length, options) => source.read(offset, length, options),
  };
  let blocks = 0;
  await walkBlocks(start, head.firstClusterAt, signal, ({ track: number, bytes, body, end, flags }) => {
    const entry = open.get(number);
    const [frame] = entry === undefined ? [] : splitFrames(bytes, body, end, flags) ?? [];
    const whole = entry === undefined || frame === undefined ? null : wholeFrame(entry, frame);
    if (entry !== undefined && whole !== null) {
      found.set(entry, CONFIGS[entry.track.codec]?.(whole, entry.track) ?? null);
      open.delete(number);
    }
    return open.size > 0 && ++blocks < MAX_BLOCKS;
  });
  return tracks.map((entry) =>
    wanted.has(entry.track.codec)
      ? { ...entry, track: { ...entry.track, codecPrivate: found.get(entry) ?? null } }
      : entry
  );
}

/** VP9 without configuration, as WebM has it: its first picture shows profile and colours. */
import type { ByteSource } from "../../../bytes/source.ts";
import { vp9ConfigFrom } from "../../cmaf/vpx-config.ts";
import { splitFrames } from "./block.ts";
import { wholeFrame } from "./encodings.ts";
import type { MatroskaHead } from "./head.ts";
import type { MatroskaTrack } from "./tracks.ts";
import { walkBlocks } from "./walk-blocks.ts";

/** Bytes of the media, and blocks, among which the first picture is looked for. */
const READ_BYTES = 1024 * 1024;
const MAX_BLOCKS = 200;

/** `tracks` of `head`, those of VP9 with the body of a vpcC as codec data, if their first picture tells. Rejects as the source does. */
export async function withVp9Config(
  source: ByteSource,
  head: MatroskaHead,
  tracks: readonly MatroskaTrack[],
  signal: AbortSignal,
): Promise<readonly MatroskaTrack[]> {
  const open = new Map(tracks.filter(({ track }) => track.codec === "vp9").map((one) => [one.track.id, one]));
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
    const picture = entry === undefined || frame === undefined ? null : wholeFrame(entry, frame);
    if (entry !== undefined && picture !== null) {
      const { width, height } = entry.track;
      found.set(entry, vp9ConfigFrom(picture, width ?? 0, height ?? 0));
      open.delete(number);
    }
    return open.size > 0 && ++blocks < MAX_BLOCKS;
  });
  // What Matroska keeps there has another form.
  return tracks.map((entry) =>
    entry.track.codec === "vp9"
      ? { ...entry, track: { ...entry.track, codecPrivate: found.get(entry) ?? null } }
      : entry
  );
}

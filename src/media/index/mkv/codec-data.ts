/**
 * H.264 and HEVC without usable codec data: the byte stream of annex B, as browsers record it and old muxers wrote it, or
 * parameter sets in the media alone. The first pictures show what it is.
 */
import { beginsWithStartCode, unitsByLength, unitsOfByteStream } from "../../../bytes/nal-units.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { splitFrames } from "./block.ts";
import { wholeFrame } from "./encodings.ts";
import type { MatroskaHead } from "./head.ts";
import { configOf, setsIn } from "../../codec/parameter-sets.ts";
import type { MatroskaTrack } from "./tracks.ts";
import { walkBlocks } from "./walk-blocks.ts";

/** Blocks that are looked at, and bytes of the media: the first picture of each track is among them. */
const MAX_BLOCKS = 500;
const READ_BYTES = 1024 * 1024;
/** NAL units of a picture that are looked at: parameter sets come first. */
const MAX_UNITS = 64;
/** Sizes of lengths before NAL units, the usual one first. */
const LENGTH_BYTES = [4, 2, 1, 3];
/** `track` as its first picture shows it; null when that does not show it. */
export function withConfigFrom(track: MatroskaTrack, picture: Uint8Array): MatroskaTrack | null {
  const { unsure } = track;
  if (unsure === undefined) return null;
  const { codec, codecId } = unsure;
  const own = track.track.codecPrivate ?? new Uint8Array(0);
  const told = beginsWithStartCode(own) ? unitsOfByteStream(own, MAX_UNITS) : [];
  const asStream = beginsWithStartCode(picture) ? unitsOfByteStream(picture, MAX_UNITS) : null;
  const lengthBytes = asStream === null ? LENGTH_BYTES.find((size) => unitsByLength(picture, size) !== null) : 4;
  if (lengthBytes === undefined) return null;
  const inBand = setsIn(codec, asStream ?? unitsByLength(picture, lengthBytes)!);
  const outside = setsIn(codec, told);
  const sets = inBand.map((kind, i) => kind.length > 0 ? kind : outside[i]!);
  const codecPrivate = configOf(codec, sets, lengthBytes);
  if (codecPrivate === null) return null;
  return { ...track, track: { ...track.track, codec, codecId, codecPrivate, isFramed: asStream !== null } };
}

/**
 * The tracks of `head`. Those without codec data get it from their first pictures, if these have it. Rejects as the source
 * does.
 */
export async function withCodecData(
  source: ByteSource,
  head: MatroskaHead,
  signal: AbortSignal,
): Promise<readonly MatroskaTrack[]> {
  const found = new Map<number, MatroskaTrack>();
  const open = new Map(head.tracks.filter(({ unsure }) => unsure !== undefined).map((one) => [one.track.id, one]));
  if (open.size === 0) return head.tracks;
  let blocks = 0;
  const start: ByteSource = {
    sizeBytes: Math.min(source.sizeBytes, head.firstClusterAt + READ_BYTES),
    read: (offset, length, options) => source.read(offset, length, options),
  };
  await walkBlocks(start, head.firstClusterAt, signal, ({ track: number, bytes, body, end, flags }) => {
    const track = open.get(number);
    const [frame] = track === undefined ? [] : splitFrames(bytes, body, end, flags) ?? [];
    if (track !== undefined && frame !== undefined) {
      const whole = wholeFrame(track, frame);
      const known = whole === null ? null : withConfigFrom(track, whole);
      if (known !== null) {
        found.set(number, known);
        open.delete(number);
      }
    }
    return open.size > 0 && ++blocks < MAX_BLOCKS;
  });
  return head.tracks.map((track) => found.get(track.track.id) ?? track);
}

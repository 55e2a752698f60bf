/**
 * H.264 and HEVC without usable codec data: the byte stream of annex B, as browsers record it and old muxers wrote it, or
 * parameter sets in the media alone. The first pictures show what it is.
 */
import { concatBytes } from "../../../bytes/hex.ts";
import { beginsWithStartCode, unitsByLength, unitsOfByteStream } from "../../../bytes/nal-units.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { splitFrames } from "./block.ts";
import { wholeFrame } from "./encodings.ts";
import type { MatroskaHead } from "./head.ts";
import { sequenceFacts } from "./reorder.ts";
import type { MatroskaTrack } from "./tracks.ts";
import { walkBlocks } from "./walk-blocks.ts";

/** Blocks that are looked at, and bytes of the media: the first picture of each track is among them. */
const MAX_BLOCKS = 500;
const READ_BYTES = 1024 * 1024;
/** NAL units of a picture that are looked at: parameter sets come first. */
const MAX_UNITS = 64;
/** Sizes of lengths before NAL units, the usual one first. */
const LENGTH_BYTES = [4, 2, 1, 3];
/** Most parameter sets that are kept, and bytes of each. */
const MAX_SETS = 32;
const MAX_SET_BYTES = 0xffff;

/** Types of the parameter sets, in the order that a decoder needs them. */
const SET_TYPES = { h264: [7, 8], hevc: [32, 33, 34] } as const;
/** Codecs whose pictures are NAL units. */
export type NalCodec = keyof typeof SET_TYPES;

/** Type of a NAL unit. */
export const typeOf = (codec: NalCodec, unit: Uint8Array) => codec === "h264" ? unit[0]! & 31 : (unit[0]! >> 1) & 63;

/** The parameter sets among `units`, by type in the order of `SET_TYPES`. */
export function setsIn(codec: NalCodec, units: readonly Uint8Array[]): Uint8Array[][] {
  return SET_TYPES[codec].map((type) =>
    units.filter((unit) => typeOf(codec, unit) === type && unit.length >= 4 && unit.length <= MAX_SET_BYTES)
      .slice(0, MAX_SETS)
  );
}

/** Profiles of H.264 whose avcC does not say how samples are stored (ISO/IEC 14496-15, 5.3.3.1). */
const PLAIN_PROFILES: ReadonlySet<number> = new Set([66, 77, 88]);

const counted = (unit: Uint8Array) => concatBytes([Uint8Array.of(unit.length >> 8, unit.length & 0xff), unit]);

/** avcC or hvcC with these sets and lengths of this many bytes. Null when a kind is missing. */
export function configOf(codec: NalCodec, sets: readonly Uint8Array[][], lengthBytes: number): Uint8Array | null {
  if (sets.some((kind) => kind.length === 0)) return null;
  if (codec === "h264") {
    const [sps, pps] = sets as [Uint8Array[], Uint8Array[]];
    const head = Uint8Array.of(1, sps[0]![1]!, sps[0]![2]!, sps[0]![3]!, 0xfc | (lengthBytes - 1), 0xe0 | sps.length);
    const { chroma, lumaBits, chromaBits } = sequenceFacts(codec, sps[0]!);
    const form = Uint8Array.of(0xfc | chroma, 0xf8 | ((lumaBits - 8) & 7), 0xf8 | ((chromaBits - 8) & 7), 0);
    const isPlain = PLAIN_PROFILES.has(head[1]!);
    return concatBytes([
      head,
      ...sps.map(counted),
      Uint8Array.of(pps.length),
      ...pps.map(counted),
      ...isPlain ? [] : [form],
    ]);
  }
  const head = new Uint8Array(23);
  const facts = sequenceFacts(codec, sets[1]![0]!);
  head[0] = 1;
  head.set(facts.profile!, 1);
  // Segmentation and parallel decoding are not known, nor is the rate of the pictures.
  head.set(
    [0xf0, 0, 0xfc, 0xfc | facts.chroma, 0xf8 | ((facts.lumaBits - 8) & 7), 0xf8 | ((facts.chromaBits - 8) & 7)],
    13,
  );
  head[21] = (facts.layers << 3) | (facts.isNested ? 4 : 0) | (lengthBytes - 1);
  head[22] = sets.length;
  const arrays = sets.map((kind, i) =>
    concatBytes([Uint8Array.of(0x80 | SET_TYPES.hevc[i]!, 0, kind.length), ...kind.map(counted)])
  );
  return concatBytes([head, ...arrays]);
}

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

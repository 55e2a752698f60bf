/** The parameter sets of H.264 and HEVC (SPS, PPS, VPS) among NAL units, and avcC and hvcC made of them. */
import { concatBytes } from "../../bytes/hex.ts";
import { sequenceFacts } from "./sequence-facts.ts";

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

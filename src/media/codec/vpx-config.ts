/**
 * VP8 and VP9 configuration (`vpcC`, "VP Codec ISO Media File Format Binding"). Matroska has none as a rule: it is read
 * from the first picture.
 */
import { BitReader } from "./bits.ts";
import { u16 } from "../../bytes/box-writer.ts";

/** What `vpcC` says of a stream. */
export interface VpxConfig {
  readonly profile: number;
  /** Ten times the level. */
  readonly level: number;
  readonly bitDepth: number;
  /** 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4. */
  readonly chroma: number;
  readonly isFullRange: boolean;
  /** Code points of ISO/IEC 23091-2; 2: not known. */
  readonly primaries: number;
  readonly transfer: number;
  readonly matrix: number;
}

const UNKNOWN_COLOURS = { primaries: 2, transfer: 2, matrix: 2 } as const;

/** Levels of VP9: largest picture and luma samples per second. */
const LEVELS: readonly (readonly [level: number, samples: number, rate: number])[] = [
  [10, 36_864, 829_440],
  [11, 73_728, 2_764_800],
  [20, 122_880, 4_608_000],
  [21, 245_760, 9_216_000],
  [30, 552_960, 20_736_000],
  [31, 983_040, 36_864_000],
  [40, 2_228_224, 83_558_400],
  [41, 2_228_224, 160_432_128],
  [50, 8_912_896, 311_951_360],
  [51, 8_912_896, 588_251_136],
  [52, 8_912_896, 1_176_502_272],
  [60, 35_651_584, 1_176_502_272],
  [61, 35_651_584, 2_353_004_544],
];
const HIGHEST_LEVEL = 62;
/** Rate by which the level is chosen where nothing states one, pictures per second: most films have fewer. */
const LIKELY_RATE = 30;

/** Level of pictures of `width` × `height`. */
function levelOf(width: number, height: number): number {
  const samples = width * height;
  return LEVELS.find(([, most, rate]) => samples <= most && samples * LIKELY_RATE <= rate)?.[0] ?? HIGHEST_LEVEL;
}

/** Reads the body of `vpcC` after version and flags; null when it is cut off. */
export function parseVpcC(body: Uint8Array): VpxConfig | null {
  if (body.length < 6) return null;
  return {
    profile: body[0]!,
    level: body[1]!,
    bitDepth: body[2]! >> 4,
    chroma: (body[2]! >> 1) & 7,
    isFullRange: (body[2]! & 1) === 1,
    primaries: body[3]!,
    transfer: body[4]!,
    matrix: body[5]!,
  };
}

/** The body of `vpcC` after version and flags. */
export function vpcCOf(config: VpxConfig): Uint8Array {
  const { profile, level, bitDepth, chroma, isFullRange, primaries, transfer, matrix } = config;
  const depth = (bitDepth << 4) | (chroma << 1) | (isFullRange ? 1 : 0);
  return Uint8Array.from([profile, level, depth, primaries, transfer, matrix, ...u16(0)]);
}

/** `vpcC` of VP8, which has one form. */
export function vp8Config(width: number, height: number): Uint8Array {
  const level = levelOf(width, height);
  return vpcCOf({ profile: 0, level, bitDepth: 8, chroma: 1, isFullRange: false, ...UNKNOWN_COLOURS });
}

const FRAME_MARKER = 2;
const SYNC_CODE = 0x498342;
const COLOUR_SRGB = 7;
/** Code points of the colour spaces in a picture's header (VP9 bitstream, 7.2.2) that are the same in all three. */
const COLOURS: Readonly<Record<number, Pick<VpxConfig, "primaries" | "transfer" | "matrix">>> = {
  2: { primaries: 1, transfer: 1, matrix: 1 },
  3: { primaries: 6, transfer: 6, matrix: 6 },
  4: { primaries: 7, transfer: 7, matrix: 7 },
};

/** `vpcC` of VP9 from its first picture (VP9 bitstream, 6.2); null when that is no random access point. */
export function vp9ConfigFrom(picture: Uint8Array, width: number, height: number): Uint8Array | null {
  const bits = new BitReader(picture.subarray(0, 16));
  if (bits.read(2) !== FRAME_MARKER) return null;
  const profile = bits.read(1) + 2 * bits.read(1);
  if (profile === 3) bits.read(1);
  const showsExisting = bits.read(1) === 1;
  const isInter = bits.read(1) === 1;
  bits.read(2);
  if (showsExisting || isInter || bits.read(24) !== SYNC_CODE) return null;
  const bitDepth = profile < 2 ? 8 : bits.read(1) === 1 ? 12 : 10;
  const space = bits.read(3);
  const isFullRange = space === COLOUR_SRGB || bits.read(1) === 1;
  let chroma = space === COLOUR_SRGB ? 3 : 1;
  if ((profile & 1) === 1 && space !== COLOUR_SRGB) {
    const isHalfWide = bits.read(1) === 1;
    chroma = isHalfWide ? 2 : 3;
  }
  if (bits.exhausted) return null;
  const level = levelOf(width, height);
  return vpcCOf({ profile, level, bitDepth, chroma, isFullRange, ...COLOURS[space] ?? UNKNOWN_COLOURS });
}

/** What the parameter sets of pictures say: how many may be decoded before one that is shown earlier, and their form. */

/** Bits of an RBSP, emulation prevention bytes removed (ISO/IEC 14496-10, 7.4.1). Reads zeros after the end. */
class BitReader {
  readonly #bytes: number[] = [];
  #at = 0;

  constructor(nal: Uint8Array, from: number) {
    for (let i = from; i < nal.length; i++) {
      const n = this.#bytes.length;
      if (nal[i] === 3 && i >= from + 2 && nal[i - 1] === 0 && nal[i - 2] === 0 && n >= 2) continue;
      this.#bytes.push(nal[i]!);
    }
  }

  bits(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++, this.#at++) {
      value = value * 2 + (((this.#bytes[this.#at >> 3] ?? 0) >> (7 - (this.#at & 7))) & 1);
    }
    return value;
  }

  /** Exp-Golomb; at most 32 leading zeros, so that garbage ends. */
  ue(): number {
    let zeros = 0;
    while (zeros < 32 && this.bits(1) === 0) zeros++;
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  se(): number {
    const code = this.ue();
    return (code & 1) === 1 ? (code + 1) / 2 : -code / 2;
  }
}

/** Largest possible picture reordering in H.264 and HEVC (size of the decoded picture buffer). */
const MAX_REORDER = 16;

/** MaxDpbMbs by level_idc (ISO/IEC 14496-10, table A-1). */
const DPB_MACROBLOCKS: Readonly<Record<number, number>> = {
  10: 396,
  11: 900,
  12: 2376,
  13: 2376,
  20: 2376,
  21: 4752,
  22: 8100,
  30: 8100,
  31: 18000,
  32: 20480,
  40: 32768,
  41: 32768,
  42: 34816,
  50: 110400,
  51: 184320,
  52: 184320,
};

const HIGH_PROFILES = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);

function skipScalingLists(bits: BitReader, count: number): void {
  for (let list = 0; list < count; list++) {
    if (bits.bits(1) === 0) continue;
    for (let i = 0, last = 8, next = 8; i < (list < 6 ? 16 : 64); i++) {
      if (next !== 0) next = (last + bits.se() + 256) & 255;
      if (next !== 0) last = next;
    }
  }
}

function skipHrd(bits: BitReader): void {
  const count = Math.min(bits.ue(), 31) + 1;
  bits.bits(8);
  for (let i = 0; i < count; i++) {
    bits.ue();
    bits.ue();
    bits.bits(1);
  }
  bits.bits(20);
}

/** max_num_reorder_frames of the VUI (14496-10, E.1.1), null when it is absent. */
function vuiReorder(bits: BitReader): number | null {
  if (bits.bits(1) === 1 && bits.bits(8) === 255) bits.bits(32);
  if (bits.bits(1) === 1) bits.bits(1);
  if (bits.bits(1) === 1) {
    bits.bits(4);
    if (bits.bits(1) === 1) bits.bits(24);
  }
  if (bits.bits(1) === 1) {
    bits.ue();
    bits.ue();
  }
  if (bits.bits(1) === 1) bits.bits(65);
  const nalHrd = bits.bits(1) === 1;
  if (nalHrd) skipHrd(bits);
  const vclHrd = bits.bits(1) === 1;
  if (vclHrd) skipHrd(bits);
  if (nalHrd || vclHrd) bits.bits(1);
  bits.bits(1);
  if (bits.bits(1) === 0) return null;
  bits.bits(1);
  for (let i = 0; i < 4; i++) bits.ue();
  return Math.min(bits.ue(), MAX_REORDER);
}

/** What a sequence parameter set says. */
export interface SequenceFacts {
  /** Reordering depth, 0–16. */
  readonly reorder: number;
  /** Size of the picture that is shown. */
  readonly width: number;
  readonly height: number;
  /** Fields of hvcC from the profile on (ISO/IEC 14496-15, 8.3.3), of HEVC alone. */
  readonly profile?: Uint8Array;
  /** `chroma_format_idc`, and bits of the samples. */
  readonly chroma: number;
  readonly lumaBits: number;
  readonly chromaBits: number;
  /** Layers of time, and whether each can be entered at any picture of it. */
  readonly layers: number;
  readonly isNested: boolean;
}

/** Samples of luma in one of chroma, across and down, by `chroma_format_idc`. */
const SUBSAMPLED = [[1, 1], [2, 2], [2, 1], [1, 1]] as const;

/** An H.264 sequence parameter set (NAL unit with header). */
function h264Facts(sps: Uint8Array): SequenceFacts {
  const profile = sps[1] ?? 0;
  const level = sps[3] ?? 0;
  const bits = new BitReader(sps, 4);
  let chroma = 1;
  let [lumaBits, chromaBits] = [8, 8];
  bits.ue();
  if (HIGH_PROFILES.has(profile)) {
    chroma = Math.min(bits.ue(), 3);
    if (chroma === 3) bits.bits(1);
    lumaBits = 8 + bits.ue();
    chromaBits = 8 + bits.ue();
    bits.bits(1);
    if (bits.bits(1) === 1) skipScalingLists(bits, chroma === 3 ? 12 : 8);
  }
  bits.ue();
  const pocType = bits.ue();
  if (pocType === 0) bits.ue();
  if (pocType === 1) {
    bits.bits(1);
    bits.se();
    bits.se();
    for (let i = Math.min(bits.ue(), 255); i > 0; i--) bits.se();
  }
  bits.ue();
  bits.bits(1);
  const widthMbs = bits.ue() + 1;
  const heightUnits = bits.ue() + 1;
  const framesOnly = bits.bits(1);
  if (framesOnly === 0) bits.bits(1);
  bits.bits(1);
  const [left, right, top, bottom] = bits.bits(1) === 1 ? [bits.ue(), bits.ue(), bits.ue(), bits.ue()] : [0, 0, 0, 0];
  const said = bits.bits(1) === 1 ? vuiReorder(bits) : null;
  const frames = Math.floor((DPB_MACROBLOCKS[level] ?? 184320) / (widthMbs * heightUnits * (2 - framesOnly)));
  const [across, down] = SUBSAMPLED[chroma]!;
  return {
    // With picture order count type 2, output order is decoding order (8.2.1.3).
    reorder: profile === 66 || pocType === 2 ? 0 : said ?? Math.min(Math.max(frames, 1), MAX_REORDER),
    width: Math.max(0, widthMbs * 16 - across * (left + right)),
    height: Math.max(0, (2 - framesOnly) * (heightUnits * 16 - down * (top + bottom))),
    chroma,
    lumaBits,
    chromaBits,
    layers: 1,
    isNested: true,
  };
}

function skipProfileTierLevel(bits: BitReader, subLayers: number): void {
  bits.bits(96);
  const present: [number, number][] = [];
  for (let i = 0; i < subLayers; i++) present.push([bits.bits(1), bits.bits(1)]);
  if (subLayers > 0) bits.bits(2 * (8 - subLayers));
  for (const [profile, level] of present) bits.bits(88 * profile + 8 * level);
}

/** Bytes of profile, tier and level. */
const PROFILE_BYTES = 12;

/** An HEVC sequence parameter set (NAL unit with header; ISO/IEC 23008-2, 7.3.2.2). */
function hevcFacts(sps: Uint8Array): SequenceFacts {
  const head = new BitReader(sps, 2);
  head.bits(8);
  const profile = Uint8Array.from({ length: PROFILE_BYTES }, () => head.bits(8));
  const bits = new BitReader(sps, 2);
  bits.bits(4);
  const subLayers = bits.bits(3);
  const isNested = bits.bits(1) === 1;
  skipProfileTierLevel(bits, subLayers);
  bits.ue();
  const chroma = Math.min(bits.ue(), 3);
  if (chroma === 3) bits.bits(1);
  const [codedWidth, codedHeight] = [bits.ue(), bits.ue()];
  const [left, right, top, bottom] = bits.bits(1) === 1 ? [bits.ue(), bits.ue(), bits.ue(), bits.ue()] : [0, 0, 0, 0];
  const [lumaBits, chromaBits] = [8 + bits.ue(), 8 + bits.ue()];
  bits.ue();
  let reorder = 0;
  for (let i = bits.bits(1) === 1 ? 0 : subLayers; i <= subLayers; i++) {
    bits.ue();
    reorder = Math.max(reorder, bits.ue());
    bits.ue();
  }
  const [across, down] = SUBSAMPLED[chroma]!;
  return {
    reorder: Math.min(reorder, MAX_REORDER),
    width: Math.max(0, codedWidth - across * (left + right)),
    height: Math.max(0, codedHeight - down * (top + bottom)),
    profile,
    chroma,
    lumaBits,
    chromaBits,
    layers: subLayers + 1,
    isNested,
  };
}

/** What the sequence parameter set `sps`, a NAL unit with its header, says; of a damaged one anything. */
export function sequenceFacts(codec: "h264" | "hevc", sps: Uint8Array): SequenceFacts {
  return codec === "h264" ? h264Facts(sps) : hevcFacts(sps);
}

/** First NAL unit of an avcC or of `type` in an hvcC (ISO/IEC 14496-15, 5.3.3 and 8.3.3); null when there is none. */
function firstSps(config: Uint8Array, hevc: boolean): Uint8Array | null {
  const u16 = (at: number) => ((config[at] ?? 0) << 8) | (config[at + 1] ?? 0);
  if (!hevc) {
    if (((config[5] ?? 0) & 31) === 0) return null;
    return config.subarray(8, 8 + u16(6));
  }
  let at = 23;
  for (let arrays = config[22] ?? 0; arrays > 0 && at + 3 <= config.length; arrays--) {
    const type = config[at]! & 63;
    let units = u16(at + 1);
    at += 3;
    for (; units > 0 && at + 2 <= config.length; units--) {
      const length = u16(at);
      if (type === 33) return config.subarray(at + 2, at + 2 + length);
      at += 2 + length;
    }
  }
  return null;
}

/** Reordering depth of a video track: pictures shown later that may precede one in decoding order, 0–16. */
export function reorderDepth(codec: string, codecPrivate: Uint8Array | null): number {
  if (codec === "mpeg2video" || codec === "mpeg1video" || codec === "mpeg4") return 1;
  if (codec !== "h264" && codec !== "hevc") return 0;
  const sps = codecPrivate === null ? null : firstSps(codecPrivate, codec === "hevc");
  if (sps === null || sps.length < 5) return MAX_REORDER;
  return sequenceFacts(codec, sps).reorder;
}

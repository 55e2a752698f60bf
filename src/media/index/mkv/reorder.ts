/** How many pictures may be decoded before one that is shown earlier: read from the parameter sets. */

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

/** Reordering depth of an H.264 sequence parameter set (NAL unit with header), 0–16. */
function h264Reorder(sps: Uint8Array): number {
  const profile = sps[1] ?? 0;
  const level = sps[3] ?? 0;
  if (profile === 66) return 0;
  const bits = new BitReader(sps, 4);
  bits.ue();
  if (HIGH_PROFILES.has(profile)) {
    const chroma = bits.ue();
    if (chroma === 3) bits.bits(1);
    bits.ue();
    bits.ue();
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
  // With picture order count type 2, output order is decoding order (8.2.1.3).
  if (pocType === 2) return 0;
  bits.ue();
  bits.bits(1);
  const widthMbs = bits.ue() + 1;
  const heightUnits = bits.ue() + 1;
  const framesOnly = bits.bits(1);
  if (framesOnly === 0) bits.bits(1);
  bits.bits(1);
  if (bits.bits(1) === 1) { for (let i = 0; i < 4; i++) bits.ue(); }
  const said = bits.bits(1) === 1 ? vuiReorder(bits) : null;
  if (said !== null) return said;
  const frames = Math.floor((DPB_MACROBLOCKS[level] ?? 184320) / (widthMbs * heightUnits * (2 - framesOnly)));
  return Math.min(Math.max(frames, 1), MAX_REORDER);
}

function skipProfileTierLevel(bits: BitReader, subLayers: number): void {
  bits.bits(96);
  const present: [number, number][] = [];
  for (let i = 0; i < subLayers; i++) present.push([bits.bits(1), bits.bits(1)]);
  if (subLayers > 0) bits.bits(2 * (8 - subLayers));
  for (const [profile, level] of present) bits.bits(88 * profile + 8 * level);
}

/** Reordering depth of an HEVC sequence parameter set (NAL unit with header; ISO/IEC 23008-2, 7.3.2.2), 0–16. */
function hevcReorder(sps: Uint8Array): number {
  const bits = new BitReader(sps, 2);
  bits.bits(4);
  const subLayers = bits.bits(3);
  bits.bits(1);
  skipProfileTierLevel(bits, subLayers);
  bits.ue();
  if (bits.ue() === 3) bits.bits(1);
  bits.ue();
  bits.ue();
  if (bits.bits(1) === 1) { for (let i = 0; i < 4; i++) bits.ue(); }
  bits.ue();
  bits.ue();
  bits.ue();
  let reorder = 0;
  for (let i = bits.bits(1) === 1 ? 0 : subLayers; i <= subLayers; i++) {
    bits.ue();
    reorder = Math.max(reorder, bits.ue());
    bits.ue();
  }
  return Math.min(reorder, MAX_REORDER);
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
  return codec === "h264" ? h264Reorder(sps) : hevcReorder(sps);
}

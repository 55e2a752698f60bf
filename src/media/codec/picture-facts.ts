/** What multivariant playlists say of pictures besides their codec and size. */
import type { DolbyVision, Track } from "../model/types.ts";

/** `VIDEO-RANGE` of the transfer characteristics that are no usual ones. */
const RANGES: Readonly<Record<number, string>> = { 16: "PQ", 18: "HLG" };
/** Brands of what other decoders show of Dolby Vision, by its compatibility. */
const BRANDS: Readonly<Record<number, string>> = { 1: "db1p", 2: "db2g", 4: "db4h" };
/** Names of Dolby Vision over the codecs that it is built on. */
const NAMES: Readonly<Partial<Record<Track["codec"], string>>> = { hevc: "dvh1", av1: "dav1" };

/** Attributes of a variant with the pictures of `track`. */
export function pictureAttributes({ codec, colours, frameRate, dolbyVision }: Track): readonly string[] {
  const range = colours === undefined ? undefined : RANGES[colours.transfer] ?? "SDR";
  const supplement = dolbyVision === undefined ? null : supplementOf(NAMES[codec], dolbyVision);
  return [
    ...supplement === null ? [] : [`SUPPLEMENTAL-CODECS="${supplement}"`],
    ...frameRate === undefined ? [] : [`FRAME-RATE=${frameRate.toFixed(3)}`],
    ...range === undefined ? [] : [`VIDEO-RANGE=${range}`],
  ];
}

function supplementOf(name: string | undefined, { profile, compatibility, config }: DolbyVision): string | null {
  const brand = BRANDS[compatibility];
  if (name === undefined || brand === undefined) return null;
  const level = ((config[2]! & 1) << 5) | (config[3]! >> 3);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${name}.${two(profile)}.${two(level)}/${brand}`;
}

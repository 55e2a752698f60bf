/** The init segment: a movie without media (ISO/IEC 14496-12, 8; CMAF, 7.3.1). */
import type { Track } from "../../model/types.ts";
import { ascii, box, fullBox, u16, u32, zeros } from "../../../bytes/box-writer.ts";
import type { CmafFormat } from "./formats.ts";

/** Units per second of all tracks: those of the index, so that no time is rounded again. */
export const TIMESCALE = 90_000;

/** A track in the output. */
export interface CmafStream extends CmafFormat {
  readonly track: Track;
  /** Index into `MediaIndex.tracks`. */
  readonly trackIndex: number;
  /** Its track_ID, from 1. */
  readonly id: number;
}

const ONE = 0x10000;
const W_ONE = 0x40000000;
/** Enabled, in the movie. */
const TRACK_FLAGS = 3;

/** Matrix that turns the picture clockwise; players know quarter turns alone. */
function matrixOf(degrees: number): number[] {
  const [a, b] = ([[1, 0], [0, 1], [-1, 0], [0, -1]] as const)[Math.round(degrees / 90) % 4]!;
  return [a * ONE, b * ONE, 0, -b * ONE, a * ONE, 0, 0, 0, W_ONE].flatMap(u32);
}

/** ISO 639-2 in fifteen bits (8.4.2); "und" for others. */
function packedLanguage(language: string | null): number[] {
  const letters = /^[a-z]{3}$/.test(language ?? "") ? language! : "und";
  const [a, b, c] = [...letters].map((letter) => letter.charCodeAt(0) - 0x60);
  return u16((a! << 10) | (b! << 5) | c!);
}

function trackBox({ track, id, entry }: CmafStream): Uint8Array {
  const isVideo = track.kind === "video";
  const size = [...u32((track.width ?? 0) * ONE), ...u32((track.height ?? 0) * ONE)];
  const header = fullBox(
    "tkhd",
    0,
    TRACK_FLAGS,
    zeros(8),
    u32(id),
    zeros(16),
    u16(0),
    u16(isVideo ? 0 : 1),
    u16(isVideo ? 0 : 0x100),
    u16(0),
    matrixOf(isVideo ? track.rotationDegrees ?? 0 : 0),
    isVideo ? size : zeros(8),
  );
  const media = fullBox("mdhd", 0, 0, zeros(8), u32(TIMESCALE), u32(0), packedLanguage(track.language), u16(0));
  const handler = fullBox("hdlr", 0, 0, zeros(4), ascii(isVideo ? "vide" : "soun"), zeros(12), zeros(1));
  const table = box(
    "stbl",
    fullBox("stsd", 0, 0, u32(1), entry),
    fullBox("stts", 0, 0, u32(0)),
    fullBox("stsc", 0, 0, u32(0)),
    fullBox("stsz", 0, 0, u32(0), u32(0)),
    fullBox("stco", 0, 0, u32(0)),
  );
  const information = box(
    "minf",
    isVideo ? fullBox("vmhd", 0, 1, zeros(8)) : fullBox("smhd", 0, 0, zeros(4)),
    box("dinf", fullBox("dref", 0, 0, u32(1), fullBox("url ", 0, 1))),
    table,
  );
  return box("trak", header, box("mdia", media, handler, information));
}

/** `ftyp` and `moov` of these streams. No edit list: some players ignore it, others misread it. */
export function initSegment(streams: readonly CmafStream[]): Uint8Array {
  const brands = ["iso6", "cmfc", "mp41"].map(ascii);
  const header = fullBox(
    "mvhd",
    0,
    0,
    zeros(8),
    u32(TIMESCALE),
    u32(0),
    u32(ONE),
    u16(0x100),
    zeros(10),
    matrixOf(0),
    zeros(24),
    u32(streams.length + 1),
  );
  const defaults = streams.map(({ id }) => fullBox("trex", 0, 0, u32(id), u32(1), zeros(12)));
  const type = box("ftyp", ascii("iso6"), u32(0), ...brands);
  const movie = box("moov", header, ...streams.map(trackBox), box("mvex", ...defaults));
  const whole = new Uint8Array(type.length + movie.length);
  whole.set(type);
  whole.set(movie, type.length);
  return whole;
}

/** Subtitles that are pictures: presentation graphics of discs (PGS), and DVB subtitles (ETSI EN 300 743). */
import { DESCRIPTOR, STREAM_TYPE } from "../../../../bytes/ts/codes.ts";
import { concatBytes } from "../../../../bytes/hex.ts";
import { descriptorLanguage } from "../../../model/language.ts";
import type { Track } from "../../../model/types.ts";
import { type ElementaryFormat, type FormatOf, passThrough } from "./format.ts";

/** private_stream_1. */
const PRIVATE_STREAM_ID = 0xbd;
/** Most bytes of a PES: its length field has 16 bits, and decoders wait for the next PES where that is 0. */
const MAX_PES_BYTES = 65_000;

/** A segment of PGS: its type, and a length of 16 bits. */
const PGS_HEAD_BYTES = 3;
/** A segment of DVB subtitles: sync byte, type, page, and a length of 16 bits. */
const DVB_HEAD_BYTES = 6;
const DVB_SYNC = 0x0f;
/** What stands before the segments of a PES, and after them: data_identifier, subtitle_stream_id; end marker. */
const DVB_BEGIN = Uint8Array.of(0x20, 0x00);
const DVB_END = Uint8Array.of(0xff);

/** subtitling_type (EN 300 468, table 26): without a ratio of its own; the same for people who hear badly. */
const DVB_NORMAL = 0x10;
const DVB_HARD_OF_HEARING = 0x20;
/** Distance of the types for people who hear badly from the others. */
const DVB_HEARING_STEP = DVB_HARD_OF_HEARING - DVB_NORMAL;
/** The page where the container names none. */
const DEFAULT_PAGE = 1;

/** Where the segment that begins at `at` ends; null when none begins there. */
type SegmentEnd = (data: Uint8Array, at: number) => number | null;

const pgsEnd: SegmentEnd = (data, at) =>
  at + PGS_HEAD_BYTES > data.length ? null : at + PGS_HEAD_BYTES + (data[at + 1]! << 8 | data[at + 2]!);

const dvbEnd: SegmentEnd = (data, at) =>
  at + DVB_HEAD_BYTES > data.length || data[at] !== DVB_SYNC
    ? null
    : at + DVB_HEAD_BYTES + (data[at + 4]! << 8 | data[at + 5]!);

/** The segments `[from, data.length)` in groups of at most `MAX_PES_BYTES`; none if one of them is damaged or too large. */
function groupsOf(data: Uint8Array, from: number, endOf: SegmentEnd): Uint8Array[] {
  const groups: Uint8Array[] = [];
  let start = from;
  for (let at = from; at < data.length;) {
    const end = endOf(data, at);
    if (end === null || end > data.length || end - at > MAX_PES_BYTES) return [];
    if (end - start > MAX_PES_BYTES) {
      groups.push(data.slice(start, at));
      start = at;
    }
    at = end;
  }
  if (start < data.length) groups.push(data.slice(start));
  return groups;
}

/** PGS, in the form of discs. */
export const pgsFormat: FormatOf = (): ElementaryFormat => ({
  ...passThrough(STREAM_TYPE.pictureSubtitles, PRIVATE_STREAM_ID, null),
  programRegistration: "HDMV",
  partsOf: (data) => groupsOf(data, 0, pgsEnd),
});

/** DVB subtitles. Matroska has neither what begins a PES nor the marker at its end. */
export const dvbSubtitleFormat: FormatOf = (track): ElementaryFormat => ({
  ...passThrough(STREAM_TYPE.privateData, PRIVATE_STREAM_ID, null),
  descriptors: subtitlingDescriptor(track),
  partsOf: (data) => {
    const groups = groupsOf(data, data[0] === DVB_BEGIN[0] ? DVB_BEGIN.length : 0, dvbEnd);
    return groups.map((group) => concatBytes([DVB_BEGIN, group, DVB_END]));
  },
});

/** The pages are those of the codec data: composition, ancillary, and the type that ffmpeg writes after them. */
function subtitlingDescriptor(track: Track): number[] {
  const told = track.codecPrivate ?? new Uint8Array(0);
  const page = (at: number) => told.length >= at + 2 ? [told[at]!, told[at + 1]!] : [0, DEFAULT_PAGE];
  const type = told[4] ?? DVB_NORMAL;
  const isForHearing = track.isForHearingImpaired === true && type >= DVB_NORMAL && type < DVB_HARD_OF_HEARING;
  return [
    ...[DESCRIPTOR.subtitling, 8, ...descriptorLanguage(track.language)],
    ...[isForHearing ? type + DVB_HEARING_STEP : type, ...page(0), ...page(2)],
  ];
}

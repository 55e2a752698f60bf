/** The movie box: tracks, their clocks and edits; sample tables are left in place for `buildTable`. */
import type { Track } from "../../model/types.ts";
import { bodyOf, type Box, boxesIn, child, descend, uint64, versionOf } from "../../../bytes/boxes.ts";
import { type Edit, readEdits } from "./edit-list.ts";
import { kindOf, readSampleEntry } from "./sample-entry.ts";

/** A track with the data its index needs. */
export interface MovieTrack {
  readonly track: Track;
  /** Units per second of its media times. */
  readonly timescale: number;
  /** Added to media times to get presentation times, seconds (14496-12, 8.6.6: empty edits minus the first media time). */
  readonly shiftS: number;
  /** The presented stretches if there are several; null: everything from the first one on, moved by `shiftS`. */
  readonly edits: readonly Edit[] | null;
  /** The only edit; null if there is none, or several. */
  readonly onlyEdit: Edit | null;
  readonly sampleTable: Box | null;
  /** Some of its access units have other codec data than `track`. */
  readonly hasOtherDescriptions: boolean;
}

/** Defaults of a track's fragments (`trex`). */
export interface FragmentDefaults {
  readonly durationUnits: number;
  readonly sizeBytes: number;
  readonly flags: number;
}

/** The movie. */
export interface Movie {
  readonly tracks: readonly MovieTrack[];
  readonly durationMs: number | null;
  /** Null when the movie is not fragmented; else by track id. */
  readonly fragmentDefaults: ReadonlyMap<number, FragmentDefaults> | null;
}

/** Most sample entries of a track to compare; programs that join files make one per file. */
const MAX_DESCRIPTIONS = 8;
/** More tracks than this are damage. */
const MAX_TRACKS = 256;

/** Reads a movie box. Missing parts leave tracks out rather than failing the file. */
export function readMovie(moov: Box): Movie {
  const header = child(moov, "mvhd");
  const { timescale, duration } = header === null ? { timescale: 0, duration: 0 } : readTimes(header, 12, 20);
  const tracks: MovieTrack[] = [];
  for (const box of boxesIn(moov.view, moov.start, moov.end)) {
    if (box.type !== "trak" || tracks.length >= MAX_TRACKS) continue;
    const track = readTrack(box, timescale);
    if (track !== null) tracks.push(track);
  }
  const extends_ = child(moov, "mvex");
  const whole = extends_ === null ? null : child(extends_, "mehd");
  const fragmentDuration = whole === null ? 0 : readDuration(whole, 4);
  const units = Math.max(duration, fragmentDuration);
  return {
    tracks,
    durationMs: timescale > 0 && units > 0 ? (units * 1000) / timescale : null,
    fragmentDefaults: extends_ === null ? null : readFragmentDefaults(extends_),
  };
}

/** Timescale and duration of `mvhd` and `mdhd`, at these offsets of the body in versions 0 and 1. */
function readTimes(box: Box, at0: number, at1: number): { timescale: number; duration: number } {
  const isLong = versionOf(box) === 1;
  const at = box.start + (isLong ? at1 : at0);
  if (at + (isLong ? 12 : 8) > box.end) return { timescale: 0, duration: 0 };
  const duration = isLong ? uint64(box.view, at + 4) : box.view.getUint32(at + 4);
  // All ones means "unknown".
  const isUnknown = duration === 0xffffffff || duration >= Number.MAX_SAFE_INTEGER;
  return { timescale: box.view.getUint32(at), duration: isUnknown ? 0 : duration };
}

function readDuration(box: Box, at: number): number {
  const isLong = versionOf(box) === 1;
  if (box.start + at + (isLong ? 8 : 4) > box.end) return 0;
  const value = isLong ? uint64(box.view, box.start + at) : box.view.getUint32(box.start + at);
  return value === 0xffffffff || value >= Number.MAX_SAFE_INTEGER ? 0 : value;
}

function readFragmentDefaults(mvex: Box): Map<number, FragmentDefaults> {
  const defaults = new Map<number, FragmentDefaults>();
  for (const box of boxesIn(mvex.view, mvex.start, mvex.end)) {
    if (box.type !== "trex" || box.start + 24 > box.end || defaults.size >= MAX_TRACKS) continue;
    const { view, start } = box;
    defaults.set(view.getUint32(start + 4), {
      durationUnits: view.getUint32(start + 12),
      sizeBytes: view.getUint32(start + 16),
      flags: view.getUint32(start + 20),
    });
  }
  return defaults;
}

function readTrack(trak: Box, movieTimescale: number): MovieTrack | null {
  const header = child(trak, "tkhd");
  const media = child(trak, "mdia");
  if (header === null || media === null || header.start + 24 > header.end) return null;
  const mediaHeader = child(media, "mdhd");
  if (mediaHeader === null) return null;
  const { timescale } = readTimes(mediaHeader, 12, 20);
  if (timescale === 0) return null;
  const kind = kindOf(child(media, "hdlr"));
  const table = descend(media, "minf", "stbl");
  const description = table === null ? null : child(table, "stsd");
  const entry = description === null ? null : readSampleEntry(description, kind);
  if (entry === null) return null;
  const id = header.view.getUint32(header.start + (versionOf(header) === 1 ? 20 : 12));
  const isEnabled = (header.view.getUint32(header.start) & 1) === 1;
  const rotationDegrees = kind === "video" ? readRotation(header) : 0;
  const track = {
    id,
    kind: kind === "video" && isStill(entry.codec, table) ? "other" as const : kind,
    ...entry,
    language: readLanguage(media, mediaHeader),
    isDefault: isEnabled,
    ...(rotationDegrees === 0 ? {} : { rotationDegrees }),
  };
  const edits = readEdits(trak, movieTimescale, timescale);
  return {
    track,
    timescale,
    shiftS: edits[0]?.shiftS ?? 0,
    edits: edits.length > 1 ? edits : null,
    onlyEdit: edits.length === 1 ? edits[0]! : null,
    sampleTable: table,
    hasOtherDescriptions: hasOtherDescriptions(description!),
  };
}

/** Whether the sample entries of `stsd` differ: their index numbers (8.5.2) say which access units use which. */
function hasOtherDescriptions({ view, start, end }: Box): boolean {
  const bodies = [...boxesIn(view, start + 8, end)].slice(0, MAX_DESCRIPTIONS).map((entry) => bodyOf(entry).join());
  return bodies.some((body) => body !== bodies[0]);
}

/** A single picture of an unknown codec is a cover, not a film. */
function isStill(codec: Track["codec"], table: Box | null): boolean {
  const sizes = table === null ? null : child(table, "stsz");
  return codec === "other" && sizes !== null && sizes.start + 12 <= sizes.end &&
    sizes.view.getUint32(sizes.start + 8) === 1;
}

/** Clockwise turn that the matrix of `tkhd` asks for (8.3.2), degrees. */
function readRotation(header: Box): number {
  const at = header.start + (versionOf(header) === 1 ? 52 : 40);
  if (at + 8 > header.end) return 0;
  const [a, b] = [header.view.getInt32(at), header.view.getInt32(at + 4)];
  return (Math.round(Math.atan2(b, a) * 180 / Math.PI) + 360) % 360;
}

/** `elng` (BCP 47) if present, else the packed letters of `mdhd`. */
function readLanguage(media: Box, header: Box): string | null {
  const extended = child(media, "elng");
  if (extended !== null) {
    let tag = "";
    for (let at = extended.start + 4; at < Math.min(extended.end, extended.start + 40); at++) {
      const code = extended.view.getUint8(at);
      if (code === 0) break;
      tag += String.fromCharCode(code);
    }
    if (/^[A-Za-z0-9-]{2,}$/.test(tag)) return tag === "und" ? null : tag;
  }
  const at = header.start + (versionOf(header) === 1 ? 32 : 20);
  if (at + 2 > header.end) return null;
  const packed = header.view.getUint16(at);
  // Below 0x400 these are QuickTime's own codes, of which writers also use 0 (English) for "unknown".
  if (packed < 0x400) return null;
  const letters = String.fromCharCode(
    0x60 + ((packed >> 10) & 31),
    0x60 + ((packed >> 5) & 31),
    0x60 + (packed & 31),
  );
  return /^[a-z]{3}$/.test(letters) && letters !== "und" ? letters : null;
}

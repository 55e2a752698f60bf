/** Movie fragments (14496-12, 8.8): the access units that a `moof` box describes. */
import { MillraceError } from "../../../errors.ts";
import { type Box, boxesIn, child, int64, uint64, versionOf } from "../../../bytes/boxes.ts";
import type { FragmentDefaults, Movie } from "./movie.ts";

/** An access unit of a fragment, in the units of its track. */
export interface FragmentSample {
  /** Index into the movie's tracks. */
  readonly track: number;
  readonly offset: number;
  readonly sizeBytes: number;
  /** Null when the fragment does not say when it starts: it continues where the track was. */
  readonly dtsUnits: number | null;
  readonly durationUnits: number;
  readonly shiftUnits: number;
  readonly keyframe: boolean;
}

/** What a movie box says about the fragments after it. */
export interface FragmentTracks extends Pick<Movie, "fragmentDefaults"> {
  readonly tracks: readonly { readonly track: { readonly id: number } }[];
}

/** User type of the box that holds a fragment's time and duration in Smooth Streaming (MS-SSTR, 2.2.4.4). */
const TFXD = [0x6d, 0x1d, 0x9b, 0x05, 0x42, 0xd5, 0x44, 0xe6, 0x80, 0xe2, 0x14, 0x1d, 0xaf, 0xf7, 0x57, 0xb2];

const NO_DEFAULTS: FragmentDefaults = { durationUnits: 0, sizeBytes: 0, flags: 0 };
const FLAG_NON_SYNC = 0x10000;
/** Most access units in one fragment; ten minutes of audio have 30 thousand. */
export const MAX_FRAGMENT_SAMPLES = 100_000;
/**
 * Most access units that a run may declare without an entry for each: eight minutes of AC-3, whose frames are of one
 * size.
 */
const MAX_UNIFORM_SAMPLES = 16_384;

/** Reads sequentially; past the end it returns 0. */
class Fields {
  readonly #box: Box;
  #at: number;

  constructor(box: Box, skip: number) {
    this.#box = box;
    this.#at = box.start + skip;
  }

  get left(): number {
    return this.#box.end - this.#at;
  }

  uint32(): number {
    this.#at += 4;
    return this.#at <= this.#box.end ? this.#box.view.getUint32(this.#at - 4) : 0;
  }

  int32(): number {
    return this.uint32() | 0;
  }

  uint64(): number {
    this.#at += 8;
    return this.#at <= this.#box.end ? uint64(this.#box.view, this.#at - 8) : 0;
  }

  int64(): number {
    this.#at += 8;
    return this.#at <= this.#box.end ? int64(this.#box.view, this.#at - 8) : 0;
  }
}

/** The content of a fragment. */
interface Found {
  readonly samples: FragmentSample[];
  /** All access units, including those of unknown tracks. */
  units: number;
}

/**
 * All access units of the `moof` that starts at `moofOffset` of a file of `sourceBytes`, track after track. Throws
 * `bad_media` when there are too many.
 */
export function readFragment(
  moof: Box,
  moofOffset: number,
  movie: FragmentTracks,
  sourceBytes: number,
): FragmentSample[] {
  const found: Found = { samples: [], units: 0 };
  let implicitBase = moofOffset;
  for (const traf of boxesIn(moof.view, moof.start, moof.end)) {
    if (traf.type !== "traf") continue;
    const header = child(traf, "tfhd");
    if (header === null || header.start + 8 > header.end) continue;
    const flags = header.view.getUint32(header.start) & 0xffffff;
    const fields = new Fields(header, 4);
    const id = fields.uint32();
    const track = movie.tracks.findIndex((entry) => entry.track.id === id);
    const inherited = movie.fragmentDefaults?.get(id) ?? NO_DEFAULTS;
    const base = flags & 1 ? fields.uint64() : flags & 0x20000 ? moofOffset : implicitBase;
    if (flags & 2) fields.uint32();
    const defaults: FragmentDefaults = {
      durationUnits: flags & 8 ? fields.uint32() : inherited.durationUnits,
      sizeBytes: flags & 0x10 ? fields.uint32() : inherited.sizeBytes,
      flags: flags & 0x20 ? fields.uint32() : inherited.flags,
    };
    implicitBase = readRuns(traf, track, base, defaults, found, sourceBytes);
  }
  return found.samples;
}

/** When a fragment of a track begins, in the track's units. */
interface Start {
  readonly time: number;
  /** The time is the presentation time of the first access unit, not its decoding time. */
  readonly isPresentation: boolean;
}

/** The start from `tfdt` (8.8.12) or Smooth Streaming's `tfxd`; null when neither is there. */
function startOf(traf: Box): Start | null {
  for (const box of boxesIn(traf.view, traf.start, traf.end)) {
    const isPresentation = box.type === "uuid" && isTfxd(box);
    if (box.type !== "tfdt" && !isPresentation) continue;
    const body = isPresentation ? { ...box, start: box.start + TFXD.length } : box;
    const fields = new Fields(body, 4);
    // Sound begins before 0 where its decoder needs a frame to warm up.
    return { time: versionOf(body) === 1 ? fields.int64() : fields.uint32(), isPresentation };
  }
  return null;
}

function isTfxd({ view, start, end }: Box): boolean {
  return start + TFXD.length <= end && TFXD.every((byte, i) => view.getUint8(start + i) === byte);
}

/**
 * Most access units that a run can have: the entries of `bytesEach` that fit into the `leftBytes` of its box or, if
 * entries are empty, the units of the default size that fit into the file. Units without bytes do not count, however many
 * are declared.
 */
function roomFor(
  bytesEach: number,
  leftBytes: number,
  position: number,
  sizeBytes: number,
  sourceBytes: number,
): number {
  if (bytesEach > 0) return Math.floor(leftBytes / bytesEach);
  return sizeBytes === 0 ? 0 : Math.max(0, Math.floor((sourceBytes - position) / sizeBytes));
}

/** Appends the access units of the fragment's runs; returns where their data ends. */
function readRuns(
  traf: Box,
  track: number,
  base: number,
  defaults: FragmentDefaults,
  found: Found,
  sourceBytes: number,
): number {
  const start = startOf(traf);
  let time = start === null ? null : start.time;
  let isFirst = true;
  let position = base;
  for (const run of boxesIn(traf.view, traf.start, traf.end)) {
    if (run.type !== "trun" || run.start + 8 > run.end) continue;
    const flags = run.view.getUint32(run.start) & 0xffffff;
    const fields = new Fields(run, 4);
    const declared = fields.uint32();
    if (flags & 1) position = base + fields.int32();
    const firstFlags = flags & 4 ? fields.uint32() : null;
    const bytesEach = [0x100, 0x200, 0x400, 0x800].reduce((sum, flag) => sum + (flags & flag ? 4 : 0), 0);
    const count = Math.min(declared, roomFor(bytesEach, fields.left, position, defaults.sizeBytes, sourceBytes));
    found.units += count;
    const limit = bytesEach === 0 ? MAX_UNIFORM_SAMPLES : MAX_FRAGMENT_SAMPLES;
    if (count > limit || found.units > MAX_FRAGMENT_SAMPLES) {
      throw new MillraceError("bad_media", `a fragment has more than ${limit} access units`);
    }
    for (let i = 0; i < count; i++) {
      const durationUnits = flags & 0x100 ? fields.uint32() : defaults.durationUnits;
      const sizeBytes = flags & 0x200 ? fields.uint32() : defaults.sizeBytes;
      const own = flags & 0x400 ? fields.uint32() : defaults.flags;
      const sampleFlags = i === 0 && firstFlags !== null ? firstFlags : own;
      // Version 0 says "unsigned", yet writers put small negative numbers there too.
      const shiftUnits = flags & 0x800 ? fields.int32() : 0;
      const keyframe = (sampleFlags & FLAG_NON_SYNC) === 0;
      if (start?.isPresentation && isFirst) time = start.time - shiftUnits;
      isFirst = false;
      if (track >= 0) {
        found.samples.push({ track, offset: position, sizeBytes, dtsUnits: time, durationUnits, shiftUnits, keyframe });
      }
      position += sizeBytes;
      if (time !== null) time += durationUnits;
    }
  }
  return position;
}

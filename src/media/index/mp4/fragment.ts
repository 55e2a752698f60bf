/** Movie fragments (14496-12, 8.8): the access units that a `moof` box describes. */
import { type Box, boxesIn, child, uint64, versionOf } from "./boxes.ts";
import type { FragmentDefaults, Movie } from "./movie.ts";

/** An access unit of a fragment, in the units of its track. */
export interface FragmentSample {
  /** Index into the movie's tracks. */
  readonly track: number;
  readonly offset: number;
  readonly sizeBytes: number;
  /** Null when the fragment does not say when it starts: it goes on where the track was. */
  readonly dtsUnits: number | null;
  readonly durationUnits: number;
  readonly shiftUnits: number;
  readonly keyframe: boolean;
}

const NO_DEFAULTS: FragmentDefaults = { durationUnits: 0, sizeBytes: 0, flags: 0 };
const FLAG_NON_SYNC = 0x10000;
/** Access units in one fragment; ten minutes of audio have 30 thousand. */
const MAX_FRAGMENT_SAMPLES = 100_000;

/** Reads cursor-wise; past the end it answers 0. */
class Fields {
  private readonly box: Box;
  private at: number;

  constructor(box: Box, skip: number) {
    this.box = box;
    this.at = box.start + skip;
  }

  get left(): number {
    return this.box.end - this.at;
  }

  uint32(): number {
    this.at += 4;
    return this.at <= this.box.end ? this.box.view.getUint32(this.at - 4) : 0;
  }

  int32(): number {
    return this.uint32() | 0;
  }

  uint64(): number {
    this.at += 8;
    return this.at <= this.box.end ? uint64(this.box.view, this.at - 8) : 0;
  }
}

/** All access units of the `moof` that starts at `moofOffset` of the file, track after track. */
export function readFragment(moof: Box, moofOffset: number, movie: Movie): FragmentSample[] {
  const samples: FragmentSample[] = [];
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
    implicitBase = readRuns(traf, track, base, defaults, samples);
  }
  return samples.filter((sample) => sample.track >= 0);
}

/** Appends the access units of the fragment's runs; answers where their data ends. */
function readRuns(
  traf: Box,
  track: number,
  base: number,
  defaults: FragmentDefaults,
  samples: FragmentSample[],
): number {
  const clock = child(traf, "tfdt");
  let time: number | null = null;
  if (clock !== null) {
    const fields = new Fields(clock, 4);
    time = versionOf(clock) === 1 ? fields.uint64() : fields.uint32();
  }
  let position = base;
  for (const run of boxesIn(traf.view, traf.start, traf.end)) {
    if (run.type !== "trun" || run.start + 8 > run.end) continue;
    const flags = run.view.getUint32(run.start) & 0xffffff;
    const fields = new Fields(run, 4);
    const declared = fields.uint32();
    if (flags & 1) position = base + fields.int32();
    const firstFlags = flags & 4 ? fields.uint32() : null;
    const bytesEach = [0x100, 0x200, 0x400, 0x800].reduce((sum, flag) => sum + (flags & flag ? 4 : 0), 0);
    const room = bytesEach === 0 ? MAX_FRAGMENT_SAMPLES : Math.floor(fields.left / bytesEach);
    const count = Math.min(declared, room, MAX_FRAGMENT_SAMPLES - samples.length);
    for (let i = 0; i < count; i++) {
      const durationUnits = flags & 0x100 ? fields.uint32() : defaults.durationUnits;
      const sizeBytes = flags & 0x200 ? fields.uint32() : defaults.sizeBytes;
      const own = flags & 0x400 ? fields.uint32() : defaults.flags;
      const sampleFlags = i === 0 && firstFlags !== null ? firstFlags : own;
      // Version 0 says "unsigned", yet writers put small negative numbers there too.
      const shiftUnits = flags & 0x800 ? fields.int32() : 0;
      const keyframe = (sampleFlags & FLAG_NON_SYNC) === 0;
      samples.push({ track, offset: position, sizeBytes, dtsUnits: time, durationUnits, shiftUnits, keyframe });
      position += sizeBytes;
      if (time !== null) time += durationUnits;
    }
  }
  return position;
}

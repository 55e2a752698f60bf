/** Fragmented MP4, as HLS segments have it, as a transport stream: its own times, every fragment muxed when it is complete. */
import { concatBytes } from "../../bytes/hex.ts";
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { raiseTableVersion } from "../../bytes/ts/table-version.ts";
import { MillraceError } from "../../errors.ts";
import { type Box, boxesIn, readBoxHeader, viewOf } from "../../bytes/boxes.ts";
import { readFragment } from "../../media/index/mp4/fragment.ts";
import { type Movie, readMovie } from "../../media/index/mp4/movie.ts";
import { AccessFlags } from "../../media/mux/ts/access-flags.ts";
import { AudioPacker, type PackedFrames } from "../../media/mux/ts/packed-audio.ts";
import { elementaryFormat } from "../../media/mux/ts/elementary/carry.ts";
import {
  type AccessUnit,
  buildProgram,
  maxPesBytes,
  pesPackets,
  type Program,
  writeAccessUnit,
  writePsi,
} from "../../media/mux/ts/program.ts";
import { START_OFFSET_90K } from "../../media/mux/ts/timing.ts";
import type { RunSample } from "../../media/model/timeline.ts";

/**
 * Most bytes of fragments that wait for their rest, or for those of other tracks: six seconds at 40 Mb/s. Servers that send
 * more at once send it to players that have no use for it either.
 */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** The same for all channels of the engine. There is one process, so there is one budget. */
const MAX_ALL_HELD_BYTES = 96 * 1024 * 1024;
/** Largest box before the media, bytes: a movie box has a kilobyte per track, a fragment's 16 bytes per picture. */
const MAX_BOX_BYTES = 4 * 1024 * 1024;
/** Fragments of single tracks that are muxed together: each track has its own, and some come in tenths of a second. */
const MAX_GROUP = 16;
/** Tables are repeated at random access points, and after this long, 90 kHz. */
const TABLES_EVERY_90K = 36_000;

/** Bytes of the header of a box, but for one whose size takes more. */
const HEADER_BYTES = 8;
const LONG_HEADER_BYTES = 16;

let allHeldBytes = 0;

/** The tracks of a movie box that a transport stream carries. */
interface Form {
  readonly moov: Uint8Array;
  readonly movie: Movie;
  readonly program: Program;
  /** Place in `program.streams` by track of the movie. */
  readonly streamOf: ReadonlyMap<number, number>;
}

/** Bytes of the segment that were not used yet. */
class Held {
  #parts: Uint8Array[] = [];
  bytes = 0;

  push(part: Uint8Array): void {
    this.#parts.push(part);
    this.bytes += part.length;
  }

  /** All of them in one piece. */
  joined(): Uint8Array {
    if (this.#parts.length > 1) this.#parts = [concatBytes(this.#parts)];
    return this.#parts[0] ?? new Uint8Array();
  }

  /** The first `count`, which leave. */
  take(count: number): Uint8Array {
    const all = this.joined();
    this.#parts = count < all.length ? [all.subarray(count)] : [];
    this.bytes = all.length - count;
    return all.subarray(0, count);
  }

  /** `count` bytes or all of them leave unread; returns how many. */
  skip(count: number): number {
    return this.take(Math.min(count, this.bytes)).length;
  }
}

/** Makes the transport stream. Segments follow each other; `begin` forgets what is left of one that broke off. */
export class FragmentMuxer {
  /** Added to the times of the fragments, 90 kHz. */
  readonly #offset90k: number;
  #form: Form | null = null;
  #held = new Held();
  /** Bytes that the next step needs: a header, or a whole box. */
  #wantedBytes = HEADER_BYTES;
  /** Bytes of the present box that are of no use. */
  #skipBytes = 0;
  /** A fragment whose media comes next. */
  #moof: Box | null = null;
  /** Bytes from the fragment's box to its media. */
  #between = 0;
  #group: RunSample[] = [];
  #grouped = 0;
  #groupBytes = 0;
  #counted = 0;
  readonly #counters: number[] = [];
  #tableRound = 0;
  #tableVersion = 0;
  #tablesAt90k: number | null = null;
  /** By track of the movie: the least shift of its pictures so far, units, and where a fragment without a time begins. */
  #lag: number[] = [];
  #clocks = new Map<number, number>();
  #flags: AccessFlags[] = [];

  /** With `keepsTimes` the times are those of the fragments; else somewhat later, so that no clock is below zero. */
  constructor({ keepsTimes = false } = {}) {
    this.#offset90k = keepsTimes ? -START_OFFSET_90K : 0;
  }

  /** The next segment begins; `map` is what it needs before its own bytes. Throws as `push`. */
  begin(map: Uint8Array | null): void {
    this.#drop();
    if (map !== null) this.push(map);
    if (this.#form === null && map !== null) {
      throw new MillraceError("bad_media", "the initialization section of its segments has no movie box");
    }
  }

  /**
   * Takes the next bytes; returns the packets that are complete. Throws `unsupported_media` where a transport stream cannot
   * carry what the segments hold, `bad_media` where they are damaged, `too_large`.
   */
  push(bytes: Uint8Array): Uint8Array {
    this.#held.push(bytes);
    const out: Uint8Array[] = [];
    try {
      while (this.#next(out));
    } catch (error) {
      this.#drop();
      throw error;
    } finally {
      this.#count();
    }
    return concatBytes(out);
  }

  /** The segment is complete: returns the packets of what waits for other tracks. */
  end(): Uint8Array {
    const out: Uint8Array[] = [];
    this.#flush(out);
    this.#drop();
    return concatBytes(out);
  }

  /** Gives up what it holds: nothing follows. */
  close(): void {
    this.#drop();
  }

  #drop(): void {
    this.#held = new Held();
    this.#skipBytes = this.#between = 0;
    this.#wantedBytes = HEADER_BYTES;
    this.#moof = null;
    this.#group = [];
    this.#grouped = this.#groupBytes = 0;
    this.#count();
  }

  /** Reports what is held to the common budget. */
  #count(): void {
    const heldBytes = this.#held.bytes + this.#groupBytes;
    allHeldBytes += heldBytes - this.#counted;
    this.#counted = heldBytes;
  }

  /** Goes one step; returns whether another may follow. */
  #next(out: Uint8Array[]): boolean {
    if (this.#skipBytes > 0) {
      this.#skipBytes -= this.#held.skip(this.#skipBytes);
      return this.#skipBytes === 0;
    }
    if (this.#held.bytes < this.#wantedBytes) {
      if (allHeldBytes - this.#counted + this.#held.bytes <= MAX_ALL_HELD_BYTES) return false;
      throw new MillraceError("too_large", "the fragments of all channels take too much memory");
    }
    const bytes = this.#held.joined();
    const header = readBoxHeader(viewOf(bytes), 0, bytes.length);
    if (header === null && bytes.length < LONG_HEADER_BYTES) {
      this.#wantedBytes = LONG_HEADER_BYTES;
      return true;
    }
    if (header === null || header.sizeBytes === null) {
      throw new MillraceError("bad_media", "its segments are damaged: no MP4 box where one has to be");
    }
    const { type, headerBytes, sizeBytes } = header;
    const isMedia = type === "mdat" && this.#moof !== null;
    if (!isMedia && type !== "moof" && type !== "moov") {
      if (this.#moof !== null) this.#between += sizeBytes;
      this.#skipBytes = sizeBytes;
      return true;
    }
    const most = isMedia ? MAX_HELD_BYTES : MAX_BOX_BYTES;
    if (sizeBytes > most || this.#groupBytes + sizeBytes > MAX_HELD_BYTES) {
      throw new MillraceError("too_large", `a fragment of its segments has more than ${most >> 20} MiB`);
    }
    if (this.#held.bytes < sizeBytes) {
      this.#wantedBytes = sizeBytes;
      return true;
    }
    this.#wantedBytes = HEADER_BYTES;
    const whole = this.#held.take(sizeBytes);
    const box = { type, view: viewOf(whole), start: headerBytes, end: sizeBytes };
    if (type === "moov") this.#describe(box, whole);
    else if (type === "moof") this.#moof = box;
    else this.#fragment(whole, out);
    return true;
  }

  #describe(moov: Box, whole: Uint8Array): void {
    const known = this.#form?.moov;
    if (known !== undefined && known.length === whole.length && known.every((byte, i) => byte === whole[i])) return;
    const form = formOf(moov, whole);
    if (this.#form !== null) this.#tableVersion++;
    this.#form = form;
    this.#tablesAt90k = null;
    this.#lag = form.movie.tracks.map(() => 0);
    this.#clocks = new Map();
    this.#flags = form.program.streams.map(({ format }) => new AccessFlags(format));
  }

  /** The access units of the fragment whose media is `mdat`. */
  #fragment(mdat: Uint8Array, out: Uint8Array[]): void {
    const moof = this.#moof!;
    const form = this.#form;
    if (form === null) {
      throw new MillraceError("bad_media", "its segments have no movie box, and their playlist names none");
    }
    /** Offsets count from the beginning of the fragment's box. */
    const mediaAt = moof.end + this.#between;
    this.#moof = null;
    this.#between = 0;
    const samples = readFragment(moof, 0, form.movie, mediaAt + mdat.length);
    for (const { track, shiftUnits } of samples) this.#lag[track] = Math.min(this.#lag[track]!, shiftUnits);
    for (const sample of samples) {
      const stream = form.streamOf.get(sample.track);
      const { timescale, shiftS } = form.movie.tracks[sample.track]!;
      const units = sample.dtsUnits ?? this.#clocks.get(sample.track) ?? 0;
      this.#clocks.set(sample.track, units + sample.durationUnits);
      const from = sample.offset - mediaAt;
      const to = from + sample.sizeBytes;
      if (stream === undefined || from < 0 || to > mdat.length || from === to) continue;
      const time90k = (at: number) => Math.round((at / timescale + shiftS) * 90_000) + this.#offset90k;
      const dts90k = time90k(units + this.#lag[sample.track]!);
      const pts90k = Math.max(dts90k, time90k(units + sample.shiftUnits));
      const { keyframe } = sample;
      const unit = { track: stream, pts90k, dts90k, keyframe, data: mdat.subarray(from, to) };
      this.#group.push(this.#flags[stream]!.of(unit));
    }
    this.#grouped++;
    this.#groupBytes += mdat.length;
    const isWhole = form.program.streams.every((_, i) => this.#group.some(({ track }) => track === i));
    if (isWhole || this.#grouped >= MAX_GROUP) this.#flush(out);
  }

  /** Muxes what waits, by decoding time. */
  #flush(out: Uint8Array[]): void {
    const group = this.#group;
    this.#group = [];
    this.#grouped = this.#groupBytes = 0;
    if (group.length === 0) return;
    const { program } = this.#form!;
    const packers = program.streams.map((stream) => AudioPacker.of(stream));
    const units: PackedFrames[] = [];
    for (const sample of group) {
      const packer = packers[sample.track]!;
      if (packer === null) {
        units.push(sample);
        continue;
      }
      if (!packer.takes(sample)) units.push(packer.close(packer.count));
      packer.add(sample);
    }
    for (const packer of packers) if (packer !== null && packer.count > 0) units.push(packer.close(packer.count));
    units.sort((a, b) => a.dts90k - b.dts90k || a.track - b.track);
    for (const unit of units) this.#write(program, unit, out);
  }

  #write(program: Program, unit: PackedFrames, out: Uint8Array[]): void {
    const stream = program.streams[unit.track]!;
    const isReady = unit.frames !== undefined;
    const from = 0;
    const to = unit.data.length;
    const pesBytes = isReady
      ? to + maxPesBytes(stream, 0, 0, false)
      : maxPesBytes(stream, to, unit.pts90k - unit.dts90k, unit.keyframe);
    const packets = pesPackets(stream, pesBytes);
    const since90k = this.#tablesAt90k === null ? Infinity : Math.abs(unit.dts90k - this.#tablesAt90k);
    const isDue = since90k >= TABLES_EVERY_90K || (unit.keyframe && stream.track.kind === "video");
    const tables = isDue ? program.psiPackets : 0;
    const bytes = new Uint8Array((tables + packets) * PACKET_BYTES);
    if (isDue) {
      writePsi(program, bytes, 0, this.#tableRound++);
      for (let at = 0; at < tables * PACKET_BYTES; at += PACKET_BYTES) raiseTableVersion(bytes, at, this.#tableVersion);
      this.#tablesAt90k = unit.dts90k;
    }
    const counter = this.#counters[unit.track] ?? 0;
    const access: AccessUnit = { ...unit, isReady, from, to };
    writeAccessUnit(bytes, tables * PACKET_BYTES, packets, stream, access, counter, unit.dts90k);
    this.#counters[unit.track] = (counter + packets) & 15;
    out.push(bytes);
  }
}

/** What a transport stream carries of a movie: its first pictures, and all its sounds. */
function formOf(moov: Box, whole: Uint8Array): Form {
  for (const sealed of ["encv", "enca"]) {
    if (hasEntry(moov, sealed)) throw unsupported("they are encrypted (DRM)");
  }
  const movie = readMovie(moov);
  const tracks = movie.tracks.map(({ track }) => track);
  const carried = tracks.flatMap((track, i) => elementaryFormat(track) === null ? [] : [i]);
  const video = carried.find((i) => tracks[i]!.kind === "video");
  const others = tracks.filter(({ kind }) => kind === "video" || kind === "audio").map(({ codecId }) => codecId);
  const hasVideo = tracks.some(({ kind }) => kind === "video");
  const indexes = [...(video === undefined ? [] : [video]), ...carried.filter((i) => tracks[i]!.kind === "audio")];
  if (indexes.length === 0 || (hasVideo && video === undefined)) {
    throw unsupported(`MPEG TS cannot carry them (${others.join(", ").slice(0, 60) || "no pictures or sound"})`);
  }
  const program = buildProgram(tracks, indexes);
  return { moov: whole.slice(), movie, program, streamOf: new Map(indexes.map((track, i) => [track, i])) };
}

function unsupported(reason: string): MillraceError {
  return new MillraceError("unsupported_media", `its segments are fragmented MP4, and ${reason}`);
}

/** Whether a track of `moov` has a sample entry of `type`. */
function hasEntry(moov: Box, type: string): boolean {
  const path = ["trak", "mdia", "minf", "stbl", "stsd"];
  const within = (box: Box, depth: number): boolean => {
    if (depth === path.length) {
      return [...boxesIn(box.view, box.start + 8, box.end)].some((entry) => entry.type === type);
    }
    return [...boxesIn(box.view, box.start, box.end)].some((one) => one.type === path[depth] && within(one, depth + 1));
  };
  return within(moov, 0);
}

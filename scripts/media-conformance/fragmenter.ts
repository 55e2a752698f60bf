/**
 * Writes fragmented MP4 in the structures of muxers that are not at hand (Bento4's `mp4fragment`, GPAC's DASH segmenter,
 * Smooth Streaming, recorders), from the access units of a file that ffmpeg fragmented.
 */
import { concatBytes } from "../../src/bytes/hex.ts";
import { type Box, boxesIn, child, viewOf } from "../../src/bytes/boxes.ts";
import { readFragment } from "../../src/media/index/mp4/fragment.ts";
import { type Movie, readMovie } from "../../src/media/index/mp4/movie.ts";
import { box, fullBox, text, u32, u64 } from "../../test/media/support/mp4-builder.ts";

/** An access unit, in the units of its track. */
export interface Unit {
  readonly data: Uint8Array;
  readonly time: number;
  readonly duration: number;
  readonly shift: number;
  readonly keyframe: boolean;
}

/** A track and all its access units. */
export interface Reel {
  readonly id: number;
  readonly isVideo: boolean;
  readonly timescale: number;
  readonly units: readonly Unit[];
}

/** What a file consists of. */
export interface Film {
  /** `moov` with `mvex`, and no access unit. */
  readonly movie: Uint8Array;
  readonly reels: readonly Reel[];
}

/** Takes apart what ffmpeg wrote with `frag_keyframe+empty_moov+default_base_moof`. */
export function takeApart(file: Uint8Array): Film {
  const view = viewOf(file);
  const top = [...boxesIn(view, 0, file.length)];
  const moov = top.find(({ type }) => type === "moov")!;
  const movie: Movie = readMovie(moov);
  const reels = movie.tracks.map(({ track, timescale }) => ({
    id: track.id,
    isVideo: track.kind === "video",
    timescale,
    units: [] as Unit[],
  }));
  for (const moof of top.filter(({ type }) => type === "moof")) {
    for (const sample of readFragment(moof, moof.start - 8, movie, file.length)) {
      reels[sample.track]!.units.push({
        data: file.subarray(sample.offset, sample.offset + sample.sizeBytes),
        time: sample.dtsUnits!,
        duration: sample.durationUnits,
        shift: sample.shiftUnits,
        keyframe: sample.keyframe,
      });
    }
  }
  return { movie: file.slice(moov.start - 8, moov.end), reels };
}

/** How the fragments of a file are written. */
export interface Structure {
  /** Length of a fragment, s; each begins at the next random access point. Default 2. */
  readonly fragmentS?: number;
  /** One `moof` for all tracks, one for each in turns, or the same with the sound first. Default "together". */
  readonly order?: "together" | "turns" | "sound first";
  /**
   * `sidx`: one before the first fragment ("all"), of the fragments of one track alone though others lie between ("alone":
   * its sizes lead astray), one before each fragment ("each"), or one of those ("tree"). Default none.
   */
  readonly sidx?: "all" | "alone" | "each" | "tree";
  /** `mfra` of the first track, of all, or with offsets of another file. Default none. */
  readonly mfra?: "first" | "all" | "wrong";
  /** Where the fragment says that it begins: `tfdt` of 32 or 64 bits, or nowhere. Default 64. */
  readonly tfdt?: 32 | 64 | null;
  /** What offsets count from: the `moof`, the file, or the end of the data before. Default "moof". */
  readonly base?: "moof" | "file" | "none";
  /** Access units in a `trun`. Default all of a fragment. */
  readonly perRun?: number;
  /** Boxes that mean nothing to us between the fragments. */
  readonly between?: "styp" | "emsg" | "free";
}

/** What a `moof` and its `mdat` hold. */
interface Piece {
  readonly second: number;
  readonly parts: readonly { readonly reel: Reel; readonly from: number; readonly to: number }[];
}

/** Cuts the reels at random access points of the first, about every `fragmentS`. */
function piecesOf({ reels }: Film, { fragmentS = 2, order = "together" }: Structure): Piece[] {
  const main = reels[0]!;
  const cuts = [0];
  for (const { keyframe, time } of main.units) {
    const second = time / main.timescale;
    if (keyframe && second - cuts.at(-1)! >= fragmentS * 0.99) cuts.push(second);
  }
  return cuts.flatMap((second, i) => {
    const end = cuts[i + 1] ?? Infinity;
    const parts = reels.map((reel) => {
      const at = (limit: number) => {
        const found = reel.units.findIndex(({ time }) => time / reel.timescale >= limit);
        return found < 0 ? reel.units.length : found;
      };
      return { reel, from: i === 0 ? 0 : at(second), to: at(end) };
    }).filter(({ from, to }) => to > from);
    if (order === "together") return [{ second, parts }];
    const turns = order === "turns" ? parts : parts.toReversed();
    return turns.map((part) => ({ second, parts: [part] }));
  });
}

const FLAG_SYNC = 0x2000000;
const FLAG_DEPENDENT = 0x1010000;

/** `moof` and `mdat` of `piece`, which begins at `offset` of the file. */
function writePiece({ parts }: Piece, number: number, offset: number, structure: Structure): Uint8Array {
  const { tfdt = 64, base = "moof", perRun = Infinity } = structure;
  const moof = (dataAt: number) => {
    let at = dataAt;
    return box(
      "moof",
      fullBox("mfhd", 0, 0, u32(number)),
      ...parts.map(({ reel, from, to }) => {
        const units = reel.units.slice(from, to);
        const flags = base === "moof" ? 0x20000 : base === "file" ? 1 : 0;
        const place = base === "file" ? u64(offset) : u32();
        const runs: Uint8Array[] = [];
        for (let first = 0; first < units.length; first += perRun) {
          const own = units.slice(first, Math.min(units.length, first + perRun));
          const rows = own.map(({ data, duration, shift, keyframe }) =>
            u32(duration, data.length, keyframe ? FLAG_SYNC : FLAG_DEPENDENT, shift)
          );
          // Offsets from the end of the data before need no field, except the first one.
          const hasOffset = base !== "none" || at === dataAt;
          runs.push(
            fullBox("trun", 1, hasOffset ? 0xf01 : 0xf00, u32(own.length, ...(hasOffset ? [at] : [])), ...rows),
          );
          at += own.reduce((sum, { data }) => sum + data.length, 0);
        }
        const { time } = units[0]!;
        return box(
          "traf",
          fullBox("tfhd", 0, flags, u32(reel.id), place),
          ...(tfdt === null ? [] : [tfdt === 64 ? fullBox("tfdt", 1, 0, u64(time)) : fullBox("tfdt", 0, 0, u32(time))]),
          ...runs,
        );
      }),
    );
  };
  const media = parts.flatMap(({ reel, from, to }) => reel.units.slice(from, to).map(({ data }) => data));
  return concatBytes([moof(moof(0).length + 8), box("mdat", ...media)]);
}

/** A `sidx` of `reel` with a reference for each of `entries`; of other `sidx` where `isTree`. */
function writeSidx(reel: Reel, entries: readonly { bytes: number; units: number }[], isTree = false): Uint8Array {
  const shift = reel.units[0]!.shift;
  const rows = entries.map(({ bytes, units }) => u32(isTree ? 0x80000000 + bytes : bytes, units, 0x90000000));
  return fullBox("sidx", 0, 0, u32(reel.id, reel.timescale, shift, 0, entries.length), ...rows);
}

function writeMfra(reels: readonly Reel[], places: readonly { second: number; at: number }[], off: number): Uint8Array {
  const lists = reels.map(({ id, timescale }) => {
    const rows = places.map(({ second, at }) =>
      concatBytes([u64(Math.round(second * timescale), at + off), Uint8Array.of(1, 1, 1)])
    );
    return fullBox("tfra", 1, 0, u32(id, 0, places.length), ...rows);
  });
  const bytes = lists.reduce((sum, { length }) => sum + length, 0);
  return box("mfra", ...lists, fullBox("mfro", 0, 0, u32(8 + bytes + 16)));
}

const BETWEEN: Readonly<Record<NonNullable<Structure["between"]>, Uint8Array>> = {
  styp: box("styp", text("msdh"), u32(0), text("msdhmsix")),
  emsg: fullBox("emsg", 0, 0, text("urn:example\0"), text("1\0"), u32(1000, 0, 0xffff, 7), text("nothing")),
  free: box("free", new Uint8Array(100)),
};
/** `ftyp` of all files written here. */
export const FTYP = box("ftyp", text("iso6"), u32(1), text("iso6mp41"));

/** Duration of the access units of `reel` from the time `second` on up to `end`, in its units. */
function unitsBetween(reel: Reel, second: number, end: number): number {
  const own = reel.units.filter(({ time }) => time / reel.timescale >= second && time / reel.timescale < end);
  return own.reduce((sum, { duration }) => sum + duration, 0);
}

/** The film in fragments as `structure` says. */
export function writeFragments(film: Film, structure: Structure): Uint8Array {
  const main = film.reels[0]!;
  const pieces = piecesOf(film, structure);
  const seconds = [...new Set(pieces.map(({ second }) => second))];
  const lengthOf = (second: number) => unitsBetween(main, second, seconds[seconds.indexOf(second) + 1] ?? Infinity);
  const head = concatBytes([FTYP, film.movie]);
  const between = structure.between === undefined ? [] : [BETWEEN[structure.between]];
  const opensGroup = (i: number) => pieces[i - 1]?.second !== pieces[i]!.second;
  /** Everything after the head, and where the groups of fragments begin. */
  const body = (start: number) => {
    const out: Uint8Array[] = [];
    const places: { second: number; at: number; bytes: number; alone: number }[] = [];
    let at = start;
    const put = (bytes: Uint8Array) => {
      out.push(bytes);
      at += bytes.length;
    };
    for (const [i, piece] of pieces.entries()) {
      const { second } = piece;
      const sidxBytes = structure.sidx === "each" || structure.sidx === "tree" ? 32 + 12 : 0;
      if (opensGroup(i)) {
        places.push({ second, at, bytes: 0, alone: 0 });
        between.forEach(put);
        const group = pieces.filter((one) => one.second === second);
        let bytes = 0;
        for (const one of group) bytes += writePiece(one, 1, 0, structure).length;
        if (sidxBytes > 0) put(writeSidx(main, [{ bytes, units: lengthOf(second) }]));
      }
      const bytes = writePiece(piece, i + 1, at, structure);
      put(bytes);
      const place = places.at(-1)!;
      place.bytes = at - place.at;
      if (piece.parts.some(({ reel }) => reel === main)) place.alone += bytes.length;
    }
    return { bytes: concatBytes(out), places };
  };
  const indexOf = ({ places }: ReturnType<typeof body>) => {
    if (structure.sidx === undefined || structure.sidx === "each") return new Uint8Array(0);
    const entries = places.map(({ second, bytes, alone }) => ({
      bytes: structure.sidx === "alone" ? alone : bytes,
      units: lengthOf(second),
    }));
    return writeSidx(main, entries, structure.sidx === "tree");
  };
  const index = indexOf(body(0));
  const { bytes, places } = body(head.length + index.length);
  const listed = structure.mfra === "all" ? film.reels : [main];
  const tail = structure.mfra === undefined
    ? new Uint8Array(0)
    : writeMfra(listed, places, structure.mfra === "wrong" ? 100_000 : 0);
  return concatBytes([head, index, bytes, tail]);
}

/** Rewrites `moov` so that each access unit is a chunk of its own, at `offsets` (by track). */
function withChunks(moov: Box, file: Uint8Array, offsets: readonly (readonly number[])[]): Uint8Array {
  let track = -1;
  const copy = ({ type, view, start, end }: Box): Uint8Array => {
    if (type === "trak") track++;
    if (type === "stsc") return fullBox("stsc", 0, 0, u32(1, 1, 1, 1));
    if (type === "stco") return fullBox("stco", 0, 0, u32(offsets[track]!.length, ...offsets[track]!));
    const isFolder = ["moov", "trak", "mdia", "minf", "stbl"].includes(type);
    return isFolder ? box(type, ...[...boxesIn(view, start, end)].map(copy)) : box(type, file.subarray(start, end));
  };
  return copy(moov);
}

/** Fragments that are followed by the movie box of `plain`, a file of the same access units, as recorders end a file. */
export function writeHybrid(film: Film, plain: Uint8Array, structure: Structure): Uint8Array {
  const fragments = writeFragments(film, structure);
  const again = takeApartAt(fragments);
  const moov = [...boxesIn(viewOf(plain), 0, plain.length)].find(({ type }) => type === "moov")!;
  if (child(moov, "mvex") !== null) throw new Error("the plain file has fragments");
  return concatBytes([fragments, withChunks(moov, plain, again)]);
}

/** Where each access unit of a fragmented file is, by track. */
function takeApartAt(file: Uint8Array): number[][] {
  const top = [...boxesIn(viewOf(file), 0, file.length)];
  const movie = readMovie(top.find(({ type }) => type === "moov")!);
  const offsets: number[][] = movie.tracks.map(() => []);
  for (const moof of top.filter(({ type }) => type === "moof")) {
    for (const { track, offset } of readFragment(moof, moof.start - 8, movie, file.length)) {
      offsets[track]!.push(offset);
    }
  }
  return offsets;
}

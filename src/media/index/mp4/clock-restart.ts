/**
 * Fragmented files that were put together end to end: the clock begins again, maybe behind a movie box of its own. Where the
 * first one has an index that ends there, the next one is found at once; else a few fragments across the file are asked
 * for their time, if anything is suspicious at all, and where it falls back, the place is searched for.
 */
import type { IndexWork } from "../work.ts";
import { readFragment } from "./fragment.ts";
import { scanForFragment } from "./fragment-scan.ts";
import { HeaderReader, type TopLevelBox } from "./locate.ts";
import type { Movie } from "./movie.ts";

/** Places across the file whose fragments are asked for their time: parts shorter than an eighth of it may go unseen. */
const PROBES = 7;
/** A fragment is looked for in so many bytes at least, and in twice the first one's. */
const LEAST_SCAN_BYTES = 1024 * 1024;
const MOST_SCAN_BYTES = 8 * 1024 * 1024;
/** Halvings of the stretch in which the clock falls back. */
const MAX_HALVINGS = 24;
/** Boxes looked at one by one once the stretch is short: some 16 fragments. */
const MAX_BOXES = 96;
const SHORT_STRETCH_FRAGMENTS = 8;
/** Fragments of tracks in turns overlap in time; a clock that begins again falls further back, s. */
const LEAST_FALL_S = 1;
/** What may stand between two films. */
const BETWEEN: ReadonlySet<string> = new Set(["mfra", "free", "skip", "uuid", "sidx", "emsg", "prft"]);

/** Where another file begins behind `end`, at which an index ends; null where none does. */
export async function nextFileAfter(reader: HeaderReader, end: number): Promise<number | null> {
  let offset = end;
  for (let i = 0; i < MAX_BOXES; i++) {
    const box = await reader.boxAt(offset);
    if (box === null || !(BETWEEN.has(box.type) || box.type === "ftyp")) return null;
    if (box.type === "ftyp") return offset;
    offset = box.end;
  }
  return null;
}

/** A fragment and when it begins. */
interface Mark {
  readonly box: TopLevelBox;
  readonly timeS: number;
}

/**
 * Where the clock of the fragments from `first` on begins again: the place of the box from which the next part can be read;
 * null where it does not, as far as can be seen. `fragmentBytes`: size of a fragment with its data, about.
 */
export async function findRestart(
  work: IndexWork,
  movie: Movie,
  first: TopLevelBox,
  fragmentBytes: number,
): Promise<number | null> {
  const search = new Search(work, movie, fragmentBytes);
  const step = (work.sizeBytes - first.offset) / (PROBES + 1);
  const places = Array.from({ length: PROBES }, (_, i) => first.offset + Math.floor((i + 1) * step));
  const marks = [await search.mark(first), ...await Promise.all(places.map((place) => search.markFrom(place)))]
    .filter((mark) => mark !== null);
  for (let i = 1; i < marks.length; i++) {
    if (marks[i]!.timeS < marks[i - 1]!.timeS - LEAST_FALL_S) return await search.border(marks[i - 1]!, marks[i]!);
  }
  return null;
}

class Search {
  readonly #work: IndexWork;
  readonly #movie: Movie;
  readonly #main: number;
  readonly #fragmentBytes: number;
  readonly #scanBytes: number;

  constructor(work: IndexWork, movie: Movie, fragmentBytes: number) {
    this.#work = work;
    this.#movie = movie;
    this.#main = movie.tracks.findIndex(({ track }) => track.kind === "video");
    this.#fragmentBytes = fragmentBytes;
    this.#scanBytes = Math.max(LEAST_SCAN_BYTES, Math.min(MOST_SCAN_BYTES, 2 * fragmentBytes));
  }

  /** The fragment `box` with its time; null where it does not tell one. */
  async mark(box: TopLevelBox): Promise<Mark | null> {
    const reader = new HeaderReader(this.#work, this.#work.signal);
    const samples = readFragment(await reader.load(box), box.offset, this.#movie, this.#work.sizeBytes);
    await this.#work.spend(samples.length);
    const sample = samples.find(({ track }) => track === this.#main) ?? samples[0];
    if (sample === undefined || sample.dtsUnits === null) return null;
    return { box, timeS: sample.dtsUnits / this.#movie.tracks[sample.track]!.timescale };
  }

  /** The next fragment from `place` on. */
  async markFrom(place: number): Promise<Mark | null> {
    const offset = await scanForFragment(this.#work, place, this.#work.signal, this.#scanBytes);
    const box = offset === null ? null : await new HeaderReader(this.#work, this.#work.signal).boxAt(offset);
    return box === null || box.type !== "moof" ? null : await this.mark(box);
  }

  /** Where the clock falls back between `before` and `after`. */
  async border(before: Mark, after: Mark): Promise<number | null> {
    let low = before;
    let end = after.box.offset;
    for (let i = 0; i < MAX_HALVINGS && end - low.box.end > SHORT_STRETCH_FRAGMENTS * this.#fragmentBytes; i++) {
      const middle = Math.floor((low.box.end + end) / 2);
      const mark = await this.markFrom(middle);
      if (mark === null || mark.box.offset >= end) end = middle;
      else if (mark.timeS >= low.timeS - LEAST_FALL_S) low = mark;
      else end = mark.box.offset;
    }
    return await this.#walk(low);
  }

  /** Box by box from `low` on to the first one of the next part. */
  async #walk(low: Mark): Promise<number | null> {
    const reader = new HeaderReader(this.#work, this.#work.signal);
    let last = low;
    let box = await reader.boxAt(low.box.end);
    for (let i = 0; box !== null && i < MAX_BOXES; i++) {
      if (box.type === "ftyp" || box.type === "moov") return box.offset;
      if (box.type === "moof") {
        const mark = await this.mark(box);
        if (mark !== null && mark.timeS < last.timeS - LEAST_FALL_S) return box.offset;
        last = mark ?? last;
      }
      box = await reader.boxAt(box.end);
    }
    return null;
  }
}

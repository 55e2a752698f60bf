/**
 * Fragmented files that were put together end to end: the clock restarts, maybe after a movie box of its own. If the
 * first file has an index that ends there, the next one is found at once. Otherwise, and only if something looks
 * suspicious, the times of a few fragments across the file are read; if they fall back, the place is searched.
 */
import type { IndexWork } from "../../source/work.ts";
import { readFragment } from "./fragment.ts";
import { scanForFragment } from "./fragment-scan.ts";
import { HeaderReader, type TopLevelBox } from "./locate.ts";
import type { Movie } from "./movie.ts";

/** Places across the file whose fragments' times are read: parts shorter than an eighth of the file may go unnoticed. */
const PROBES = 7;
/** Least bytes to search for a fragment; or twice the size of the first one, if that is more. */
const LEAST_SCAN_BYTES = 1024 * 1024;
const MOST_SCAN_BYTES = 8 * 1024 * 1024;
/** Most halvings of the stretch in which the clock falls back. */
const MAX_HALVINGS = 24;
/** Boxes checked one by one once the stretch is short: some 16 fragments. */
const MAX_BOXES = 96;
const SHORT_STRETCH_FRAGMENTS = 8;
/** Fragments of alternating tracks overlap in time by up to this; a clock that restarts falls further back, s. */
const LEAST_FALL_S = 1;
/** Boxes that may stand between two films. */
const BETWEEN: ReadonlySet<string> = new Set(["mfra", "free", "skip", "uuid", "sidx", "emsg", "prft"]);

/** Where another file begins after `end`, at which an index ends; null if none does. */
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

/** A fragment and its start time. */
interface Mark {
  readonly box: TopLevelBox;
  readonly timeS: number;
}

/**
 * Where the clock of the fragments from `first` on restarts: the position of the box from which the next part can be
 * read; null if no restart was found. `fragmentBytes`: approximate size of a fragment with its data.
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

  /** The fragment `box` with its time; null if it has none. */
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

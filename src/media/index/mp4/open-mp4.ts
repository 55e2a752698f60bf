/** Opens MP4 and QuickTime files: reads the movie box and returns the index. */
import type { ByteSource } from "../../../bytes/source.ts";
import { hasCode, MillraceError } from "../../../errors.ts";
import { isCarriable } from "../../mux/carrier.ts";
import type { MediaIndex, MediaOpenOptions, SampleTable, StreamedTimeline } from "../../model/timeline.ts";
import { wantsAac } from "../../transcode/choice.ts";
import { runsOfTables } from "../../transcode/tabled-runs.ts";
import type { Track } from "../../model/types.ts";
import { IndexWork } from "../../source/work.ts";
import { findRestart, nextFileAfter } from "./clock-restart.ts";
import { findFinalMovie } from "./final-movie.ts";
import { DEFAULT_SEGMENT_TARGET_MS } from "../../layout/segment-plan.ts";
import { earlyByMs, endOf, trimToEdit } from "./edit-list.ts";
import { firstFragment, fragmentBytes, openFragments, readFragmentIndex } from "./fragment-timeline.ts";
import { canFollow, type FilePart, joinParts } from "./joined-parts.ts";
import { joinTimelines } from "./joined-timeline.ts";
import { findMovie, HeaderReader } from "./locate.ts";
import { type Movie, readMovie } from "./movie.ts";
import { buildPcmTable, isCounted } from "./pcm-table.ts";
import { buildTable, declaresMore, MAX_SAMPLES } from "./sample-table.ts";
import { readTexts } from "./texts.ts";

/** Most films in one file; more are left out with a warning. */
const MAX_PARTS = 32;
/** A file may be several films if its end is at less than this share of the time expected from its first fragment. */
const SUSPICIOUS_SHARE = 0.75;

/**
 * Reads the index of an MP4 or MOV file. Fetches box headers, the movie box and, if fragmented, its fragment index: none
 * of the media. Rejects with `bad_media` or the read's error.
 */
export async function openMp4(source: ByteSource, options: MediaOpenOptions): Promise<MediaIndex> {
  const work = IndexWork.on(source, options.signal);
  const parts: FilePart[] = [];
  const warnings: string[] = [];
  let movie: Movie | null = null;
  for (let offset = 0;;) {
    let film: Film;
    try {
      film = await openFilm(work.part(offset, work.sizeBytes), options, movie, MAX_PARTS);
    } catch (error) {
      if (parts.length === 0 || !hasCode(error, "bad_media")) throw error;
      warnings.push("what follows the first film in the file is damaged and left out");
      break;
    }
    if (parts.length > 0 && !canFollow(parts[0]!.index.tracks, film.index.tracks)) {
      warnings.push("another film follows in the file, and is left out as its codecs differ");
      break;
    }
    parts.push({ offset, index: film.index });
    if (film.restAt === null) break;
    if (parts.length === MAX_PARTS) {
      warnings.push(`the file is more than ${MAX_PARTS} films: the rest is left out`);
      break;
    }
    movie = film.movie;
    offset += film.restAt;
  }
  const index = parts.length === 1 ? parts[0]!.index : await joinParts(parts, work);
  return { ...index, sourceBytes: work.sizeBytes, warnings: [...index.warnings, ...warnings] };
}

/** The first film of a file or of a part of it. */
interface Film {
  readonly index: MediaIndex;
  readonly movie: Movie;
  /** Where another film begins after it; null if none does. */
  readonly restAt: number | null;
}

/** Opens the film at the start of `work`: it has a movie box of its own, or consists of fragments of `before`. */
async function openFilm(
  work: IndexWork,
  options: MediaOpenOptions,
  before: Movie | null,
  depth: number,
): Promise<Film> {
  const reader = new HeaderReader(work, options.signal);
  const begins = before === null ? null : await reader.boxAt(0);
  const goesOn = before !== null && begins?.type !== "ftyp" && begins?.type !== "moov";
  const place = goesOn ? null : await findMovie(reader);
  const isUsable = (track: Track) =>
    isCarriable(track) || (!!options.transcode && wantsAac(track, "mp4", options.transcode));
  const movie = place === null ? before! : readMovie(await reader.load(place));
  const tabled = place === null ? NO_TABLES : await readTables(movie, work, isUsable);
  const moviesEnd = place?.end ?? 0;
  const first = movie.fragmentDefaults === null ? null : await firstFragment(reader, moviesEnd);
  if (first === null) {
    if (movie.fragmentDefaults === null || hasSamples(tabled.tables)) {
      return { index: await indexOf(movie, work, tabled), movie, restAt: null };
    }
    throw new MillraceError("bad_media", "a fragmented movie without a fragment");
  }
  const indexed = await readFragmentIndex(work, reader, moviesEnd, first, movie);
  if (indexed === null) {
    const final = await findFinalMovie(work, reader, first.end, await fragmentBytes(reader, first));
    if (final !== null) {
      const whole = readMovie(await reader.load(final));
      const tables = await readTables(whole, work, isUsable);
      if (samplesOf(tables.tables) > samplesOf(tabled.tables)) {
        return { index: await indexOf(whole, work, tables), movie: whole, restAt: null };
      }
    }
  }
  const startS = hasSamples(tabled.tables) ? tabled.earliest90k / 90_000 : null;
  const targetS = (options.segmentTargetMs ?? DEFAULT_SEGMENT_TARGET_MS) / 1000;
  const { likelyMs, ...fragments } = await openFragments(work, reader, { first, indexed, startS }, movie, targetS);
  const restAt = indexed === null ? null : await nextFileAfter(reader, indexed[indexed.length - 1]!.end);
  if (indexed === null && isSuspicious(fragments.timeline, likelyMs) && depth > 0) {
    const border = await findRestart(work, movie, first, await fragmentBytes(reader, first));
    if (border !== null) {
      const film = await openFilm(work.part(0, border), options, before, depth - 1);
      return { ...film, restAt: film.restAt ?? border };
    }
  }
  const tracks = movie.tracks.map((entry) => entry.track);
  const sourceBytes = restAt ?? work.sizeBytes;
  const base = { container: "mp4" as const, tracks, sourceBytes, ...fragments };
  if (startS === null) return { index: base, movie, restAt };
  // Access units in the movie box come first, then those of the fragments after it.
  const opening = await runsOfTables(tracks, { kind: "tabled", tables: tabled.tables }, work.sizeBytes, work);
  const index = {
    ...base,
    warnings: [...tabled.warnings, ...fragments.warnings],
    timeline: joinTimelines(opening, fragments.timeline),
  };
  return { index, movie, restAt };
}

/** Whether fragments without an index are much shorter than their bytes make likely. */
function isSuspicious({ runs }: StreamedTimeline, likelyMs: number): boolean {
  const last = runs[runs.length - 1];
  return last !== undefined && (last.startPts90k + last.durationPts90k) / 90 < likelyMs * SUSPICIOUS_SHARE;
}

async function indexOf(
  movie: Movie,
  work: IndexWork,
  { tables, warnings, earliest90k, isTrimmed }: Tables,
): Promise<MediaIndex> {
  const lengthMs = tables.reduce((most, table) => Math.max(most, table === null ? 0 : endOf(table) / 90), 0);
  return {
    container: "mp4",
    tracks: movie.tracks.map(({ track }, i) => ({ ...track, ...frameRateOf(track, tables[i] ?? null) })),
    // Some programs leave the length of the whole.
    durationMs: isTrimmed ? Math.min(movie.durationMs ?? lengthMs, lengthMs) : movie.durationMs,
    sourceBytes: work.sizeBytes,
    warnings,
    zero90k: -earliest90k,
    timeline: { kind: "tabled", tables },
    texts: await readTexts(movie, -earliest90k, work),
  };
}

/** The mean frame rate of pictures. */
function frameRateOf({ kind }: Track, table: SampleTable | null): Pick<Track, "frameRate"> {
  if (kind !== "video" || table === null || table.count < 2) return {};
  const span90k = table.dts90k.at(table.count - 1) - table.dts90k.at(0);
  return span90k > 0 ? { frameRate: (table.count - 1) * 90_000 / span90k } : {};
}

function samplesOf(tables: readonly (SampleTable | null)[]): number {
  return tables.reduce((sum, table) => sum + (table?.count ?? 0), 0);
}

function hasSamples(tables: readonly (SampleTable | null)[]): boolean {
  return samplesOf(tables) > 0;
}

/** Tables of all tracks, and the time that became their 0. */
interface Tables {
  readonly tables: readonly (SampleTable | null)[];
  readonly warnings: readonly string[];
  readonly earliest90k: number;
  /** An edit left out media at the beginning or the end. */
  readonly isTrimmed: boolean;
}

const NO_TABLES: Tables = { tables: [], warnings: [], earliest90k: 0, isTrimmed: false };
/** A film that begins this much before its cut is worth a warning, ms. */
const NOTICED_EARLY_MS = 200;

async function readTables(movie: Movie, work: IndexWork, isUsable: (track: Track) => boolean): Promise<Tables> {
  const warnings: string[] = [];
  let left = MAX_SAMPLES;
  const tables: (SampleTable | null)[] = [];
  let isTrimmed = false;
  let earlyMs = 0;
  for (const entry of movie.tracks) {
    const build = isCounted(entry) ? buildPcmTable : buildTable;
    const whole = isUsable(entry.track) ? await build(entry, left, work) : null;
    const isTrimmable = whole !== null && entry.onlyEdit !== null && movie.fragmentDefaults === null;
    const table = isTrimmable ? await trimToEdit(whole, entry.onlyEdit, left, work) : whole;
    tables.push(table);
    if (table !== whole) {
      isTrimmed = true;
      if (table !== null) earlyMs = Math.max(earlyMs, earlyByMs(table, entry.onlyEdit!));
    }
    if (!isUsable(entry.track)) continue;
    left -= table?.count ?? 0;
    if (entry.edits === null && declaresMore(entry, whole)) {
      warnings.push(`track ${entry.track.id} ends early: the file is incomplete`);
    }
    if (entry.hasOtherDescriptions) {
      warnings.push(
        `track ${entry.track.id} changes its codec data within the file: parts with other data may not play`,
      );
    }
    if (entry.edits !== null && (isCounted(entry) || movie.fragmentDefaults !== null)) {
      warnings.push(`track ${entry.track.id}: only the first edit is followed`);
    }
  }
  const starts90k = tables.flatMap((table) => table === null ? [] : [table.dts90k.at(0)]);
  const earliest90k = starts90k.length === 0 ? 0 : Math.min(...starts90k);
  if (earlyMs > NOTICED_EARLY_MS) {
    warnings.push(
      `the film is cut ${(earlyMs / 1000).toFixed(1)} s after a picture that decoding can start with: it begins there`,
    );
  }
  return { tables: fromZero(tables, earliest90k), warnings, earliest90k, isTrimmed };
}

/** Shifts all tracks together so that the earliest decoding time is 0. */
function fromZero(tables: (SampleTable | null)[], earliest90k: number): (SampleTable | null)[] {
  if (earliest90k === 0) return tables;
  return tables.map((table) => table === null ? null : { ...table, dts90k: table.dts90k.plus(-earliest90k) });
}

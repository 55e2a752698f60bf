/** Opens MP4 and QuickTime files: reads the movie box and answers the index. */
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import { elementaryFormat } from "../../mux/ts/elementary/carry.ts";
import type { MediaIndex, OpenOptions, SampleTable } from "../../timeline.ts";
import { wantsAac } from "../../transcode/choice.ts";
import { runsOfTables } from "../../transcode/tabled-runs.ts";
import type { Track } from "../../types.ts";
import { IndexWork } from "../work.ts";
import { findFinalMovie } from "./final-movie.ts";
import { firstFragment, fragmentBytes, openFragments, readFragmentIndex } from "./fragment-timeline.ts";
import { joinTimelines } from "./joined-timeline.ts";
import { findMovie, HeaderReader } from "./locate.ts";
import { type Movie, readMovie } from "./movie.ts";
import { buildPcmTable } from "./pcm-table.ts";
import { buildTable, declaresMore, MAX_SAMPLES } from "./sample-table.ts";

/**
 * Reads the index of an MP4 or MOV file. Fetches box headers, the movie box and, where fragmented, its fragment index:
 * nothing of the media. Rejects with `bad_media` or the read's error.
 */
export async function openMp4(source: ByteSource, options: OpenOptions): Promise<MediaIndex> {
  const work = IndexWork.on(source, options.signal);
  const reader = new HeaderReader(work, options.signal);
  const place = await findMovie(reader);
  const isUsable = (track: Track) =>
    elementaryFormat(track) !== null || (!!options.transcode && wantsAac(track, "mp4", options.transcode));
  const movie = readMovie(await reader.load(place));
  const tabled = await readTables(movie, work, isUsable);
  const first = movie.fragmentDefaults === null ? null : await firstFragment(reader, place.end);
  if (first === null) {
    if (movie.fragmentDefaults === null || hasSamples(tabled.tables)) return indexOf(movie, work, tabled);
    throw new MillraceError("bad_media", "a fragmented movie without a fragment");
  }
  const indexed = await readFragmentIndex(work, reader, place, first, movie);
  if (indexed === null) {
    const final = await findFinalMovie(work, reader, first.end, await fragmentBytes(reader, first));
    if (final !== null) {
      const whole = readMovie(await reader.load(final));
      const tables = await readTables(whole, work, isUsable);
      if (samplesOf(tables.tables) > samplesOf(tabled.tables)) return indexOf(whole, work, tables);
    }
  }
  const startS = hasSamples(tabled.tables) ? tabled.earliest90k / 90_000 : null;
  const fragments = await openFragments(work, reader, { first, indexed, startS }, movie);
  const tracks = movie.tracks.map((entry) => entry.track);
  const base = { container: "mp4" as const, tracks, sourceBytes: work.sizeBytes, ...fragments };
  if (startS === null) return base;
  // Access units in the movie box, and fragments behind it: one after the other.
  const opening = await runsOfTables(tracks, { kind: "tabled", tables: tabled.tables }, work.sizeBytes, work);
  return {
    ...base,
    warnings: [...tabled.warnings, ...fragments.warnings],
    timeline: joinTimelines(opening, fragments.timeline),
  };
}

function indexOf(movie: Movie, work: IndexWork, { tables, warnings }: Tables): MediaIndex {
  return {
    container: "mp4",
    tracks: movie.tracks.map((entry) => entry.track),
    durationMs: movie.durationMs,
    sourceBytes: work.sizeBytes,
    warnings,
    timeline: { kind: "tabled", tables },
  };
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
}

async function readTables(movie: Movie, work: IndexWork, isUsable: (track: Track) => boolean): Promise<Tables> {
  const warnings: string[] = [];
  let left = MAX_SAMPLES;
  const tables: (SampleTable | null)[] = [];
  for (const entry of movie.tracks) {
    const build = entry.track.codec === "pcm" ? buildPcmTable : buildTable;
    const table = isUsable(entry.track) ? await build(entry, left, work) : null;
    tables.push(table);
    if (!isUsable(entry.track)) continue;
    left -= table?.count ?? 0;
    if (declaresMore(entry, table)) warnings.push(`track ${entry.track.id} ends early: the file is incomplete`);
    if (entry.hasMoreEdits) warnings.push(`track ${entry.track.id}: only the first edit is followed`);
  }
  const starts90k = tables.flatMap((table) => table === null ? [] : [table.dts90k.at(0)]);
  const earliest90k = starts90k.length === 0 ? 0 : Math.min(...starts90k);
  return { tables: fromZero(tables, earliest90k), warnings, earliest90k };
}

/** Moves all tracks together so that the earliest decoding time is 0. */
function fromZero(tables: (SampleTable | null)[], earliest90k: number): (SampleTable | null)[] {
  if (earliest90k === 0) return tables;
  return tables.map((table) => table === null ? null : { ...table, dts90k: table.dts90k.plus(-earliest90k) });
}

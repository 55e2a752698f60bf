/** Opens MP4 and QuickTime files: reads the movie box and answers the index. */
import type { ByteSource } from "../../../bytes/source.ts";
import { elementaryFormat } from "../../mux/ts/elementary/carry.ts";
import type { MediaIndex, OpenOptions, SampleTable } from "../../timeline.ts";
import { wantsAac } from "../../transcode/choice.ts";
import type { Track } from "../../types.ts";
import { openFragments } from "./fragment-timeline.ts";
import { findMovie, HeaderReader } from "./locate.ts";
import { type Movie, readMovie } from "./movie.ts";
import { buildPcmTable } from "./pcm-table.ts";
import { buildTable, declaresMore, MAX_SAMPLES } from "./sample-table.ts";

/**
 * Reads the index of an MP4 or MOV file. Fetches box headers, the movie box and, where fragmented, its fragment index:
 * nothing of the media. Rejects with `bad_media` or the read's error.
 */
export async function openMp4(source: ByteSource, options: OpenOptions): Promise<MediaIndex> {
  const reader = new HeaderReader(source, options.signal);
  const place = await findMovie(reader);
  const movie = readMovie(await reader.load(place));
  const base = {
    container: "mp4" as const,
    tracks: movie.tracks.map((entry) => entry.track),
    sourceBytes: source.sizeBytes,
  };
  const { tables, warnings } = buildTables(
    movie,
    source.sizeBytes,
    (track) =>
      elementaryFormat(track) !== null || (!!options.transcode && wantsAac(track, base.container, options.transcode)),
  );
  if (movie.fragmentDefaults !== null && tables.every((table) => table === null)) {
    const fragments = await openFragments(source, reader, place, movie, options.signal);
    return { ...base, ...fragments };
  }
  return { ...base, durationMs: movie.durationMs, warnings, timeline: { kind: "tabled", tables } };
}

function buildTables(
  movie: Movie,
  sourceBytes: number,
  isUsable: (track: Track) => boolean,
): { tables: (SampleTable | null)[]; warnings: string[] } {
  const warnings: string[] = [];
  let budget = MAX_SAMPLES;
  const tables = movie.tracks.map((entry) => {
    if (!isUsable(entry.track)) return null;
    const build = entry.track.codec === "pcm" ? buildPcmTable : buildTable;
    const table = build(entry, sourceBytes, budget);
    budget -= table?.count ?? 0;
    if (declaresMore(entry, table)) warnings.push(`track ${entry.track.id} ends early: the file is incomplete`);
    if (entry.hasMoreEdits) warnings.push(`track ${entry.track.id}: only the first edit is followed`);
    return table;
  });
  return { tables: fromZero(tables), warnings };
}

/** Moves all tracks together so that the earliest decoding time is 0. */
function fromZero(tables: (SampleTable | null)[]): (SampleTable | null)[] {
  let earliest = Infinity;
  for (const table of tables) if (table !== null) earliest = Math.min(earliest, table.dts90k[0]!);
  if (Number.isFinite(earliest) && earliest !== 0) {
    for (const table of tables) {
      if (table === null) continue;
      for (let i = 0; i < table.count; i++) table.dts90k[i] = table.dts90k[i]! - earliest;
    }
  }
  return tables;
}

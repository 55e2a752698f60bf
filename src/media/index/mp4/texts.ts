/** Tables of the text tracks of a movie. They stand apart from those of media: no fault of theirs may end a film. */
import { hasCode } from "../../../errors.ts";
import { isTextCodec } from "../../subtitles/track-text.ts";
import type { TextTable } from "../../model/timeline.ts";
import type { IndexWork } from "../../source/work.ts";
import type { Movie } from "./movie.ts";
import { buildTable } from "./sample-table.ts";

/** Text tracks that are read, as many as are offered, and texts of all of them: ten hours of one a second in two languages. */
const MAX_TRACKS = 60;
const MAX_TEXTS = 100_000;

/** The tables of `movie`, all shifted by `shift90k`. Rejects with the signal's reason. */
export async function readTexts(movie: Movie, shift90k: number, work: IndexWork): Promise<readonly TextTable[]> {
  const found: TextTable[] = [];
  let left = MAX_TEXTS;
  for (const [track, entry] of movie.tracks.entries()) {
    if (found.length >= MAX_TRACKS || !isTextCodec(entry.track.codecId)) continue;
    try {
      const table = await buildTable(entry, left, work);
      if (table === null) continue;
      left -= table.count;
      found.push({ track, table: { ...table, dts90k: table.dts90k.plus(shift90k) } });
    } catch (error) {
      if (!hasCode(error, "bad_media")) throw error;
    }
  }
  return found;
}

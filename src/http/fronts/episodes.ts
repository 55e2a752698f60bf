/** Files of a torrent as the episodes of a series. */
import { looksPlayable } from "../../content/file-choice.ts";
import { compareNatural } from "../../metainfo/natural-order.ts";
import type { MetainfoFile } from "../../metainfo/types.ts";

/** One file. Seasons are those of its name, or 1; episodes count from 1 in each, in natural order. */
export interface Episode {
  readonly file: MetainfoFile;
  readonly title: string;
  readonly season: number;
  readonly episode: number;
}

/** The playable files in natural order. */
export function episodesOf(files: readonly MetainfoFile[]): readonly Episode[] {
  const counts = new Map<number, number>();
  return files.filter(looksPlayable).sort((a, b) => compareNatural(a.path, b.path)).map((file) => {
    const season = seasonOf(file.name);
    const episode = (counts.get(season) ?? 0) + 1;
    counts.set(season, episode);
    return { file, title: file.name.replace(/\.[^.]*$/, ""), season, episode };
  });
}

/** `S02E03` or `2x03`. */
function seasonOf(name: string): number {
  const match = /\bS(\d{1,2})[ ._-]?E\d|\b(\d{1,2})x\d{2}\b/i.exec(name);
  return Number(match?.[1] ?? match?.[2] ?? 1);
}

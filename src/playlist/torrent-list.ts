/** Makes an M3U list of one torrent: a season, an album, the parts of a film. */
import { compareNatural } from "../metainfo/natural-order.ts";
import type { M3uEntry } from "./m3u/m3u-entry.ts";
import { writeM3u } from "./m3u/write.ts";

/** A file of the torrent. */
export interface ListedFile {
  readonly index: number;
  /** Path in the torrent, separated by `/`. */
  readonly filename: string;
}

/** The torrent to list. */
export interface TorrentList {
  readonly name: string;
  readonly files: readonly ListedFile[];
  /** Playback address of a file; null: of the one stream of a broadcast. */
  readonly urlOf: (index: number | null) => string;
}

/** Yields the list: files in natural order, each titled by its name without folders and ending; a broadcast is one entry. */
export function torrentM3u({ name, files, urlOf }: TorrentList): AsyncGenerator<string> {
  const entries = files.length === 0
    ? [entry(name, urlOf(null), "")]
    : sortedFiles(files).map(({ title, index }) => entry(title, urlOf(index), name));
  return writeM3u({ attributes: {} }, entries);
}

/** Files in natural order, with titles for people. */
export function sortedFiles(files: readonly ListedFile[]): { readonly index: number; readonly title: string }[] {
  return [...files].sort((a, b) => compareNatural(a.filename, b.filename) || a.index - b.index)
    .map(({ filename, index }) => ({ index, title: titleOf(filename) }));
}

function entry(title: string, url: string, group: string): M3uEntry {
  const attributes: Record<string, string> = group === "" ? {} : { "group-title": group };
  return { url, title, durationSeconds: -1, attributes, group: "", directives: [] };
}

function titleOf(filename: string): string {
  const name = filename.slice(filename.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(0, dot) : name;
}

/** Which file of a torrent to play. */
import { type ContainerFacts, CONTAINERS } from "../bytes/container.ts";
import { FOREIGN_CONTAINERS } from "../bytes/foreign-container.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { Metainfo, MetainfoFile } from "../metainfo/types.ts";

/** What a file name suggests by its extension, before the file is read. */
interface Promised {
  readonly mime: string;
  /** `own`: the engine lays it out as MPEG TS; `film`: a film that ffmpeg alone reads; `sound`: carried only as AAC. */
  readonly kind: "own" | "film" | "sound";
}

/** By extension; being listed is what "playable" means. */
const PROMISED = new Map<string, Promised>();
for (const facts of Object.values<ContainerFacts>(CONTAINERS)) {
  for (const [extension, mime] of Object.entries(facts.extensions)) {
    PROMISED.set(extension, { mime, kind: facts.asAac ? "sound" : "own" });
  }
}
for (const { extensions } of FOREIGN_CONTAINERS) {
  for (const [extension, mime] of Object.entries(extensions)) {
    PROMISED.set(extension, { mime, kind: mime.startsWith("audio/") ? "sound" : "film" });
  }
}

/** Such a film is chosen if it is this many times as large as all other files: those are samples and extras. */
const MAIN_FILM_FACTOR = 4;

const extensionOf = (name: string): string => {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? "" : name.slice(dot + 1).toLowerCase();
};

/** MIME type by the file name; `application/octet-stream` when it says nothing. */
export function mimeTypeOf(name: string): string {
  return PROMISED.get(extensionOf(name))?.mime ?? "application/octet-stream";
}

/** True when the name promises a container that the engine can carry. */
export function looksPlayable(file: Pick<MetainfoFile, "name" | "sizeBytes" | "padding">): boolean {
  return !file.padding && file.sizeBytes > 0 && PROMISED.has(extensionOf(file.name));
}

/**
 * The file without `_idx`: the largest playable one; if no file is named like media, the only file. Files that need
 * ffmpeg come after all others, sound last, except for a film that is far larger. Throws `no_playable_file`.
 */
export function defaultFile(metainfo: Metainfo): MetainfoFile {
  const real = metainfo.files.filter((file) => !file.padding && file.sizeBytes > 0);
  const named = real.filter(looksPlayable);
  const among = (kind: Promised["kind"]) =>
    largest(named.filter(({ name }) => PROMISED.get(extensionOf(name))?.kind === kind));
  const [own, film] = [among("own"), among("film")];
  const isMain = film !== null && (own === null || film.sizeBytes > MAIN_FILM_FACTOR * own.sizeBytes);
  const best = (isMain ? film : own) ?? among("sound") ?? (real.length === 1 ? real[0]! : null);
  if (best === null) {
    throw new MillraceError("no_playable_file", `no playable file among the ${metainfo.files.length} of this torrent`);
  }
  return best;
}

function largest(files: readonly MetainfoFile[]): MetainfoFile | null {
  let best: MetainfoFile | null = null;
  for (const file of files) if (best === null || file.sizeBytes > best.sizeBytes) best = file;
  return best;
}

/**
 * The file of `_idx`, or the default one. A magnet's `so` (BEP 53) limits the files from which the default is chosen,
 * unless it leaves nothing playable. If given, `selected` (`playlist_selected_indexes`) limits them instead. Throws
 * `not_found` for an index that the torrent lacks, or `no_playable_file`.
 */
export function chooseFile(
  metainfo: Metainfo,
  index: number | undefined,
  selected: readonly number[] | null = null,
  magnetSelects: readonly number[] | null = null,
): MetainfoFile {
  const selectOnly = selected ?? magnetSelects;
  requireFiles(metainfo, "playlist_selected_indexes", selected ?? []);
  if (index === undefined) {
    const chosen = metainfo.files.filter((file) => selectOnly?.includes(file.index) && looksPlayable(file));
    return defaultFile(chosen.length > 0 ? { ...metainfo, files: chosen } : metainfo);
  }
  requireFiles(metainfo, "_idx", [index]);
  const file = metainfo.files[index]!;
  if (file.padding || file.sizeBytes === 0) {
    throw new MillraceError("no_playable_file", `_idx ${index}: the file is empty`);
  }
  return file;
}

/** Whether `defaultFile` is the file `index`. */
export function isDefaultFile(metainfo: Metainfo, index: number): boolean {
  try {
    return defaultFile(metainfo).index === index;
  } catch (error) {
    if (hasCode(error, "no_playable_file")) return false;
    throw error;
  }
}

/** Throws `not_found`, naming `parameter`, unless the torrent has files of all `indexes`. */
function requireFiles({ files }: Metainfo, parameter: string, indexes: readonly number[]): void {
  const missing = indexes.find((index) => files[index] === undefined);
  if (missing === undefined) return;
  throw new MillraceError("not_found", `${parameter} ${missing}: the torrent has files 0 to ${files.length - 1}`);
}

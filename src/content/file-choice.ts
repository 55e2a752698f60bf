/** Which file of a torrent to play. */
import { hasCode, MillraceError } from "../errors.ts";
import type { Metainfo, MetainfoFile } from "../metainfo/types.ts";

/** MIME types of containers by extension; being listed is what "playable" means before the file is looked into. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  mp4: "video/mp4",
  m4v: "video/mp4",
  mov: "video/quicktime",
  qt: "video/quicktime",
  "3gp": "video/3gpp",
  mkv: "video/x-matroska",
  mk3d: "video/x-matroska",
  webm: "video/webm",
  ts: "video/mp2t",
  tts: "video/mp2t",
  m2ts: "video/mp2t",
  mts: "video/mp2t",
  m2t: "video/mp2t",
  trp: "video/mp2t",
  m4a: "audio/mp4",
  m4b: "audio/mp4",
  mka: "audio/x-matroska",
  avi: "video/x-msvideo",
  mpg: "video/mpeg",
  mpeg: "video/mpeg",
  vob: "video/mpeg",
  m2p: "video/mpeg",
  divx: "video/x-msvideo",
  flv: "video/x-flv",
  f4v: "video/mp4",
  wmv: "video/x-ms-wmv",
  asf: "video/x-ms-asf",
  mp3: "audio/mpeg",
  mp2: "audio/mpeg",
  mpga: "audio/mpeg",
  aac: "audio/aac",
  ac3: "audio/ac3",
  eac3: "audio/eac3",
  ec3: "audio/eac3",
  flac: "audio/flac",
  ogg: "audio/ogg",
  oga: "audio/ogg",
  opus: "audio/ogg",
  wav: "audio/wav",
  spx: "audio/ogg",
  wma: "audio/x-ms-wma",
  ape: "audio/x-ape",
  wv: "audio/x-wavpack",
  tta: "audio/x-tta",
  tak: "audio/x-tak",
  mpc: "audio/x-musepack",
  aif: "audio/aiff",
  aiff: "audio/aiff",
  aifc: "audio/aiff",
  caf: "audio/x-caf",
  au: "audio/basic",
  w64: "audio/x-w64",
  amr: "audio/amr",
  dsf: "audio/x-dsf",
  dts: "audio/vnd.dts",
};

/** Containers the engine can lay out as MPEG TS. */
const CARRIED = new Set(
  [
    "mp4",
    "m4v",
    "f4v",
    "mov",
    "qt",
    "3gp",
    "mkv",
    "mk3d",
    "webm",
    "ts",
    "tts",
    "m2ts",
    "mts",
    "m2t",
    "trp",
    "m4a",
    "m4b",
    "mka",
    "mp3",
    "mp2",
    "mpga",
    "aac",
    "ac3",
    "eac3",
    "ec3",
  ],
);

/** Containers of sound that is carried only where it may become AAC: the engine chooses others first. */
const CARRIED_AS_AAC = new Set([
  ...["flac", "ogg", "oga", "opus", "wav", "spx", "wma", "ape", "wv", "tta", "tak", "mpc"],
  ...["aif", "aiff", "aifc", "caf", "au", "w64", "amr", "dsf", "dts"],
]);

/** Containers of films that ffmpeg alone reads. */
const FILMS_BY_FFMPEG = new Set(["avi", "divx", "mpg", "mpeg", "m2p", "vob", "flv", "wmv", "asf"]);
/** Such a film is chosen where it is so many times as large as all else: the rest are samples and extras. */
const MAIN_FILM_FACTOR = 4;

const extensionOf = (name: string): string => {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? "" : name.slice(dot + 1).toLowerCase();
};

/** MIME type by the file name; `application/octet-stream` when it says nothing. */
export function mimeTypeOf(name: string): string {
  return MEDIA_TYPES[extensionOf(name)] ?? "application/octet-stream";
}

/** True when the name promises a container that the engine can carry. */
export function looksPlayable(file: Pick<MetainfoFile, "name" | "sizeBytes" | "padding">): boolean {
  const extension = extensionOf(file.name);
  const isCarried = CARRIED.has(extension) || CARRIED_AS_AAC.has(extension) || FILMS_BY_FFMPEG.has(extension);
  return !file.padding && file.sizeBytes > 0 && isCarried;
}

/**
 * The file without `_idx`: the largest playable one, else (nothing is named like media) the largest when it is the only file.
 * What takes ffmpeg comes after all else, sound last, but for a film that is far larger. Throws `no_playable_file`.
 */
export function defaultFile(metainfo: Metainfo): MetainfoFile {
  const real = metainfo.files.filter((file) => !file.padding && file.sizeBytes > 0);
  const named = real.filter(looksPlayable);
  const among = (extensions: ReadonlySet<string>) =>
    largest(named.filter(({ name }) => extensions.has(extensionOf(name))));
  const [own, film] = [among(CARRIED), among(FILMS_BY_FFMPEG)];
  const isMain = film !== null && (own === null || film.sizeBytes > MAIN_FILM_FACTOR * own.sizeBytes);
  const best = (isMain ? film : own) ?? among(CARRIED_AS_AAC) ?? (real.length === 1 ? real[0]! : null);
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
 * The file of `_idx`, or the default one; a magnet's `so` (BEP 53) narrows what the default is taken from, unless it
 * leaves nothing playable, and `selected` (`playlist_selected_indexes`) does instead of it. Throws `not_found` for an index
 * that the torrent lacks, or `no_playable_file`.
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

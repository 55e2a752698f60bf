/** Files of a torrent that hold the subtitles of a film in it, recognised by their names. */
import { looksPlayable } from "../content/file-choice.ts";
import { languageOf } from "../media/model/language.ts";
import type { MetainfoFile } from "../metainfo/types.ts";

/** Most subtitles offered for one film: films come in no more languages. */
export const MAX_SIDECARS = 60;
/** Largest such file, bytes: those of long films have 200 KB. */
export const MAX_SIDECAR_BYTES = 2 * 1024 * 1024;

/** A file of subtitles. */
export interface Sidecar {
  readonly file: MetainfoFile;
  /** For people; different from those of the other files. */
  readonly name: string;
  /** BCP 47; null: its name does not say. */
  readonly language: string | null;
  readonly isForced: boolean;
  /** For people who hear badly. */
  readonly isForHearingImpaired: boolean;
}

/**
 * The subtitles of `film` among `files`: named like it (`Film.mkv`, `Film.en.srt`), in a folder named like it, or any
 * if the torrent has only this film.
 */
export function sidecarsOf(files: readonly MetainfoFile[], film: MetainfoFile): readonly Sidecar[] {
  const stem = stemOf(film.name).toLowerCase();
  const isAlone = files.filter(looksPlayable).length <= 1;
  const found: Sidecar[] = [];
  const names = new Set<string>();
  for (const file of files) {
    if (found.length >= MAX_SIDECARS) break;
    if (!/\.(?:srt|vtt)$/i.test(file.name) || file.padding || file.sizeBytes === 0) continue;
    if (file.sizeBytes > MAX_SIDECAR_BYTES) continue;
    const words = wordsFor(file, stem) ?? (isAlone ? stemOf(file.name) : null);
    if (words === null) continue;
    const language = languageOf(words);
    const isForced = /\bforced\b/i.test(words);
    const isForHearingImpaired = /\b(?:sdh|cc)\b/i.test(words);
    const notes = [...isForced ? ["forced"] : [], ...isForHearingImpaired ? ["SDH"] : []];
    const base = [language?.name ?? (words.trim() || stemOf(file.name)), ...notes].join(", ");
    let name = base;
    for (let n = 2; names.has(name); n++) name = `${base} ${n}`;
    names.add(name);
    found.push({ file, name, language: language?.tag ?? null, isForced, isForHearingImpaired });
  }
  return found;
}

/** The part of a file's name beyond that of the film; null when it belongs to another. */
function wordsFor(file: MetainfoFile, stem: string): string | null {
  const own = stemOf(file.name);
  if (own.toLowerCase().startsWith(stem) && !/^[\p{L}\p{N}]/u.test(own.slice(stem.length))) {
    return own.slice(stem.length).replace(/^[^\p{L}\p{N}]+/u, "");
  }
  return file.path.toLowerCase().split("/").slice(0, -1).includes(stem) ? own : null;
}

function stemOf(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot <= 0 ? name : name.slice(0, dot);
}

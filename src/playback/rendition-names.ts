/** Names and marks of the sounds and texts inside a film, as players list them. */
import { tagOf } from "../media/model/language.ts";
import type { Track } from "../media/model/types.ts";

/** What a list of renditions says of one. */
export interface RenditionName {
  /** For people. */
  readonly name: string;
  /** BCP 47; null: unknown. */
  readonly language: string | null;
  /** Values of `CHARACTERISTICS`. */
  readonly characteristics: readonly string[];
}

/** What the marks of a track are called, and their characteristics (RFC 8216, 4.3.4.1, and Apple's for comments). */
const MARKS: readonly (readonly [keyof Track, string, readonly string[]])[] = [
  ["isForced", "forced", []],
  ["isForHearingImpaired", "SDH", [
    "public.accessibility.transcribes-spoken-dialog",
    "public.accessibility.describes-music-and-sound",
  ]],
  ["isForVisuallyImpaired", "audio description", ["public.accessibility.describes-video"]],
  ["isCommentary", "commentary", ["public.auxiliary-content"]],
];

/** Characteristics of texts for people who hear badly. */
export const FOR_HEARING_IMPAIRED: readonly string[] = MARKS[1]![2];

/** The name of `track`; `kind` is what it is called where the file says nothing of it. */
export function renditionName(track: Track, kind: string): RenditionName {
  const language = track.language === null ? null : tagOf(track.language);
  const marks = MARKS.filter(([mark]) => track[mark] === true);
  const notes = marks.map(([, note]) => note)
    .filter((note) => !track.name?.toLowerCase().includes(note.toLowerCase()));
  return {
    name: [language?.name ?? track.language ?? kind, ...track.name === undefined ? [] : [track.name], ...notes].join(
      ", ",
    ),
    language: language?.tag ?? null,
    characteristics: marks.flatMap(([, , characteristics]) => characteristics),
  };
}

/** `renditions` with names that differ: players distinguish them by nothing else. */
export function distinct<T extends { readonly name: string }>(renditions: readonly T[]): T[] {
  const names = new Set<string>();
  return renditions.map((one) => {
    let { name } = one;
    for (let n = 2; names.has(name); n++) name = `${one.name} ${n}`;
    names.add(name);
    return { ...one, name };
  });
}

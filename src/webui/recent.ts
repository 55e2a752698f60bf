/** What this browser played last, and how far: for the first screen. The engine keeps the positions themselves. */

/** A film or a broadcast that was played. */
export interface Played {
  readonly infohash: string;
  /** As it was pasted, and the file, as the page's address has them. */
  readonly query: string;
  readonly file: number;
  readonly title: string;
  /** Where the picture stood, s; 0: at its beginning, or seen to its end. */
  readonly atS: number;
  /** 0 of a broadcast. */
  readonly durationS: number;
  /** A picture of it as a `data:` address; without one the picture before stays. */
  readonly still?: string | undefined;
  /** The file after it; kept once this one was seen to its end. */
  readonly next?: { readonly file: number; readonly title: string } | undefined;
}

/** A first screen's worth. */
const MAX_KEPT = 24;
/** Less than this is no film that somebody continues, s, nor is what comes after so much before its end. */
const EDGE_S = 30;

const KEY = "millrace-played";

/** The newest first, one entry per torrent. */
export function playedLately(): readonly Played[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

/** Puts it first. */
export function notePlayed(played: Played): void {
  keepPlayed(withPlayed(playedLately(), played));
}

/** `list` with `played` first, and without what that replaces. */
export function withPlayed(list: readonly Played[], played: Played): Played[] {
  const { atS, durationS, next, ...rest } = played;
  const isAtEnd = durationS > 0 && atS > durationS - EDGE_S;
  const place = atS < EDGE_S || isAtEnd ? 0 : Math.floor(atS);
  const before = list.find(({ infohash }) => infohash === played.infohash);
  const still = played.still ?? (before?.file === played.file ? before.still : undefined);
  const entry: Played = {
    ...rest,
    atS: place,
    durationS: Math.floor(durationS),
    ...still === undefined ? {} : { still },
    ...isAtEnd && next !== undefined ? { next } : {},
  };
  return [entry, ...list.filter(({ infohash }) => infohash !== played.infohash)].slice(0, MAX_KEPT);
}

/** Forgets everything that was played here. */
export function forgetPlayed(): void {
  keepPlayed([]);
}

function keepPlayed(list: readonly Played[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(list));
  } catch {
    // A browser that keeps nothing.
  }
}

/** What the user chose once and finds again: kept by this browser. */

/** Languages by their tags, empty: none was chosen; `volume` from 0 to 1. */
type Name = "sound" | "subtitles" | "volume" | "language";

/** What was kept; empty where nothing was, or where the browser keeps nothing. */
export function kept(name: Name): string {
  try {
    return localStorage.getItem(`millrace-${name}`) ?? "";
  } catch {
    return "";
  }
}

/** Keeps it; an empty value forgets it. */
export function keep(name: Name, value: string): void {
  try {
    if (value === "") localStorage.removeItem(`millrace-${name}`);
    else localStorage.setItem(`millrace-${name}`, value);
  } catch {
    // A browser that keeps nothing: it holds for this visit.
  }
}

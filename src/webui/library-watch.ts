/** Notices that the library changed, whoever changed it: another page, a program, a list that is fetched by the hour. */
import { call } from "./engine.ts";

/** Time between two looks, ms: a look is a number in an answer of some fifty bytes. */
const LOOK_EVERY_MS = 5000;

/** A library that changes with every look, as during an import, is loaded again once in so many: each time costs a search. */
const PATIENT_LOOKS = 12;

/** Calls `changed` after items were added, changed or removed, while the page is in sight, until `signal` fires. */
export async function watchLibrary(changed: () => void, signal: AbortSignal): Promise<void> {
  /** The number that belongs to what the page shows, and the one of the last look. */
  let shown: number | null = null;
  let last: number | null = null;
  let looks = 0;
  while (!signal.aborted) {
    // Without the token, or while the engine is away, there is nothing to notice.
    const version: number | null = document.hidden ? last : await versionNow().catch(() => last);
    if (signal.aborted) return;
    shown ??= version;
    if (version !== shown && (version === last || ++looks === PATIENT_LOOKS)) {
      changed();
      shown = version;
      looks = 0;
    }
    last = version;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

async function versionNow(): Promise<number> {
  return (await call<{ version: number }>("playlist_get_version")).version;
}

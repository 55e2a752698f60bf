/** Notices that the library changed, whoever changed it: another page, a program, a list that is fetched by the hour. */
import { call } from "./engine.ts";

/** Time between two looks, ms: a look is a number in an answer of some fifty bytes. */
const LOOK_EVERY_MS = 5000;

/** Calls `changed` soon after items were added, changed or removed, while the page is in sight, until `signal` fires. */
export async function watchLibrary(changed: () => void, signal: AbortSignal): Promise<void> {
  let known: number | null = null;
  while (!signal.aborted) {
    // Without the token, or while the engine is away, there is nothing to notice.
    const version = document.hidden ? known : await versionNow().catch(() => known);
    if (signal.aborted) return;
    if (known !== null && version !== known) changed();
    known = version;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

async function versionNow(): Promise<number> {
  return (await call<{ version: number }>("playlist_get_version")).version;
}

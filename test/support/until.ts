/** Waiting for what other programs do, where nothing can be awaited. */

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 25;

/** Resolves when `look` answers true; fails with `what` after `timeoutMs`. Errors of `look` end the wait. */
export async function until(
  what: string,
  look: () => boolean | Promise<boolean>,
  timeoutMs = 20_000,
): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

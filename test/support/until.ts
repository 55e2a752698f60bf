/** Waiting for what other programs do, where nothing can be awaited. */

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 25;

/**
 * Resolves when `look` answers true; fails with `what` after `timeoutMs`. Errors of `look` end the wait. The time is counted in
 * looks: where the machine is busy, they come later, as does what is waited for.
 */
export async function until(
  what: string,
  look: () => boolean | Promise<boolean>,
  timeoutMs = 20_000,
): Promise<void> {
  for (let left = Math.ceil(timeoutMs / LOOK_EVERY_MS); !(await look()); left--) {
    if (left === 0) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

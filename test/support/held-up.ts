/** What a busy machine adds to a time that is measured. */

/** Between two looks, ms. */
const LOOK_EVERY_MS = 10;

/** Adds up for how long this process did not get to run what was due: others had the machine. */
export function heldUp(): { ms(): number; stop(): void } {
  let ms = 0;
  let dueMs = performance.now() + LOOK_EVERY_MS;
  const late = () => Math.max(0, performance.now() - dueMs);
  const timer = setInterval(() => {
    ms += late();
    dueMs = performance.now() + LOOK_EVERY_MS;
  }, LOOK_EVERY_MS);
  return { ms: () => ms + late(), stop: () => clearInterval(timer) };
}

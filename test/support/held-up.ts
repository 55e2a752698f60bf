/** What a busy machine adds to a time that is measured. */

/** Between two looks, ms. */
const LOOK_EVERY_MS = 10;

/** Adds up, until it is stopped, for how long this process did not get to run what was due: others had the machine. */
export function heldUp(): { ms(): number; stop(): void } {
  let ms = 0;
  let dueMs = performance.now() + LOOK_EVERY_MS;
  const look = () => {
    const nowMs = performance.now();
    ms += Math.max(0, nowMs - dueMs);
    dueMs = nowMs + LOOK_EVERY_MS;
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  let isOver = false;
  return {
    ms: () => ms,
    stop() {
      if (!isOver) look();
      isOver = true;
      clearInterval(timer);
    },
  };
}

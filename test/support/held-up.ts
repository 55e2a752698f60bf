/** What a busy machine adds to a time that is measured. */
import process from "node:process";

/** Between two looks, ms. */
const LOOK_EVERY_MS = 10;

/**
 * Adds up, until it is stopped, for how long this process did not get to run what was due because others had the machine:
 * what it worked itself meanwhile is its own delay.
 */
export function heldUp(): { ms(): number; stop(): void } {
  let ms = 0;
  let dueMs = performance.now() + LOOK_EVERY_MS;
  let used = process.cpuUsage();
  const look = () => {
    const nowMs = performance.now();
    const { user, system } = process.cpuUsage(used);
    used = process.cpuUsage();
    ms += Math.max(0, nowMs - dueMs - (user + system) / 1000);
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

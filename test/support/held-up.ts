/** Measures how much a busy machine adds to a measured time. */
import process from "node:process";

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 10;

/**
 * Adds up, until it is stopped, how long this process could not run due work because other processes had the machine. Time
 * that the process itself worked does not count.
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

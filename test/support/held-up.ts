/** Measures how much a busy machine adds to a measured time. */
import { cpuMs } from "./cpu-time.ts";

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 10;

/**
 * Adds up, until it is stopped, how long this thread could not run due work because others had the machine. Time that it worked
 * itself does not count.
 */
export function heldUp(): { ms(): number; stop(): void } {
  let ms = 0;
  let dueMs = performance.now() + LOOK_EVERY_MS;
  let used = cpuMs();
  const look = () => {
    const nowMs = performance.now();
    const usedBefore = used;
    used = cpuMs();
    ms += Math.max(0, nowMs - dueMs - (used - usedBefore));
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

/** How long `work` takes, ms, less what others had of that time. */
export async function ownMs(work: () => Promise<unknown>): Promise<number> {
  const others = heldUp();
  const beforeMs = performance.now();
  try {
    await work();
    const tookMs = performance.now() - beforeMs;
    others.stop();
    return tookMs - others.ms();
  } finally {
    others.stop();
  }
}

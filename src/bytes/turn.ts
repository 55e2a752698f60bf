/** Long work in pieces: between them everybody else gets a turn. */
import { abortError } from "../errors.ts";

/**
 * Work may keep sockets waiting for so long, ms. Messages come back at once on Deno, which looks at its sockets after some
 * sixty of them; a timer lets it look each time, but takes 1 to 2 ms, too much for each of many short pieces.
 */
const BUSY_MS = 10;

/** When timers and sockets last had their turn: there is one event loop, whatever runs in it. */
let turnedMs = Number.NEGATIVE_INFINITY;
/** Work that waits for its turn. One goes on per timer: timers that fire together would add up to one long piece of work. */
const waiting: (() => void)[] = [];

/**
 * Whether timers and sockets have waited for so long (`busyMs`, default 10) that a loop should take `nextTurn`. For loops
 * whose steps are too short to take a turn after each: looking costs a tenth of a microsecond.
 */
export function isTurnDue(busyMs = BUSY_MS): boolean {
  return performance.now() - turnedMs > busyMs;
}

/** Resolves after timers and sockets had their turn, which takes 1 to 2 ms: for work that must not hold anybody up. */
export function socketTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(() => {
      turnedMs = performance.now();
      resolve();
    }, 0);
  });
}

/**
 * Resolves after what else waits in the event loop had its turn; timers and sockets have theirs at least once in 10 ms of
 * work, as far as its pieces are that short. Needed wherever a loop awaits nothing but the database on a local file: its
 * calls end at once, and reactions to promises alone would keep everybody waiting to the end.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (isTurnDue()) {
      if (waiting.push(resolve) === 1) setTimeout(resumeOne, 0);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

function resumeOne(): void {
  turnedMs = performance.now();
  waiting.shift()!();
  if (waiting.length > 0) setTimeout(resumeOne, 0);
}

/**
 * For loops that can run on memory alone: lets timers and sockets have their turn when it is due, and costs next to nothing
 * when it is not. Rejects with the signal's reason once it fired: without a turn nobody could have fired it.
 */
export async function turnWhenDue(signal: AbortSignal, busyMs = BUSY_MS): Promise<void> {
  if (signal.aborted) throw abortError(signal);
  if (!isTurnDue(busyMs)) return;
  await nextTurn();
  if (signal.aborted) throw abortError(signal);
}

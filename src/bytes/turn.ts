/** Splits long work, so that other tasks get turns in between. */
import { abortError } from "../errors.ts";

/**
 * How long work may keep sockets waiting, ms. On Deno a posted message arrives at once, and sockets are checked only
 * after some sixty messages; after a timer they are checked each time, but it takes 1 to 2 ms, too much for each of many
 * short steps.
 */
const BUSY_MS = 10;

/** When timers and sockets last had their turn: there is a single event loop, whatever runs in it. */
let turnedMs = Number.NEGATIVE_INFINITY;
/** Work that waits for its turn. One continues per timer: timers that fire together would add up to one long task. */
const waiting: (() => void)[] = [];

/**
 * True when timers and sockets have waited so long (`busyMs`, default 10) that a loop should call `nextTurn`. For loops
 * whose steps are too short to take a turn after each: checking costs a tenth of a microsecond.
 */
export function isTurnDue(busyMs = BUSY_MS): boolean {
  return performance.now() - turnedMs > busyMs;
}

/**
 * To be called by work that an event of a socket or timer has just woken: the others have had their turn. Otherwise each
 * step after a wait for the network would wait 1 to 2 ms more.
 */
export function noteTurn(): void {
  turnedMs = performance.now();
}

/** Resolves after timers and sockets had their turn, which takes 1 to 2 ms: for work that must not delay anybody. */
export function socketTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(() => {
      turnedMs = performance.now();
      resolve();
    }, 0);
  });
}

/**
 * Resolves after everything else in the event loop had its turn; timers and sockets get theirs at least once in 10 ms
 * of work, if its steps are that short. Needed wherever a loop awaits only the database on a local file: its calls
 * complete at once, and promise reactions alone would keep everything else waiting to the end.
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
 * For loops that can run on memory alone: gives timers and sockets their turn when it is due, and costs almost nothing
 * when it is not. Rejects with the signal's reason once it has fired: without a turn it never could.
 */
export async function turnWhenDue(signal: AbortSignal, busyMs = BUSY_MS): Promise<void> {
  if (signal.aborted) throw abortError(signal);
  if (!isTurnDue(busyMs)) return;
  await nextTurn();
  if (signal.aborted) throw abortError(signal);
}

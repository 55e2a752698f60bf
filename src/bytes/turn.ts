/** Long work in pieces: between them everybody else gets a turn. */

/**
 * Work may keep sockets waiting for so long, ms. Messages come back at once on Deno, which looks at its sockets after some
 * sixty of them; a timer lets it look each time, but takes 1 to 2 ms, too much for each of many short pieces.
 */
const BUSY_MS = 10;

/** When timers and sockets last had their turn: there is one event loop, whatever runs in it. */
let turnedMs = Number.NEGATIVE_INFINITY;

/**
 * Resolves after what else waits in the event loop had its turn; timers and sockets have theirs at least once in 10 ms of
 * work, as far as its pieces are that short. Needed wherever a loop awaits nothing but the database on a local file: its
 * calls end at once, and reactions to promises alone would keep everybody waiting to the end.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (performance.now() - turnedMs > BUSY_MS) {
      setTimeout(() => {
        turnedMs = performance.now();
        resolve();
      }, 0);
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

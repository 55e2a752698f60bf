/** Long work in pieces: between them everybody else gets a turn. */

/**
 * Resolves after what else waits in the event loop had its turn. Needed wherever a loop awaits nothing but the database on a
 * local file: its calls end at once, and reactions to promises alone would keep timers and sockets waiting to the end.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Faults in handlers that the engine gave to sockets. */

/**
 * Calls a handler. An exception is reported as one that nobody caught, after `failed`: thrown here, it would end the loop
 * in which some runtimes read the socket, without a word.
 */
export function handled(handler: () => void, failed: () => void = () => {}): void {
  try {
    handler();
  } catch (error) {
    failed();
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** Runs many tasks, a few at a time. */

/** Runs `work` on every item, starting them in order, at most `concurrency` at once. Rejects with the first failure. */
export async function forEachLimited<T>(
  items: Iterable<T>,
  concurrency: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  let failed = false;
  const lane = async (): Promise<void> => {
    for (let next = iterator.next(); !failed && !next.done; next = iterator.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
}

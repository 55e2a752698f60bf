/** A promise that is settled from outside, as `Promise.withResolvers` makes it: Node 20, which the built file runs on, lacks that. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | PromiseLike<T>) => void;
  readonly reject: (reason: unknown) => void;
}

/** A new one. */
export function deferred<T>(): Deferred<T> {
  let settle: Pick<Deferred<T>, "resolve" | "reject">;
  const promise = new Promise<T>((resolve, reject) => settle = { resolve, reject });
  return { promise, ...settle! };
}

/** Whether an object is still reachable: for tests that nothing keeps what has ended. */
import process from "node:process";
import v8 from "node:v8";
import vm from "node:vm";

/** Collections after which an object counts as kept: caches of the runtimes let go after two or three. */
const COLLECTIONS = 8;

/** Collects garbage now. */
function collector(): () => void {
  if (process.versions["bun"] !== undefined) {
    const { Bun } = globalThis as unknown as { Bun: { gc(isSynchronous: boolean): void } };
    return () => Bun.gc(true);
  }
  v8.setFlagsFromString("--expose-gc");
  return vm.runInNewContext("gc") as () => void;
}

/** Collects garbage; resolves to whether `ref` lost its object. */
export async function isCollected(ref: WeakRef<object>): Promise<boolean> {
  const collect = collector();
  for (let round = 0; round < COLLECTIONS; round++) {
    // In tasks of their own: an object that was in use in this one, or that `deref` returned, stays until the task ends.
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (ref.deref() === undefined) return true;
    await new Promise((resolve) => setTimeout(resolve, 0));
    collect();
  }
  return false;
}

/** Bytes of objects and buffers that are reachable, after collections: a comparison within one process. */
export async function usedBytes(): Promise<number> {
  const collect = collector();
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  // On Bun buffers count in both.
  return process.versions["bun"] !== undefined ? heapUsed : heapUsed + external;
}

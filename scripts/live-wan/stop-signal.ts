/** Ends a run in order when the user stops the program. */
import process from "node:process";

/** Aborted by the first SIGINT or SIGTERM; the second one ends the program. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => controller.abort(new Error(name)));
  return controller.signal;
}

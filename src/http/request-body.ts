/** Bodies of requests: not every runtime's server gives up a client that stops in the middle of one. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";

/** Longest pause within a body, ms: beyond it the client is gone, or holds a place that others wait for. */
export const BODY_IDLE_MS = 20_000;

/** Chunks of `request`'s body, none without one. Fails with `timeout` when nothing comes for `BODY_IDLE_MS`. */
export async function* bodyChunks(request: Request, clock: Clock): AsyncGenerator<Uint8Array, void> {
  const reader = request.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const late = deadline(clock, BODY_IDLE_MS, undefined, () => {
        return new MillraceError("timeout", "the body of the request stopped coming");
      });
      const { done, value } = await withSignal(reader.read(), late.signal).finally(() => late.cancel());
      if (done) return;
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Bodies of requests: read within deadlines, and counted while they are held. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { lenderOf } from "../bytes/lent-chunks.ts";
import { readBounded } from "../bytes/read-bounded.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import type { BodyHold } from "./admission.ts";

/** Longest pause within a body, ms. After it the client is gone, or holds a place that others wait for. */
export const BODY_IDLE_MS = 20_000;
/** Longest time for a whole body that is held in memory, ms: 16 MiB at 2.5 Mbit/s. */
export const BODY_WHOLE_MS = 60_000;

/**
 * Chunks of `request`'s body, none without one. Fails with `timeout` when nothing comes for `BODY_IDLE_MS`, or when the
 * body has not ended after `wholeMs`; default: no such limit.
 */
export async function* bodyChunks(request: Request, clock: Clock, wholeMs?: number): AsyncGenerator<Uint8Array, void> {
  const reader = request.body?.getReader();
  if (reader === undefined) return;
  const whole = wholeMs === undefined ? null : deadline(clock, wholeMs, undefined, () => {
    return new MillraceError("timeout", `the body of the request took longer than ${wholeMs / 1000} s`);
  });
  try {
    for (;;) {
      const late = deadline(clock, BODY_IDLE_MS, whole?.signal, () => {
        return new MillraceError("timeout", "the body of the request stopped coming");
      });
      const { done, value } = await withSignal(reader.read(), late.signal).finally(() => late.cancel());
      if (done) return;
      yield value;
    }
  } finally {
    whole?.cancel();
    void reader.cancel().catch(() => {});
  }
}

/**
 * All of `request`'s body. Throws `tooLarge()` beyond `maxBytes`, before anything is read when the length is declared;
 * `too_busy` when `hold` has no room for it; or as `bodyChunks`.
 */
export async function readBody(
  request: Request,
  clock: Clock,
  maxBytes: number,
  hold: BodyHold,
  tooLarge: () => Error,
): Promise<Uint8Array<ArrayBuffer>> {
  if (request.body === null) return new Uint8Array(0);
  const declared = request.headers.get("content-length");
  if (Number(declared ?? 0) > maxBytes) throw tooLarge();
  hold.announce(declared === null ? null : Number(declared));
  const lender = lenderOf(request.body);
  const counted = async function* () {
    for await (const chunk of bodyChunks(request, clock, BODY_WHOLE_MS)) {
      hold.add(chunk.length);
      yield chunk;
      // It has been copied; otherwise tens of megabytes of such chunks would wait for the collector.
      lender?.release(chunk);
    }
  };
  return await readBounded(counted(), maxBytes, tooLarge, declared === null ? undefined : Number(declared));
}

/** Bodies of fetched addresses: decompressed, bounded in size and silence. */
import { gunzipped } from "../bytes/gunzip.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";

/** Limits of a body. */
export interface BodyLimits {
  /** Bytes after decompression; null: no limit. */
  readonly maxBytes: number | null;
  /** Longest silence while a reader waits. */
  readonly idleMs: number;
  /** Fewest bytes per second of waiting, over `PACE_MS` or more; 0: no limit. */
  readonly minBytesPerS: number;
}

/** Waiting after which the pace of a body counts, ms. */
const PACE_MS = 60_000;

/** What a body may cost that is larger than `maxBytes`. */
export function tooLarge(maxBytes: number): MillraceError {
  return new MillraceError("too_large", `the answer is larger than ${maxBytes} bytes`);
}

/** `body` without its gzip coding (RFC 1952). Errors with `protocol_violation` when it is damaged. */
export function unpacked(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  return gunzipped(body, (cause) => new MillraceError("protocol_violation", "the answer is damaged", { cause }));
}

/**
 * `body` within `limits`. Beyond `maxBytes` it errors with `too_large`. After `idleMs` of silence `stop` is called with
 * an error of code `timeout`, and should end the source. A slow body errors with `timeout`. Errors that are not ours become `protocol_violation`.
 */
export function bounded(
  body: ReadableStream<Uint8Array>,
  { maxBytes, idleMs, minBytesPerS }: BodyLimits,
  clock: Clock,
  stop: (reason: MillraceError) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let total = 0;
  let waitedMs = 0;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const silence = clock.setTimeout(
        () => stop(new MillraceError("timeout", `nothing was sent for ${idleMs} ms`)),
        idleMs,
      );
      const begun = clock.monotonic();
      try {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        total += value.length;
        waitedMs += clock.monotonic() - begun;
        if (waitedMs >= PACE_MS && total < minBytesPerS * waitedMs / 1000) {
          throw new MillraceError("timeout", `only ${total} bytes were sent in ${Math.round(waitedMs / 1000)} s`);
        }
        if (maxBytes !== null && total > maxBytes) throw tooLarge(maxBytes);
        controller.enqueue(value);
      } catch (error) {
        reader.cancel(error).catch(() => {});
        if (error instanceof MillraceError) throw error;
        throw new MillraceError("protocol_violation", "the answer is damaged", { cause: error });
      } finally {
        silence.cancel();
      }
    },
    // The reader of a body that broke off before it was read wanted only its head.
    cancel: (reason) => reader.cancel(reason).catch(() => {}),
  }, { highWaterMark: 0 });
}

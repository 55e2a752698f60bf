/** Standard input: one stream that cannot be opened again. */
import { withSignal } from "../bytes/deadline.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import type { Clock } from "../ports.ts";
import { SENDER_PACE } from "./http.ts";
import { within } from "./input.ts";
import { paced } from "./pacer.ts";
import { inPackets } from "./packets.ts";
import { FatalSourceError, SILENT_AFTER_MS } from "./retry.ts";
import { checkedHead, isTransportStream } from "./sniff.ts";

/** Reads `stream` to its end, no faster than its clock runs. Silence is a loss, after which the stream may continue. */
export function pipeEvents(
  stream: ReadableStream<Uint8Array>,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  return paced(inPackets(read(stream, clock, signal)), clock, SENDER_PACE, signal);
}

async function* read(
  stream: ReadableStream<Uint8Array>,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  const chunks = checkedHead(stream, (head) => {
    if (isTransportStream(head)) return;
    throw new FatalSourceError(
      "unsupported_media",
      "standard input is no MPEG TS: have what writes it make one, with ffmpeg: -f mpegts -",
    );
  });
  try {
    for (let pending = chunks.next();;) {
      let next = await within(clock, SILENT_AFTER_MS, pending, signal);
      if (next === null) {
        yield { kind: "lost", reason: `nothing came for ${SILENT_AFTER_MS / 1000} s` };
        // One listener for all waits: a new wait every few seconds would leave something of each with the same promise.
        next = await withSignal(pending, signal);
      }
      if (next.done) return;
      yield { kind: "data", bytes: next.value };
      pending = chunks.next();
    }
  } finally {
    // Not awaited: a read under way ends when the program does.
    void chunks.return().catch(() => {});
  }
}

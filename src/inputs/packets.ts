/**
 * Bytes of a source as whole packets, cut where their clock jumps: the times after a cut do not continue those before.
 */
import { PACKET_BYTES, pcrAt, pidOf, unusable } from "../bytes/ts/packet.ts";
import { PcrSteps } from "../bytes/ts/pcr-steps.ts";
import { readPcr } from "../bytes/ts/stamps.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import { TsResync } from "../bytes/ts/resync.ts";

/** `events` with data in whole packets, and a loss wherever bytes were left out or the clock jumped. */
export async function* inPackets(events: AsyncIterable<LiveInputEvent>): AsyncGenerator<LiveInputEvent, void> {
  const resync = new TsResync();
  const clock = new PcrSteps();
  // A loss was reported, and the bytes left out after it belong to it.
  let isTold = true;
  for await (const event of events) {
    if (event.kind === "lost") {
      resync.reset();
      clock.cut();
      isTold = true;
      yield event;
      continue;
    }
    for (const { packets, lost } of resync.push(event.bytes)) {
      if (lost && !isTold) yield { kind: "lost", reason: "bytes came that are no transport packets" };
      isTold = false;
      let from = 0;
      for (let at = 0; at < packets.length; at += PACKET_BYTES) {
        const place = unusable(packets, at) ? -1 : pcrAt(packets, at);
        const step = place < 0 ? null : clock.next(pidOf(packets, at), readPcr(packets, place));
        if (step?.isJump !== true) continue;
        if (at > from) yield { kind: "data", bytes: packets.subarray(from, at) };
        from = at;
        yield { kind: "lost", reason: `the clock of the stream jumped by ${(step.ticks / 90_000).toFixed(1)} s` };
      }
      if (from < packets.length) yield { kind: "data", bytes: packets.subarray(from) };
    }
  }
}

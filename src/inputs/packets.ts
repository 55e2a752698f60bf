/**
 * Bytes of a source as whole packets, cut where their clock jumps: the times after a cut do not continue those before.
 */
import { PACKET_BYTES, pcrAt, pidOf, unusable } from "../bytes/ts/packet.ts";
import { readPcr, stepBetween } from "../bytes/ts/stamps.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import { TsResync } from "../bytes/ts/resync.ts";

/**
 * A step ahead beyond this, 90 kHz, or one back, is a jump. Below it something was lost, and the times continue: PCRs
 * are 0.1 s apart at most (ISO/IEC 13818-1, 2.7.2).
 */
const MAX_STEP_90K = 10 * 90_000;
/** PCRs of other PIDs in a row after which the one followed is gone: a program map has changed. */
const LOST_PID_PCRS = 64;

/** `events` with data in whole packets, and a loss wherever bytes were left out or the clock jumped. */
export async function* inPackets(events: AsyncIterable<LiveInputEvent>): AsyncGenerator<LiveInputEvent, void> {
  const resync = new TsResync();
  let clock = new ClockWatch();
  // A loss was reported, and the bytes left out after it belong to it.
  let isTold = true;
  for await (const event of events) {
    if (event.kind === "lost") {
      resync.reset();
      clock = new ClockWatch();
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
        const jumpMs = place < 0 ? 0 : clock.jumpMs(pidOf(packets, at), readPcr(packets, place));
        if (jumpMs === 0) continue;
        if (at > from) yield { kind: "data", bytes: packets.subarray(from, at) };
        from = at;
        yield { kind: "lost", reason: `the clock of the stream jumped by ${(jumpMs / 1000).toFixed(1)} s` };
      }
      if (from < packets.length) yield { kind: "data", bytes: packets.subarray(from) };
    }
  }
}

/** Follows the clock of one PID. */
class ClockWatch {
  #pid = -1;
  #foreign = 0;
  #last = 0;

  /** How far the clock jumped with this PCR, ms; 0 when it continued. */
  jumpMs(pid: number, pcr: number): number {
    if (pid !== this.#pid) {
      if (this.#pid >= 0 && ++this.#foreign < LOST_PID_PCRS) return 0;
      this.#pid = pid;
      this.#last = pcr;
    }
    this.#foreign = 0;
    const step = stepBetween(this.#last, pcr);
    this.#last = pcr;
    return step < 0 || step > MAX_STEP_90K ? step / 90 : 0;
  }
}

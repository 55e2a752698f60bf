/** Lets a transport stream go no faster than its own clock: for files, pipes and servers that deliver all at once. */
import { PACKET_BYTES, pcrAt, pidOf, unusable } from "../bytes/ts/packet.ts";
import { readPcr, stepBetween } from "../bytes/ts/stamps.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import type { Clock } from "../ports.ts";
import { sleep } from "../bytes/deadline.ts";
import { FatalSourceError } from "./retry.ts";

/** PCRs are 100 ms apart at most (ISO/IEC 13818-1, 2.7.2), in practice seldom 500; a longer step is a jump, ms. */
const MAX_STEP_MS = 2000;
/** A stream later than this, ms, does not catch up: it was held up, and its clock starts again. */
const MAX_LATE_MS = 2000;
/** PCRs of other PIDs in a row after which the one followed is gone: a program map has changed. */
const LOST_PID_PCRS = 64;
/** Shortest wait, ms: below it timers are no more exact than no wait. */
const MIN_WAIT_MS = 2;

/**
 * How far a stream that a sender paces may be ahead of its clock, ms: restreamers begin with a burst of a few seconds,
 * which would be delay forever after if it were held back.
 */
export const LIVE_LEAD_MS = 3000;
/** Such a sender's clock may be faster than ours: crystals are within 100 ppm, and beyond the lead we would hold it back. */
export const LIVE_RATE = 1.0005;

/** How to pace. */
export interface Pace {
  /** How far ahead of its time data may leave, ms. */
  readonly leadMs: number;
  /** Speed, 1 is real time. Asked again at each PCR. */
  rate(): number;
  /** Whether nothing but the PCR holds the data back, so that a stream without one cannot be sent. */
  readonly needsClock: boolean;
}

/** A stream has a PCR by then, bytes: more than a tenth of a second of any that is broadcast. */
const CLOCK_WITHIN_BYTES = 4 * 1024 * 1024;

/** Says when a PCR is due. Follows one PID. */
export class PcrClock {
  readonly #clock: Clock;
  readonly #pace: Pace;
  #pid = -1;
  #foreign = 0;
  #last: number | null = null;
  /** Monotonic time at which the last PCR was due; before the first, so long ago that this is due at once. */
  #dueMs = -Infinity;

  constructor(clock: Clock, pace: Pace) {
    this.#clock = clock;
    this.#pace = pace;
  }

  /** The stream jumped: the next PCR is due at once if it is the first, else where the last one was. */
  jump(): void {
    this.#last = null;
  }

  /** How long the packet with this PCR (90 kHz, 33 bits) is to wait, ms; 0 for one that is due. */
  waitMs(pid: number, pcr: number): number {
    if (pid !== this.#pid) {
      if (this.#pid >= 0 && ++this.#foreign < LOST_PID_PCRS) return 0;
      this.#pid = pid;
      this.#last = null;
    }
    this.#foreign = 0;
    const nowMs = this.#clock.monotonic();
    const stepMs = this.#last === null ? 0 : stepBetween(this.#last, pcr) / 90;
    this.#last = pcr;
    if (stepMs > 0 && stepMs <= MAX_STEP_MS) this.#dueMs += stepMs / this.#pace.rate();
    if (nowMs - this.#dueMs > MAX_LATE_MS) this.#dueMs = nowMs;
    const waitMs = this.#dueMs - this.#pace.leadMs - nowMs;
    return waitMs < MIN_WAIT_MS ? 0 : waitMs;
  }
}

/**
 * `events`, whose data are whole packets: each PCR leaves no earlier than it is due, together with the packets after
 * it.
 */
export async function* paced(
  events: AsyncIterable<LiveInputEvent>,
  clock: Clock,
  pace: Pace,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  const pcrs = new PcrClock(clock, pace);
  let clocklessBytes = 0;
  for await (const event of events) {
    if (event.kind === "lost") {
      pcrs.jump();
      yield event;
      continue;
    }
    const packets = event.bytes;
    clocklessBytes += packets.length;
    let from = 0;
    for (let at = 0; at < packets.length; at += PACKET_BYTES) {
      const place = unusable(packets, at) ? -1 : pcrAt(packets, at);
      if (place < 0) continue;
      clocklessBytes = 0;
      const waitMs = pcrs.waitMs(pidOf(packets, at), readPcr(packets, place));
      if (waitMs === 0) continue;
      if (at > from) yield { kind: "data", bytes: packets.subarray(from, at) };
      from = at;
      await sleep(clock, waitMs, signal);
    }
    if (pace.needsClock && clocklessBytes > CLOCK_WITHIN_BYTES) {
      throw new FatalSourceError("bad_media", "the stream has no clock (PCR), so that its speed is not known");
    }
    if (from < packets.length) yield { kind: "data", bytes: packets.subarray(from) };
  }
}

/** Lets a transport stream go no faster than its own clock: for files, pipes and servers that deliver all at once. */
import { Allowance } from "../bytes/allowance.ts";
import { PACKET_BYTES, pcrAt, pidOf, unusable } from "../bytes/ts/packet.ts";
import { PcrSteps } from "../bytes/ts/pcr-steps.ts";
import { readPcr } from "../bytes/ts/stamps.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import type { Clock } from "../ports.ts";
import { sleep } from "../bytes/deadline.ts";
import { FatalSourceError } from "./retry.ts";

/** A stream later than this, ms, does not catch up: it was held up, and its clock starts again. */
const MAX_LATE_MS = 2000;
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
  /** Mean rate, bytes/s: stands in for a PCR that is missing for long or useless. Default: not known. */
  readonly bytesPerS?: number | null;
}

/** A stream has a PCR by then, bytes: more than a tenth of a second of any that is broadcast. */
const CLOCK_WITHIN_BYTES = 4 * 1024 * 1024;
/** Its clock has moved by then, bytes: ten seconds at 25 Mb/s, as between two slides. */
const MOVES_WITHIN_BYTES = 32 * 1024 * 1024;
/** The same where the mean rate is known, s of it, and at least `CLOCK_WITHIN_BYTES`: a still picture may be that large. */
const MOVES_WITHIN_S = 10;
/** Data that is looked at together where no PCR divides it, bytes. */
const UNTIMED_STEP_BYTES = 64 * 1024;

/**
 * Read no faster than this, bytes per second, with so much saved up, bytes: a satellite transponder carries 10 MB per second.
 * Nothing else holds back a sender without a clock, which would keep a core busy for as long as it sends.
 */
const MOST_BYTES_PER_S = 16 * 1024 * 1024;
const BURST_BYTES = 16 * 1024 * 1024;
/** Pause of a sender that is faster, ms. */
const REST_MS = 50;

/** Says when a PCR is due. Follows one PID, whose jumps are reported to it. */
export class PcrClock {
  readonly #clock: Clock;
  readonly #pace: Pace;
  readonly #steps = new PcrSteps();
  /** Monotonic time at which the last PCR was due; before the first, so long ago that this is due at once. */
  #dueMs = -Infinity;
  /** Bytes since the clock last moved. */
  #bytes = 0;
  /** A PCR has come. */
  #hasBegun = false;

  constructor(clock: Clock, pace: Pace) {
    this.#clock = clock;
    this.#pace = pace;
  }

  /**
   * The next PCR does not continue the last one: it is due at once if it is the first, else after the time of the bytes
   * between them if that is known.
   */
  jump(): void {
    this.#steps.cut();
    this.#dueMs += this.#takeMs(this.#bytes);
    this.#bytes = 0;
  }

  /** How long the packet with this PCR (90 kHz, 33 bits) is to wait, ms; 0 for one that is due. */
  waitMs(pid: number, pcr: number): number {
    const step = this.#steps.next(pid, pcr);
    if (step === null) return 0;
    this.#hasBegun = true;
    if (step.ticks > 0) {
      this.#dueMs += step.ticks / 90 / this.#pace.rate();
      this.#bytes = 0;
    }
    return this.#untilDue();
  }

  /**
   * How long the data after `bytes` more without a PCR is to wait, ms. Throws `bad_media` if nothing says how fast it is
   * to be sent.
   */
  untimedMs(bytes: number): number {
    const { bytesPerS = null, needsClock } = this.#pace;
    this.#bytes += bytes;
    if (this.#bytes <= this.#mostUntimed(bytesPerS)) return 0;
    if (bytesPerS === null) {
      if (!needsClock) return 0;
      throw new FatalSourceError("bad_media", "the stream has no clock (PCR), so that its speed is not known");
    }
    this.#dueMs += this.#takeMs(bytes);
    return this.#untilDue();
  }

  #mostUntimed(bytesPerS: number | null): number {
    if (!this.#hasBegun) return CLOCK_WITHIN_BYTES;
    return bytesPerS === null ? MOVES_WITHIN_BYTES : Math.max(CLOCK_WITHIN_BYTES, bytesPerS * MOVES_WITHIN_S);
  }

  /** Time in which `bytes` are sent at the mean rate, ms; 0 if it is not known. */
  #takeMs(bytes: number): number {
    const { bytesPerS = null, rate } = this.#pace;
    return bytesPerS === null ? 0 : bytes / bytesPerS * 1000 / rate();
  }

  #untilDue(): number {
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#dueMs > MAX_LATE_MS) this.#dueMs = nowMs;
    const waitMs = this.#dueMs - this.#pace.leadMs - nowMs;
    return waitMs < MIN_WAIT_MS ? 0 : waitMs;
  }
}

/**
 * `events` as `inPackets` cuts them, where the clock jumps, too: each PCR leaves no earlier than it is due, together with
 * the packets after it. None is read faster than any broadcast is.
 */
export async function* paced(
  events: AsyncIterable<LiveInputEvent>,
  clock: Clock,
  pace: Pace,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  const pcrs = new PcrClock(clock, pace);
  const allowance = new Allowance(MOST_BYTES_PER_S, BURST_BYTES, clock.monotonic());
  for await (const event of events) {
    if (event.kind === "lost") {
      pcrs.jump();
      yield event;
      continue;
    }
    const packets = event.bytes;
    const mayPass = () => allowance.take(Math.min(packets.length, BURST_BYTES), () => clock.monotonic());
    while (!mayPass()) await sleep(clock, REST_MS, signal);
    let from = 0;
    let untimed = 0;
    for (let at = 0; at < packets.length; at += PACKET_BYTES) {
      const place = unusable(packets, at) ? -1 : pcrAt(packets, at);
      let waitMs = 0;
      if (place >= 0 || at - untimed >= UNTIMED_STEP_BYTES) {
        waitMs = pcrs.untimedMs(at - untimed);
        untimed = at;
      }
      if (place >= 0) waitMs = pcrs.waitMs(pidOf(packets, at), readPcr(packets, place));
      if (waitMs === 0) continue;
      if (at > from) yield { kind: "data", bytes: packets.subarray(from, at) };
      from = at;
      await sleep(clock, waitMs, signal);
    }
    pcrs.untimedMs(packets.length - untimed);
    if (from < packets.length) yield { kind: "data", bytes: packets.subarray(from) };
  }
}

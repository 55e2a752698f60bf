/** What each PCR of a stream says about the one before it: time passed, or the clock was set. */
import { stepBetween } from "./stamps.ts";

/**
 * A longer step ahead is a jump, 90 kHz, unless the stream's steps are like that. PCRs are 0.1 s apart at most (ISO/IEC
 * 13818-1, 2.7.2), in practice seldom 0.5 s.
 */
const LONG_90K = 2 * 90_000;
/** The same while no step is known: muxers that write the PCR with pictures alone have it as seldom as those. */
const LONG_FIRST_90K = 10 * 90_000;
/** Such a stream's steps vary, but less than this many times. */
const VARIES = 2;
/** Beyond this, 90 kHz, it is always a jump: nobody would wait for it. */
const LONGEST_90K = 60 * 90_000;
/** Newest steps that say how long steps are. */
const RECENT = 8;
/** PCRs of other PIDs in a row after which the one followed is gone: a program map has changed. */
const LOST_PID_PCRS = 64;

/** A PCR compared with the one before. */
export interface PcrStep {
  /** From one to the other, 90 kHz; below 0 only for a jump. 0 for the first. */
  readonly ticks: number;
  /** The times from here on do not continue the earlier ones. */
  readonly isJump: boolean;
}

const FIRST: PcrStep = { ticks: 0, isJump: false };

/** Follows the clock of one PID, the first that has one. */
export class PcrSteps {
  #pid = -1;
  #foreign = 0;
  #last: number | null = null;
  readonly #recent: number[] = [];

  /** The next PCR (90 kHz, 33 bits); null for one of another PID. */
  next(pid: number, pcr: number): PcrStep | null {
    if (pid !== this.#pid) {
      if (this.#pid >= 0 && ++this.#foreign < LOST_PID_PCRS) return null;
      this.#pid = pid;
      this.#last = null;
      this.#recent.length = 0;
    }
    this.#foreign = 0;
    const last = this.#last;
    this.#last = pcr;
    if (last === null) return FIRST;
    const ticks = stepBetween(last, pcr);
    const longest = this.#recent.length === 0 ? LONG_FIRST_90K / VARIES : Math.max(...this.#recent);
    const isJump = ticks < 0 || ticks > LONGEST_90K || (ticks > LONG_90K && ticks > VARIES * longest);
    // A jump ahead counts, too: if the next step is as long, both were steps.
    if (ticks > 0 && this.#recent.push(ticks) > RECENT) this.#recent.shift();
    return { ticks, isJump };
  }

  /** The next PCR does not continue the last one. */
  cut(): void {
    this.#last = null;
  }
}

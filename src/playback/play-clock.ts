/**
 * Where a player probably is. It does not say, and many fetch far ahead of what they show, so a read that waits is no
 * stop yet: a stop is a wait by which everything delivered has been played.
 */

/** After a stop a player goes on once it has this much again, seconds. */
const RESUME_S = 2;
/** A player that has nothing left and waits for nothing either for this long, ms, is paused, or had more than was known. */
const PAUSED_MS = 3000;
/** Stops longer ago than this say nothing about the swarm of now, ms. */
const STOP_MEMORY_MS = 5 * 60_000;

/** Plays what is delivered at the film's own pace, and counts when it runs out. */
export class PlayClock {
  #aheadS = 0;
  #isPlaying = false;
  /** Since when all is played that was delivered; null: it is not. */
  #dryMs: number | null = null;
  #lastMs: number;
  #stopsMs: number[] = [];

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
  }

  /** Stops within the last minutes. */
  get stops(): number {
    return this.#stopsMs.length;
  }

  /**
   * `deliveredS` more of the film went out since the last call, and the player now waits for what the swarm has to
   * bring, or not. Returns whether the picture stops now.
   */
  advance(deliveredS: number, isWaiting: boolean, nowMs: number): boolean {
    const passedS = (nowMs - this.#lastMs) / 1000;
    this.#lastMs = nowMs;
    this.#stopsMs = this.#stopsMs.filter((atMs) => nowMs - atMs < STOP_MEMORY_MS);
    this.#aheadS += deliveredS;
    if (!this.#isPlaying) {
      this.#isPlaying = this.#aheadS >= RESUME_S;
      return false;
    }
    this.#aheadS = Math.max(0, this.#aheadS - passedS);
    this.#dryMs = this.#aheadS > 0 ? null : this.#dryMs ?? nowMs;
    if (this.#dryMs === null) return false;
    const isPaused = nowMs - this.#dryMs >= PAUSED_MS;
    if (isWaiting || isPaused) this.hold();
    if (!isWaiting || isPaused) return false;
    this.#stopsMs.push(nowMs);
    return true;
  }

  /** The picture stands still: what is delivered meanwhile is played afterwards. */
  hold(): void {
    this.#isPlaying = false;
    this.#dryMs = null;
  }
}

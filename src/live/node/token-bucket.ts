/** Allows so much a second, and a burst of one second. */
export class TokenBucket {
  private readonly perS: number;
  private tokens: number;
  private atMs: number;

  /** `perS` > 0; `nowMs` is monotonic. */
  constructor(perS: number, nowMs: number) {
    this.perS = perS;
    this.tokens = perS;
    this.atMs = nowMs;
  }

  /** Takes one token; false when there is none. */
  take(nowMs: number): boolean {
    this.tokens = Math.min(this.perS, this.tokens + (Math.max(0, nowMs - this.atMs) / 1000) * this.perS);
    this.atMs = nowMs;
    if (this.tokens < 1) return false;
    this.tokens--;
    return true;
  }
}

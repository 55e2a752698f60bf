/** Finds the bitrate of a transport stream by its own clock, however unevenly its bytes arrive. */
import { PACKET_BYTES, pcrAt, pidOf, unusable } from "./packet.ts";
import { readPcr, stepBetween } from "./stamps.ts";
import { TsResync } from "./resync.ts";

/** PCRs are at most 0.1 s apart (ISO/IEC 13818-1, 2.7.2); a longer step, or a backward one, is a cut. */
const MAX_STEP_90K = 90_000;

/** Follows the first PID with a PCR. */
export class PcrRate {
  readonly #resync = new TsResync();
  #pid = -1;
  #last: number | null = null;
  #bytes = 0;
  #lastAt = 0;
  #span90k = 0;
  #spanBytes = 0;

  /** Takes bytes in order. */
  push(chunk: Uint8Array): void {
    for (const { packets } of this.#resync.push(chunk)) {
      for (let at = 0; at < packets.length; at += PACKET_BYTES, this.#bytes += PACKET_BYTES) {
        const place = unusable(packets, at) ? -1 : pcrAt(packets, at);
        if (place >= 0) this.#pcr(pidOf(packets, at), readPcr(packets, place));
      }
    }
  }

  /** The next bytes do not continue the earlier ones. */
  cut(): void {
    this.#resync.reset();
    this.#last = null;
  }

  /** The stream has a clock. */
  get hasClock(): boolean {
    return this.#pid >= 0;
  }

  /** Stream measured so far, ms. */
  get spanMs(): number {
    return this.#span90k / 90;
  }

  /** Bytes per second over the span; 0 before there is one. */
  get bytesPerS(): number {
    return this.#span90k === 0 ? 0 : this.#spanBytes * 90_000 / this.#span90k;
  }

  #pcr(pid: number, pcr: number): void {
    if (this.#pid < 0) this.#pid = pid;
    if (pid !== this.#pid) return;
    const step = this.#last === null ? 0 : stepBetween(this.#last, pcr);
    if (step > 0 && step <= MAX_STEP_90K) {
      this.#span90k += step;
      this.#spanBytes += this.#bytes - this.#lastAt;
    }
    this.#last = pcr;
    this.#lastAt = this.#bytes;
  }
}

/** Finds the bitrate of a transport stream by its own clock, however unevenly its bytes arrive. */
import { PACKET_BYTES, pcrAt, pidOf, unusable } from "./packet.ts";
import { PcrSteps } from "./pcr-steps.ts";
import { readPcr } from "./stamps.ts";
import { TsResync } from "./resync.ts";

/** Measures by the steps of the PCR; jumps are left out. */
export class PcrRate {
  readonly #resync = new TsResync();
  readonly #steps = new PcrSteps();
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
    this.#steps.cut();
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
    const step = this.#steps.next(pid, pcr);
    if (step === null) return;
    if (step.ticks > 0 && !step.isJump) {
      this.#span90k += step.ticks;
      this.#spanBytes += this.#bytes - this.#lastAt;
    }
    this.#lastAt = this.#bytes;
  }
}

/** How long a peer that did not send its metadata is left alone. */
import { hasCode } from "../../errors.ts";
import type { Clock, Timer } from "../../ports.ts";

/** A peer that refused its metadata, or was slow with it, is asked again after this long, doubled each time, ms. */
const REST_MS = 3_000;
const MAX_REST_MS = 60_000;

/** The rests of one peer. */
export class MetadataRest {
  /** Fetching its metadata failed a moment ago, or it lied. */
  isUseless = false;
  readonly #clock: Clock;
  readonly #over: () => void;
  #timer: Timer | null = null;
  #restMs = REST_MS;

  /** `over`: it may be asked again. */
  constructor(clock: Clock, over: () => void) {
    this.#clock = clock;
    this.#over = over;
  }

  /** Records a failure: a peer that is busy or still fetching the metadata refuses now and has it later; a liar stays one. */
  failed(error: Error): void {
    this.isUseless = true;
    if (hasCode(error, "protocol_violation")) return;
    this.#timer = this.#clock.setTimeout(() => this.#end(), this.#restMs);
    this.#restMs = Math.min(2 * this.#restMs, MAX_REST_MS);
  }

  /** Ends the rest, if there is one that ends by itself. */
  end(): boolean {
    if (this.#timer === null) return false;
    this.#end();
    return true;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #end(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.isUseless = false;
    this.#over();
  }
}

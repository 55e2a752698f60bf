/** Holds a swarm's blocks back while other traffic of the engine uses up its upload limit. */
import type { UploadGate } from "../node/live-options.ts";
import type { TokenBucket } from "../../swarm/token-bucket.ts";

/** The uplink that limits leave to one swarm. The node measures what the line carries. */
export class Uplink implements UploadGate {
  readonly #bucket: TokenBucket;
  readonly #opened: () => void;

  /** Calls `opened` in a separate turn when blocks may go again. */
  constructor(bucket: TokenBucket, opened: () => void) {
    this.#bucket = bucket;
    this.#opened = () => opened();
  }

  /** True when a block may be handed to the network; when not, `opened` is called once it may. */
  get isOpen(): boolean {
    const { open } = this.#bucket;
    if (!open) this.#bucket.whenOpen(this.#opened);
    return open;
  }

  /** `bytes` of payload were handed to the network. */
  spend(bytes: number): void {
    this.#bucket.spend(bytes);
  }

  close(): void {
    this.#bucket.forget(this.#opened);
  }
}

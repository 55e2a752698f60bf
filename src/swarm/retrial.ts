/**
 * A failed piece fetched again from one of its senders alone, so that the next hash judges that peer only: good
 * bytes show which blocks of the failed attempt were forged, bad bytes convict the peer itself. Without it three peers
 * sharing every piece with one liar would never finish a piece.
 */
import type { Clock, Timer } from "../ports.ts";
import { BLOCK_BYTES } from "../wire/types.ts";
import { Assembly } from "./assembly.ts";

/** Requests kept under way; the peer's other requests share its connection. */
const DEPTH = 32;

/** A witness that is silent for this long is skipped, ms. */
const WITNESS_TIMEOUT_MS = 8_000;

/** What a retrial needs. */
export interface RetrialHost {
  readonly clock: Clock;
  /** Whether this peer can be asked for the piece now (connected, unchoked, has it). */
  canAsk(source: number, piece: number): boolean;
  request(source: number, piece: number, offset: number, length: number): void;
  cancel(source: number, piece: number, offset: number, length: number): void;
  acquireBuffer(bytes: number): Uint8Array;
  /** One witness delivered the whole piece. */
  heard(retrial: Retrial, assembly: Assembly): void;
  /** No witness is left. */
  exhausted(retrial: Retrial): void;
}

/** The retrial of one piece. */
export class Retrial {
  readonly piece: number;
  private readonly host: RetrialHost;
  private readonly lengthBytes: number;
  private readonly suspects: number[];
  private assembly: Assembly | null = null;
  private witness = -1;
  private next = 0;
  private readonly asked = new Set<number>();
  private timer: Timer | null = null;

  /** `suspects` in the order in which they are asked. Call `proceed` to begin. */
  constructor(host: RetrialHost, piece: number, lengthBytes: number, suspects: readonly number[]) {
    this.host = host;
    this.piece = piece;
    this.lengthBytes = lengthBytes;
    this.suspects = [...suspects];
  }

  /** The peer being asked, -1 when there is none. */
  get source(): number {
    return this.witness;
  }

  /** Asks the next suspect; ends with `exhausted` when there is none. */
  proceed(): void {
    this.dismiss();
    for (let source = this.suspects.shift(); source !== undefined; source = this.suspects.shift()) {
      if (!this.host.canAsk(source, this.piece)) continue;
      this.witness = source;
      this.assembly = new Assembly(
        this.piece,
        this.host.acquireBuffer(this.lengthBytes),
        this.host.clock.monotonic(),
      );
      this.watch();
      this.fill();
      return;
    }
    this.host.exhausted(this);
  }

  /** Where the witness's block goes; null when it is not the witness's turn. */
  target(source: number, block: number): Uint8Array | null {
    const assembly = this.assembly;
    if (source !== this.witness || assembly === null || !this.asked.has(block) || assembly.has(block)) return null;
    return assembly.view(block);
  }

  /** The witness's block is complete in its target. */
  block(source: number, block: number): void {
    const assembly = this.assembly;
    if (source !== this.witness || assembly === null || !this.asked.delete(block)) return;
    assembly.begin(block, source);
    assembly.finish(block, source, this.host.clock.monotonic());
    this.watch();
    if (!assembly.complete) return this.fill();
    this.timer?.cancel();
    this.timer = null;
    this.assembly = null;
    this.host.heard(this, assembly);
  }

  /** The peer left, choked us or refused: if it was the witness, the next one is asked. */
  unavailable(source: number): void {
    if (source === this.witness && this.assembly !== null) this.proceed();
  }

  /** Ends it without reporting anything. */
  close(): void {
    this.suspects.length = 0;
    this.dismiss();
  }

  private fill(): void {
    const assembly = this.assembly!;
    while (this.asked.size < DEPTH && this.next < assembly.blocks) {
      const block = this.next++;
      this.asked.add(block);
      this.host.request(this.witness, this.piece, block * BLOCK_BYTES, assembly.view(block).length);
    }
  }

  private watch(): void {
    this.timer?.cancel();
    this.timer = this.host.clock.setTimeout(() => this.proceed(), WITNESS_TIMEOUT_MS);
  }

  private dismiss(): void {
    this.timer?.cancel();
    this.timer = null;
    if (this.assembly !== null) {
      for (const block of this.asked) {
        this.host.cancel(this.witness, this.piece, block * BLOCK_BYTES, this.assembly.view(block).length);
      }
    }
    this.assembly = null;
    this.witness = -1;
    this.next = 0;
    this.asked.clear();
  }
}

/** Puts packets together into chunks, in memory that is used again. */
import type { ChunkBuffers } from "../../../bytes/chunk-buffers.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";

/** Packets in a chunk: just under 64 KiB, the largest that a layout may yield. */
export const CHUNK_PACKETS = 348;

/**
 * Packets in the order in which they are added. Packets that were neighbours before are copied in one go: a view or a
 * copy for each of the 5.7 million packets of a gibibyte keeps the collector busy for longer than all other work takes.
 */
export class PacketOutput {
  readonly #buffers: ChunkBuffers | undefined;
  #ready: Uint8Array[] = [];
  #chunk: Uint8Array | null = null;
  #filled = 0;
  /** Packets that lie one after the other in `#run` and were not copied yet. */
  #run: Uint8Array | null = null;
  #runAt = 0;
  #runPackets = 0;
  readonly #counters = new Uint8Array(CHUNK_PACKETS);

  /** Chunks are in memory of `buffers`; absent: in memory of their own. */
  constructor(buffers?: ChunkBuffers) {
    this.#buffers = buffers;
  }

  /** Adds the packet at `at` of `bytes`, with another counter. `bytes` must stay as they are until `settle`. */
  add(bytes: Uint8Array, at: number, counter: number): void {
    const goesOn = bytes === this.#run && at === this.#runAt + this.#runPackets * PACKET_BYTES;
    if (!goesOn || this.#runPackets === CHUNK_PACKETS) {
      this.settle();
      this.#run = bytes;
      this.#runAt = at;
    }
    this.#counters[this.#runPackets++] = counter;
  }

  /** Adds packets that keep their counters. */
  addWhole(packets: Uint8Array): void {
    for (let at = 0; at < packets.length; at += PACKET_BYTES) this.add(packets, at, packets[at + 3]! & 15);
  }

  /** Copies what was added. */
  settle(): void {
    const run = this.#run;
    let at = this.#runAt;
    let next = 0;
    while (run !== null && next < this.#runPackets) {
      const chunk = this.#chunk ??= this.#buffers?.acquire(CHUNK_PACKETS * PACKET_BYTES) ??
        new Uint8Array(CHUNK_PACKETS * PACKET_BYTES);
      const bytes = Math.min((this.#runPackets - next) * PACKET_BYTES, chunk.length - this.#filled);
      chunk.set(run.subarray(at, at + bytes), this.#filled);
      for (const end = this.#filled + bytes; this.#filled < end; this.#filled += PACKET_BYTES) {
        chunk[this.#filled + 3] = (chunk[this.#filled + 3]! & 0xf0) | this.#counters[next++]!;
      }
      at += bytes;
      if (this.#filled === chunk.length) this.#close();
    }
    this.#run = null;
    this.#runPackets = 0;
  }

  /** Chunks of what was added since the last call; each belongs to the consumer. */
  *take(): Generator<Uint8Array> {
    this.settle();
    if (this.#filled > 0) this.#close();
    const ready = this.#ready;
    this.#ready = [];
    yield* ready;
  }

  #close(): void {
    this.#ready.push(this.#chunk!.subarray(0, this.#filled));
    this.#chunk = null;
    this.#filled = 0;
  }
}

/** Finds whole 188-byte transport packets in a byte stream that may start anywhere and lose bytes. */
import { concatBytes } from "../hex.ts";
import { PACKET_BYTES, SYNC_BYTE } from "./packet.ts";
import { LEAST_SYNCS, syncsAt } from "./sync.ts";

/** The packets found, a view of the chunk or memory of its own. `lost`: bytes were left out before the first of them. */
export interface PacketRun {
  readonly packets: Uint8Array;
  readonly lost: boolean;
}

/** Turns chunks of any size into runs of whole packets. Keeps fewer than `LEAST_SYNCS` packets between calls. */
export class TsResync {
  #rest: Uint8Array = new Uint8Array();
  #isSynced = false;
  #isLost = false;
  /** Bytes dropped so far. */
  droppedBytes = 0;

  /** Takes a chunk; returns the packets that it completes, in runs without a loss inside. Copies as little as it can. */
  push(chunk: Uint8Array): PacketRun[] {
    const runs: PacketRun[] = [];
    const bytes = this.#joined(chunk, runs);
    let at = 0;
    let start = 0;
    const close = () => {
      if (at > start) {
        runs.push({ packets: bytes.subarray(start, at), lost: this.#isLost });
        this.#isLost = false;
      }
    };
    while (at + PACKET_BYTES <= bytes.length) {
      const syncs = this.#isSynced ? 0 : syncsAt(bytes, at, PACKET_BYTES);
      if (this.#isSynced ? bytes[at] === SYNC_BYTE : syncs >= LEAST_SYNCS) {
        this.#isSynced = true;
        at += PACKET_BYTES;
        continue;
      }
      // No sync byte is missing so far: the next chunk decides.
      if (at + syncs * PACKET_BYTES >= bytes.length) break;
      close();
      this.#isLost ||= this.#isSynced;
      this.#isSynced = false;
      const next = bytes.indexOf(SYNC_BYTE, at + 1);
      const to = next < 0 ? bytes.length : next;
      this.droppedBytes += to - at;
      at = start = to;
    }
    close();
    this.#rest = bytes.slice(at);
    return runs;
  }

  /** What to look through: all of the chunk with what is kept before it, or what follows the packet that it completes. */
  #joined(chunk: Uint8Array, runs: PacketRun[]): Uint8Array {
    const rest = this.#rest;
    if (rest.length === 0) return chunk;
    const missing = PACKET_BYTES - rest.length;
    if (!this.#isSynced || rest[0] !== SYNC_BYTE || chunk.length < missing) return concatBytes([rest, chunk]);
    runs.push({ packets: concatBytes([rest, chunk.subarray(0, missing)]), lost: false });
    return chunk.subarray(missing);
  }

  /** Drops the partial packet kept: the next bytes come from a new connection. */
  reset(): void {
    this.droppedBytes += this.#rest.length;
    this.#rest = new Uint8Array();
    this.#isSynced = false;
    this.#isLost = true;
  }
}

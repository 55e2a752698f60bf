/** Checks an MPEG transport stream as it arrives: sync, continuity, tables, pictures. ISO/IEC 13818-1, 2.4.3. */
import { NULL_PID, PACKET_BYTES, SYNC_BYTE } from "../../src/bytes/ts/packet.ts";
import { MillraceError } from "../../src/errors.ts";

/** Counts of what was seen. */
export interface TsSummary {
  readonly packets: number;
  /** PES packets begun, on all PIDs. */
  readonly pesPackets: number;
  readonly pids: number;
}

/** Takes a stream in chunks of any size; throws `bad_media` at the first fault. */
export class TsCheck {
  readonly #partial = new Uint8Array(PACKET_BYTES);
  #partialBytes = 0;
  #packets = 0;
  #pesPackets = 0;
  #programTable = false;
  /** Last continuity counter by PID. */
  readonly #counters = new Map<number, number>();

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#partialBytes === 0 && chunk.length - at >= PACKET_BYTES) {
        this.#packet(chunk.subarray(at, at + PACKET_BYTES));
        at += PACKET_BYTES;
        continue;
      }
      const count = Math.min(PACKET_BYTES - this.#partialBytes, chunk.length - at);
      this.#partial.set(chunk.subarray(at, at + count), this.#partialBytes);
      this.#partialBytes += count;
      at += count;
      if (this.#partialBytes < PACKET_BYTES) continue;
      this.#partialBytes = 0;
      this.#packet(this.#partial);
    }
  }

  /** To be called at the end of the stream. */
  finish(): TsSummary {
    if (this.#partialBytes !== 0) throw this.#fault("ends within a packet");
    if (!this.#programTable) throw this.#fault("has no program association table");
    if (this.#pesPackets === 0) throw this.#fault("has no pictures or sound");
    return { packets: this.#packets, pesPackets: this.#pesPackets, pids: this.#counters.size };
  }

  #packet(packet: Uint8Array): void {
    if (packet[0] !== SYNC_BYTE) throw this.#fault("lost its sync byte");
    this.#packets++;
    const starts = (packet[1]! & 0x40) !== 0;
    const pid = (packet[1]! & 0x1f) << 8 | packet[2]!;
    if (pid === NULL_PID) return;
    const hasAdaptation = (packet[3]! & 0x20) !== 0;
    const hasPayload = (packet[3]! & 0x10) !== 0;
    const adaptationBytes = hasAdaptation ? 1 + packet[4]! : 0;
    const discontinuity = adaptationBytes > 1 && (packet[5]! & 0x80) !== 0;
    const counter = packet[3]! & 0x0f;
    const last = this.#counters.get(pid);
    if (last !== undefined && !discontinuity && counter !== (hasPayload ? (last + 1) & 0x0f : last)) {
      throw this.#fault(`jumps from ${last} to ${counter} on PID ${pid}`);
    }
    this.#counters.set(pid, counter);
    if (pid === 0) this.#programTable = true;
    const payload = 4 + adaptationBytes;
    if (starts && hasPayload && packet[payload] === 0 && packet[payload + 1] === 0 && packet[payload + 2] === 1) {
      this.#pesPackets++;
    }
  }

  #fault(what: string): MillraceError {
    return new MillraceError("bad_media", `the transport stream ${what} (packet ${this.#packets})`);
  }
}

/** Reads the clock of a transport stream (its PCRs), and remembers when each of them left the source. */
import { PACKET_BYTES, pcrAt, SYNC_BYTE } from "../../src/bytes/ts/packet.ts";
import { readPcr } from "../../src/bytes/ts/stamps.ts";

/** Finds the PCRs in a stream that comes in chunks of any length. */
export class StreamClock {
  #rest: Uint8Array = new Uint8Array();

  /** The PCRs of all packets that `chunk` completes, 90 kHz. */
  *read(chunk: Uint8Array): Generator<number> {
    const bytes = new Uint8Array(this.#rest.length + chunk.length);
    bytes.set(this.#rest);
    bytes.set(chunk, this.#rest.length);
    let at = 0;
    while (at + PACKET_BYTES <= bytes.length) {
      if (bytes[at] !== SYNC_BYTE) {
        at++;
        continue;
      }
      const pcr = pcrAt(bytes, at);
      if (pcr !== -1) yield readPcr(bytes, pcr);
      at += PACKET_BYTES;
    }
    this.#rest = bytes.subarray(at);
  }
}

/** When the source sent each moment of the stream. */
export class SourceTimes {
  readonly #clock = new StreamClock();
  readonly #sentMs = new Map<number, number>();

  /** The source sends `chunk` now. */
  sends(chunk: Uint8Array, nowMs: number): void {
    for (const pcr of this.#clock.read(chunk)) this.#sentMs.set(pcr, nowMs);
  }

  /** When the packet with that PCR was sent, Unix ms; null when none was. */
  sentMs(pcr: number): number | null {
    return this.#sentMs.get(pcr) ?? null;
  }
}
